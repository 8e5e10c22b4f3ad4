"""Rules that break only where rows of both sides meet, or meet rows that neither has touched."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.merge.small_graph import change, told

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.merge.model import MergeResult

SCHEMA = """
node Part {
  sku: String @key
  maker: String?
  size: I64?
  @unique(maker, size)
}
edge Fits: Part -> Part @card(0..2)
"""


def part(sku: str, **values: Any) -> dict[str, Any]:
    return {"type": "Part", "data": {"sku": sku, **values}}


def fits(id: str, one: str, other: str) -> dict[str, Any]:
    return {"edge": "Fits", "from": one, "to": other, "data": {"id": id}}


def put(og: Omnigraph, branch: str, *records: dict[str, Any]) -> None:
    og.load("\n".join(map(json.dumps, records)).encode(), branch=branch)


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Five parts of which each has another size, and an edge, on main and on `side`."""
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    parts = [part(f"p{n}", maker="a", size=n) for n in range(5)]
    put(graph, "main", *parts, fits("f1", "p1", "p2"))
    graph.branch_create("side")
    return graph


def merged(og: Omnigraph, **options: Any) -> MergeResult:
    return og.branch_merge("side", dry_run=True, **options)


def test_edges_that_neither_has_touched_count(og: Omnigraph) -> None:
    put(og, "main", fits("f2", "p1", "p3"), fits("f3", "p3", "p1"))
    put(og, "side", fits("f4", "p1", "p4"), fits("f5", "p4", "p1"))
    assert told(merged(og)) == [("edge:Fits", None, "cardinality_violation")]


def test_values_of_both_may_be_those_of_a_row_that_neither_has_touched(og: Omnigraph) -> None:
    put(og, "main", part("p0", maker="b", size=3), part("p9", maker="c", size=4))
    og.branch_create("fork")
    put(og, "main", part("p0", maker="c", size=3))
    put(og, "fork", part("p0", maker="b", size=4))
    result = og.branch_merge("fork", strategy="property", dry_run=True)
    assert told(result) == [("node:Part", "p0", "unique_violation")]


def test_a_value_that_one_gave_away_is_free_for_nobody_else(og: Omnigraph) -> None:
    put(og, "main", part("p1", maker="a", size=9), part("p8", maker="a", size=1))
    put(og, "side", part("p2", maker="a", size=9))
    assert told(merged(og)) == [("node:Part", "p2", "unique_violation")]


def test_values_that_both_move_elsewhere(og: Omnigraph) -> None:
    put(og, "main", part("p1", maker="b", size=1))
    put(og, "side", part("p2", maker="b", size=2))
    result = merged(og)
    assert told(result) == []
    assert [(item.inserted, item.updated) for item in result.tables if item.updated] == [(0, 1)]


def test_a_node_that_the_base_cannot_tell_and_the_target_has_not(og: Omnigraph) -> None:
    """Bases that disagree about a node have none, so nobody has deleted it since."""
    put(og, "main", part("n", size=1))
    put(og, "side", part("n", size=2))
    for branch in ("main", "side"):
        og.branch_create(f"{branch}-older", source=branch)
    og.branch_merge("side-older", into="main", resolve="ours")
    og.branch_merge("main-older", into="side", resolve="ours")
    change(og, "main", 'delete Part where sku = "n"')
    put(og, "side", fits("f9", "p4", "n"))
    assert told(merged(og)) == [("node:Part", "n", "delete_vs_update")]
    assert told(merged(og, resolve="ours")) == [("edge:Fits", "f9", "orphan_edge")]
    assert told(merged(og, resolve="theirs")) == []


@pytest.mark.parametrize("is_in_one_commit", [True, False])
def test_rows_written_again_as_they_were_are_not_taken(
    og: Omnigraph, is_in_one_commit: bool
) -> None:
    put(og, "main", part("p0", maker="b", size=0))
    put(og, "side", part("p1", maker="a", size=1), part("p2", maker="a", size=7), part("p7"))
    if not is_in_one_commit:
        put(og, "side", part("p8"))
        change(og, "side", 'delete Part where sku = "p8"')
    (table,) = [item for item in merged(og).tables if item.table_key == "node:Part"]
    assert (table.inserted, table.updated, table.deleted) == (1, 1, 0)
    og.branch_merge("side")
    rows = og.table(og.snapshot(), "node:Part").read(["id", "maker", "size"]).to_pylist()
    found = {row["id"]: (row["maker"], row["size"]) for row in rows}
    kept = {f"p{n}": ("a", n) for n in (1, 3, 4)}
    assert found == kept | {"p0": ("b", 0), "p2": ("a", 7), "p7": (None, None)}


def test_a_source_of_which_nothing_is_left_writes_nothing(og: Omnigraph) -> None:
    put(og, "main", part("p0", maker="b", size=0))
    put(og, "side", part("p1", maker="a", size=1))
    result = og.branch_merge("side")
    assert [str(item.disposition) for item in result.tables] == ["kept", "kept"]
