"""Stores to keep logs in."""

from __future__ import annotations

import pytest

from omnigraph_core.storage.session import Store, open_store


@pytest.fixture
def store(graph_root: str) -> Store:
    opened = open_store(graph_root)
    opened.create_root()
    return opened


@pytest.fixture
def local(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return open_store(str(tmp_path_factory.mktemp("graph")))
