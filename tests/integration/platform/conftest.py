"""The platform for tests: a real graph, and an instance of Dagster that lives as long as a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.later import Later
from tests.support.platform import make_platform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import dagster as dg

    from tests.support.platform import Platform
else:
    dg = Later("dagster")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def platform(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> Platform:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    return make_platform(tmp_path, instance)
