"""A graph with some stock, and short ways to write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.graphs import new_graph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """An empty graph of parts, bins and what bins hold."""
    return new_graph(str(tmp_path / "graph"))


def load(og: Omnigraph, *records: dict[str, object], branch: str = "main") -> str:
    """One merged load; the id of its commit."""
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    og.load(text.encode(), mode="merge", branch=branch)
    return og.head_commit_id_for_branch(branch)


def part(sku: str, **values: object) -> dict[str, object]:
    return {"type": "Part", "data": {"sku": sku, **values}}
