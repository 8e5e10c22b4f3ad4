"""A graph on every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.graphs import new_graph

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def og(graph_root: str) -> Omnigraph:
    """An empty graph."""
    return new_graph(graph_root)
