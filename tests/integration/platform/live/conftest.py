"""One platform with all its processes for the tests of this folder.

Its daemon is never idle, so it lives no longer than they need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.live_platform import LivePlatform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="package")
def live_platform(shared_directory: Path) -> Iterator[LivePlatform]:
    with LivePlatform(shared_directory / "live") as platform:
        yield platform
