"""Merges of schemas that ask more of rows than before: of the rows that there will be."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.evolve import validate
from omnigraph_core.merge.model import MergeOutcome
from omnigraph_core.storage import lookup
from tests.integration.merge.small_graph import (
    HOLDS,
    PART,
    change,
    column,
    dispositions,
    drop,
    evolve,
    graph,
    holds,
    new_graph,
    part,
    put,
    rows,
    told,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.merge.model import MergeResult

COUNTED = ("stock: I64?", "stock: I64")
DRAWN = ("drawing: Blob?", "drawing: Blob")
VIOLATED = "value_constraint_violation"


def blob(content: bytes) -> str:
    return f"base64:{base64.b64encode(content).decode()}"


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(tmp_path / "graph")


def fork(og: Omnigraph, *records: dict[str, Any]) -> None:
    """Main with these rows, and `side` from there."""
    put(og, "main", *records)
    og.branch_create("side")


def merged(og: Omnigraph, **options: Any) -> MergeResult:
    """The merge of `side`, sound afterwards, also when it is read anew."""
    result = og.branch_merge("side", **options)
    assert og.verify().is_sound
    return result


def written(og: Omnigraph, key: str = PART) -> int:
    """Rows of the last fragment: what a merge has written."""
    (last,) = og.table(og.snapshot(), key).dataset.get_fragments()[-1:]
    return int(last.count_rows())


def test_a_null_that_the_source_has_filled(og: Omnigraph) -> None:
    fork(og, part("p1"))
    put(og, "side", part("p1", stock=7))
    evolve(og, "side", COUNTED)
    put(og, "main", part("p2", stock=5))
    result = merged(og)
    assert dispositions(result) == {PART: "merged"}
    (table,) = [item for item in result.tables if item.table_key == PART]
    assert (table.inserted, table.updated, table.deleted) == (0, 1, 0)
    assert column(og, "main", "stock") == {"p1": 7, "p2": 5, "p3": 1, "p4": 1}
    assert written(og) == 1
    assert not og.table(og.snapshot(), PART).schema.field("stock").nullable
    assert og.branch_merge("side").outcome is MergeOutcome.ALREADY_UP_TO_DATE
    put(og, "main", part("p9", stock=9))
    assert column(og, "main", "stock")["p9"] == 9


def test_a_null_that_the_source_has_deleted(og: Omnigraph) -> None:
    fork(og, part("p1"))
    drop(og, "side", "p1")
    evolve(og, "side", COUNTED)
    put(og, "main", part("p2", stock=5))
    merged(og)
    assert column(og, "main", "stock") == {"p2": 5, "p3": 1, "p4": 1}
    assert rows(og, "main", HOLDS) == {}


def test_every_row_is_replaced(og: Omnigraph) -> None:
    """Nothing stays that could be brought into the new shape."""
    fork(og, *(part(f"p{n}") for n in (1, 2, 3, 4)))
    put(og, "side", *(part(f"p{n}", stock=n) for n in (1, 2, 3, 4)))
    evolve(og, "side", COUNTED, ("name: String?", "name: String?\n  grade: I32 @default(5)"))
    put(og, "main", part("p5", stock=5))
    drop(og, "main", "p5")
    merged(og)
    assert column(og, "main", "stock") == {"p1": 1, "p2": 2, "p3": 3, "p4": 4}
    assert set(column(og, "main", "grade").values()) == {5}


def test_values_of_both_sides(og: Omnigraph) -> None:
    """A row with a name of the target and the stock of the source."""
    fork(og, part("p1"))
    change(og, "side", 'update Part set { stock: 7 } where sku = "p1"')
    evolve(og, "side", COUNTED)
    change(og, "main", 'update Part set { name: "bolt" } where sku = "p1"')
    merged(og, strategy="property")
    assert rows(og, "main")["p1"] == {"id": "p1", "sku": "p1", "name": "bolt", "stock": 7}


def test_a_null_that_the_target_has_written(og: Omnigraph) -> None:
    fork(og)
    evolve(og, "side", COUNTED)
    put(og, "side", part("p2", stock=5))
    put(og, "main", part("p8"), part("p9", stock=9))
    before = graph(og, "main")
    assert told(og.branch_merge("side", dry_run=True)) == [(PART, "p8", VIOLATED)]
    assert graph(og, "main") == before


def test_a_blob_that_the_source_has_filled(og: Omnigraph) -> None:
    fork(og, *(part(f"p{n}", stock=1, drawing=blob(b"x")) for n in (2, 3, 4)))
    put(og, "side", part("p1", stock=1, drawing=blob(b"y")))
    evolve(og, "side", DRAWN)
    put(og, "main", part("p2", stock=7, drawing=blob(b"x")))
    merged(og)
    assert column(og, "main", "drawing") == {
        "p1": blob(b"y"),
        "p2": blob(b"x"),
        "p3": blob(b"x"),
        "p4": blob(b"x"),
    }


def test_blobs_that_are_missing(og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the target that stay are told, whatever the source has filled or removed."""
    drawn = {"stock": 1, "drawing": blob(b"x")}
    fork(og, part("p2", **drawn), part("p3", **drawn))
    put(og, "side", part("p1", **drawn), part("p7", **drawn))
    drop(og, "side", "p4")
    evolve(og, "side", DRAWN)
    put(og, "main", part("p3", stock=2), part("p8"), part("p9", **drawn))
    monkeypatch.setattr(lookup, "_blobs_at", lambda *_: pytest.fail("no content is read"))
    found = og.branch_merge("side", dry_run=True)
    assert told(found) == [(PART, "p3", VIOLATED), (PART, "p8", VIOLATED)]


@pytest.mark.parametrize("drawer", ["main", "side"])
def test_blobs_of_rows_with_values_of_both(og: Omnigraph, drawer: str) -> None:
    """The side that a blob comes from tells whether there is one."""
    fork(og, *(part(f"p{n}", stock=1, drawing=blob(b"x")) for n in (1, 2, 3, 4)))
    put(og, drawer, part("p1", stock=1, drawing=blob(b"yy")))
    other = "side" if drawer == "main" else "main"
    put(og, other, part("p1", stock=5, drawing=blob(b"x")))
    evolve(og, "side", DRAWN)
    merged(og, strategy="property")
    assert rows(og, "main")["p1"]["drawing"] == blob(b"yy")
    assert column(og, "main", "stock")["p1"] == 5


def test_a_blob_that_the_target_has_emptied(og: Omnigraph) -> None:
    fork(og, *(part(f"p{n}", stock=1, drawing=blob(b"x")) for n in (1, 2, 3, 4)))
    put(og, "main", part("p1", stock=1))
    put(og, "side", part("p1", stock=5, drawing=blob(b"x")))
    evolve(og, "side", DRAWN)
    found = og.branch_merge("side", strategy="property", dry_run=True)
    assert told(found) == [(PART, "p1", VIOLATED)]


def test_a_rule_that_the_source_has_checked_is_not_checked_again(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fast-forward reads no row, whatever the schema asks for now."""
    fork(og)
    evolve(og, "side", ("name: String?", "name: String? @unique"), COUNTED)
    monkeypatch.setattr(validate, "check_group", lambda *_: pytest.fail("no row is read"))
    monkeypatch.setattr(validate, "iter_rows", lambda *_: pytest.fail("no row is read"))
    og.branch_create("apart")
    assert og.branch_merge("side").outcome is MergeOutcome.FAST_FORWARD
    monkeypatch.undo()
    put(og, "apart", part("p8", stock=1, name="a"), part("p9", stock=1, name="a"))
    assert told(og.branch_merge("side", into="apart", dry_run=True)) == [
        (PART, "p9", "unique_violation")
    ]


def test_edges_that_both_sides_have_moved(og: Omnigraph) -> None:
    """By property, too: nobody has written an edge from one's source to the other's target."""
    fork(og)
    put(og, "side", holds("h1", "b2", "p1"))
    put(og, "main", holds("h1", "b1", "p2"))
    for strategy in ("row", "property"):
        found = og.branch_merge("side", strategy=strategy, dry_run=True)
        assert told(found) == [(HOLDS, "h1", "divergent_update")]
        assert found.conflicts[0].properties == ("src", "dst")
        assert "both sides changed `src`, `dst`" in found.conflicts[0].message
    og.branch_merge("side", strategy="property", resolve="theirs")
    assert rows(og, "main", HOLDS)["h1"] == {"id": "h1", "src": "b2", "dst": "p1"}


def test_an_edge_that_one_side_has_moved(og: Omnigraph) -> None:
    fork(og)
    put(og, "side", holds("h1", "b2", "p1"))
    put(og, "main", holds("h1", "b1", "p1", count=4))
    merged(og, strategy="property")
    assert rows(og, "main", HOLDS)["h1"] == {"id": "h1", "src": "b2", "dst": "p1", "count": 4}
