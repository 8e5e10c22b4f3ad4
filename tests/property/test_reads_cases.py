"""Questions that random ones once got a wrong answer to, kept as they were found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
node Part {
  sku: String @key
  stock: I64
  shape: Vector(2)
}
edge Needs: Part -> Part
edge Uses: Part -> Part
"""
SHAPES = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    """Parts `a`, `b` and `c`, each of which needs the other two and itself; none uses any."""
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    parts = [
        {"type": "Part", "data": {"sku": sku, "stock": 1, "shape": shape}}
        for sku, shape in SHAPES.items()
    ]
    needs = [{"edge": "Needs", "from": a, "to": b} for a in SHAPES for b in SHAPES]
    graph.load("\n".join(map(json.dumps, [*parts, *needs])).encode())
    return graph


def rows(graph: Omnigraph, text: str) -> list[dict[str, Any]]:
    return graph.query("main", f"query q() {{ {text} }}").to_pylist()


@pytest.mark.parametrize(
    "inside",
    ["$c needs $x  $x.stock = 1", "$c needs{1,2} $x  $x.stock = 1", "$c needs $p", "$c <needs> $x"],
)
def test_not_of_something_that_is_null_in_every_row(graph: Omnigraph, inside: str) -> None:
    match = f"$p: Part  optional {{ $p uses $c }}  not {{ {inside} }}"
    found = rows(graph, f"match {{ {match} }} return {{ $p.sku as p }} order {{ $p.sku }}")
    assert found == [{"p": "a"}, {"p": "b"}, {"p": "c"}]


def test_different_rows_of_equal_rank_go_by_what_they_show(graph: Omnigraph) -> None:
    """One row stands for several ranked parts: which of them was ranked before others is open."""
    rank = "rrf(nearest($p.shape, [1.0, 0.0]), nearest($p.shape, [0.0, 1.0]))"
    match = "$p: Part  $p needs $x  $p.sku != $x.sku  $p.sku != 'c'".replace("'", '"')
    found = rows(
        graph,
        f"match {{ {match} }} return distinct {{ $x.sku as x, {rank} as score }}"
        f" order {{ {rank} }} limit 9",
    )
    assert [row["x"] for row in found] == ["a", "b", "c"]
    assert len({row["score"] for row in found}) == 1
