"""The platform for tests: a real graph, and an instance of Dagster that lives as long as a test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.later import Later
from tests.support.live_platform import LivePlatform
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


@pytest.fixture(scope="package")
def live_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlatform]:
    """One platform with all its processes, for all tests of this package: its daemon is never
    idle, so it does not stay for the others.
    """
    base = tmp_path_factory.getbasetemp()
    directory = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with LivePlatform(directory / "live") as platform:
        yield platform
