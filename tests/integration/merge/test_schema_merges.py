"""Merges of branches whose schemas have changed: rows follow the merged schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import MergeConflicts
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import (
    BIN,
    HOLDS,
    PART,
    bin,
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

Edit = tuple[str, str]
GRADED: Edit = ("name: String?", "name: String?\n  grade: I32 @default(5)")
NOTED: Edit = ("node Bin {", "node Note {\n  title: String @key\n}\n\nnode Bin {")
RENAMED: tuple[Edit, ...] = (
    ("node Part {", 'node Item @rename_from("Part") {'),
    ("Bin -> Part", "Bin -> Item"),
    ("Part -> Part", "Item -> Item"),
)
UNNAMED: Edit = ("  name: String?\n", "")


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Main and `side`, at the same commit."""
    graph = new_graph(tmp_path / "graph")
    graph.branch_create("side")
    return graph


def merged(og: Omnigraph, **options: Any) -> MergeResult:
    """The merge of `side` into main, which a dry run tells beforehand."""
    dry = og.branch_merge("side", dry_run=True, **options)
    result = og.branch_merge("side", **options)
    assert (dry.tables, dry.is_schema_changed) == (result.tables, result.is_schema_changed)
    assert og.branch_merge("side").outcome is MergeOutcome.ALREADY_UP_TO_DATE
    return result


def note(title: str) -> dict[str, Any]:
    return {"type": "Note", "data": {"title": title}}


def item(sku: str, **values: Any) -> dict[str, Any]:
    return {"type": "Item", "data": {"sku": sku, **values}}


def test_a_schema_is_forwarded(og: Omnigraph) -> None:
    evolve(og, "side", GRADED, NOTED)
    put(og, "side", part("p1", stock=2, grade=9), note("n"))
    result = merged(og)
    assert (result.outcome, result.is_schema_changed) == (MergeOutcome.FAST_FORWARD, True)
    assert dispositions(result) == {PART: "adopted", "node:Note": "adopted"}
    assert og.schema_show().hash == og.schema_show("side").hash
    assert graph(og, "main") == graph(og, "side")


def test_a_property_that_the_source_added(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=2), part("p9"))
    evolve(og, "side", GRADED)
    put(og, "side", part("p2", stock=3, grade=9))
    result = merged(og)
    assert dispositions(result) == {PART: "merged"}
    assert column(og, "main", "grade") == {"p1": 5, "p2": 9, "p3": 5, "p4": 5, "p9": 5}
    assert column(og, "main", "stock") == {"p1": 2, "p2": 3, "p3": 1, "p4": 1, "p9": None}


def test_a_property_that_the_target_added(og: Omnigraph) -> None:
    evolve(og, "main", GRADED)
    put(og, "main", part("p1", stock=2, grade=9))
    put(og, "side", part("p2", stock=3), part("p9"))
    result = merged(og)
    assert not result.is_schema_changed
    assert column(og, "main", "grade") == {"p1": 9, "p2": 5, "p3": 5, "p4": 5, "p9": 5}


def test_rows_only_of_the_target_take_the_new_shape(og: Omnigraph) -> None:
    put(og, "main", part("p9"))
    evolve(og, "side", GRADED)
    result = merged(og)
    assert dispositions(result) == {PART: "reshaped"}
    assert set(column(og, "main", "grade").values()) == {5}


def test_both_schemas_and_both_rows(og: Omnigraph) -> None:
    evolve(og, "main", GRADED)
    put(og, "main", part("p1", stock=2, grade=9))
    evolve(og, "side", ("stock: I64?", "stock: I64?\n  colour: String?"))
    put(og, "side", part("p2", stock=3, colour="red"))
    result = merged(og)
    assert result.is_schema_changed
    assert rows(og, "main")["p1"] == {"id": "p1", "sku": "p1", "stock": 2, "grade": 9}
    red = {"id": "p2", "sku": "p2", "stock": 3, "grade": 5, "colour": "red"}
    assert rows(og, "main")["p2"] == red


def test_a_wider_type(og: Omnigraph) -> None:
    evolve(og, "main", ("name: String?", "name: String?\n  size: I32?"))
    og.branch_merge("main", into="side")
    put(og, "main", part("p1", stock=1, size=1))
    evolve(og, "side", ("size: I32?", "size: I64?"))
    put(og, "side", part("p2", stock=1, size=2**40))
    merged(og)
    sizes = column(og, "main", "size")
    assert (sizes["p1"], sizes["p2"]) == (1, 2**40)


@pytest.mark.parametrize("renamer", ["main", "side"])
def test_a_renamed_type(og: Omnigraph, renamer: str) -> None:
    evolve(og, renamer, *RENAMED)
    made = {renamer: item, ("side" if renamer == "main" else "main"): part}
    put(og, "main", made["main"]("p1", stock=2))
    put(og, "side", made["side"]("p2", stock=3))
    result = merged(og)
    assert dispositions(result) == {"node:Item": "merged"}
    assert PART not in og.snapshot().tables
    stocks = column(og, "main", "stock", "node:Item")
    assert stocks == {"p1": 2, "p2": 3, "p3": 1, "p4": 1}
    assert rows(og, "main", HOLDS)["h1"]["dst"] == "p1"


def test_a_rename_and_nothing_else(og: Omnigraph) -> None:
    evolve(og, "side", *RENAMED)
    put(og, "main", bin("b9"))
    merged(og)
    assert set(rows(og, "main", "node:Item")) == {"p1", "p2", "p3", "p4"}


def test_conflicts_name_rows_as_the_target_does(og: Omnigraph) -> None:
    evolve(og, "side", *RENAMED)
    put(og, "main", part("p1", stock=2))
    put(og, "side", item("p1", stock=3))
    assert told(og.branch_merge("side", dry_run=True)) == [(PART, "p1", "divergent_update")]
    og.branch_merge("side", choices={(PART, "p1"): "theirs"})
    assert column(og, "main", "stock", "node:Item")["p1"] == 3


def test_a_type_that_both_have_added(og: Omnigraph) -> None:
    for branch, titles in (("main", "ab"), ("side", "bc")):
        evolve(og, branch, NOTED)
        put(og, branch, *(note(title) for title in titles))
    result = merged(og)
    assert dispositions(result) == {"node:Note": "merged"}
    assert set(rows(og, "main", "node:Note")) == {"a", "b", "c"}


def test_a_new_edge_type_to_nodes_that_are_gone(og: Omnigraph) -> None:
    evolve(og, "side", ("node Bin {", "edge Near: Bin -> Bin\n\nnode Bin {"))
    put(og, "side", {"edge": "Near", "from": "b1", "to": "b2", "data": {"id": "n1"}})
    og.mutate('query q() { delete Bin where code = "b2" }')
    assert told(og.branch_merge("side", dry_run=True)) == [("edge:Near", "n1", "orphan_edge")]


# What one side dropped


DROPPED: tuple[Edit, ...] = (
    ("edge Holds: Bin -> Part {\n  count: I64?\n}\n", ""),
    ("node Bin {\n  code: String @key\n}\n", ""),
)


def test_a_dropped_type(og: Omnigraph) -> None:
    evolve(og, "side", *DROPPED)
    put(og, "main", part("p1", stock=2))
    og.optimize()  # other versions, the same rows
    result = merged(og)
    assert dispositions(result) == {BIN: "removed", HOLDS: "removed"}
    assert BIN not in og.snapshot().tables
    assert og.schema_show().source.count("node") == 1


@pytest.mark.parametrize(("dropper", "writer"), [("main", "side"), ("side", "main")])
def test_a_dropped_type_whose_rows_the_other_changed(
    og: Omnigraph, dropper: str, writer: str
) -> None:
    evolve(og, dropper, *DROPPED)
    put(og, writer, bin("b9"))
    (conflict,) = og.branch_merge("side", dry_run=True).conflicts
    assert (conflict.table_key, str(conflict.kind)) == (BIN, "schema_conflict")
    with pytest.raises(MergeConflicts):
        og.branch_merge("side")


@pytest.mark.parametrize(("dropper", "writer"), [("main", "side"), ("side", "main")])
def test_a_dropped_property(og: Omnigraph, dropper: str, writer: str) -> None:
    evolve(og, dropper, UNNAMED)
    put(og, writer, part("p1", stock=2))
    merged(og)
    assert "name" not in og.table(og.snapshot(), PART).schema.names
    assert column(og, "main", "stock")["p1"] == 2


@pytest.mark.parametrize(("dropper", "writer"), [("main", "side"), ("side", "main")])
def test_a_dropped_property_that_the_other_has_written(
    og: Omnigraph, dropper: str, writer: str
) -> None:
    evolve(og, dropper, UNNAMED)
    put(og, writer, *(part(f"p{n}", name="x") for n in (1, 2, 3, 4, 5)))
    (conflict,) = og.branch_merge("side", dry_run=True).conflicts
    assert (conflict.table_key, str(conflict.kind)) == (PART, "schema_conflict")
    assert conflict.properties == ("name",)
    assert "`name`, in 'p1', 'p2', 'p3' and 2 more" in conflict.message


# Rules that one side has made stricter


def test_rows_of_the_source_under_rules_of_the_target(og: Omnigraph) -> None:
    evolve(og, "main", ("0..100", "0..10"), ("name: String?", "name: String? @unique"))
    put(og, "main", part("p1", stock=1, name="a"))
    put(og, "side", part("p2", stock=50), part("p3", name="a"), part("p4", name="b"))
    put(og, "side", part("p9", name="b"))
    found = og.branch_merge("side", dry_run=True)
    assert told(found) == [
        (PART, "p2", "value_constraint_violation"),
        (PART, "p3", "unique_violation"),
        (PART, "p9", "unique_violation"),
    ]
    assert found.conflicts[2].message.endswith("was given before, at node:Part 'p4'")


def test_rows_of_the_target_under_rules_of_the_source(og: Omnigraph) -> None:
    evolve(og, "side", ("0..100", "0..10"), ("name: String?", "name: String? @unique"))
    put(og, "side", part("p1", stock=1, name="a"))
    put(og, "main", part("p2", stock=50), part("p3", name="a"))
    found = {(id, kind) for _, id, kind in told(og.branch_merge("side", dry_run=True))}
    assert ("p2", "value_constraint_violation") in found
    assert any(kind == "unique_violation" for _, kind in found)


def test_rows_that_the_source_has_mended_before_it_was_strict(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=50))
    og.branch_merge("main", into="side")
    put(og, "side", part("p1", stock=5))
    evolve(og, "side", ("0..100", "0..10"))
    put(og, "main", part("p2", stock=7))
    merged(og)
    assert column(og, "main", "stock") == {"p1": 5, "p2": 7, "p3": 1, "p4": 1}


def test_a_stricter_cardinality(og: Omnigraph) -> None:
    evolve(og, "side", ("edge Holds: Bin -> Part {", "edge Holds: Bin -> Part @card(0..1) {"))
    put(og, "main", holds("h2", "b1", "p2"))
    assert told(og.branch_merge("side", dry_run=True)) == [(HOLDS, None, "cardinality_violation")]


def test_lookups_in_columns_that_will_be_others(og: Omnigraph) -> None:
    """Values are looked for under the later name, and where the column is still to come."""
    evolve(og, "side", ("serial: String? @unique", 'code: String? @unique @rename_from("serial")'))
    put(og, "main", part("p1", serial="x"))
    put(og, "side", part("p2", code="x"))
    assert told(og.branch_merge("side", dry_run=True)) == [(PART, "p2", "unique_violation")]
    drop(og, "main", "p1")
    merged(og)
    assert column(og, "main", "code") == {"p2": "x", "p3": None, "p4": None}


def test_schemas_that_exclude_each_other(og: Omnigraph) -> None:
    evolve(og, "main", ("name: String?", "name: String?\n  size: I64?"))
    evolve(og, "side", ("name: String?", "name: String?\n  size: String?"))
    put(og, "main", bin("b9"), holds("h1", "b1", "p1", count=1))
    put(og, "side", holds("h1", "b1", "p1", count=2))
    found = og.branch_merge("side", dry_run=True)
    assert told(found) == [
        (HOLDS, "h1", "divergent_update"),
        (PART, None, "schema_conflict"),
    ]
    assert not found.is_schema_changed


def test_a_new_type_under_an_interface_that_grew(og: Omnigraph) -> None:
    evolve(og, "main", ("node Bin {", "interface Named {\n  title: String?\n}\n\nnode Bin {"))
    og.branch_merge("main", into="side")
    evolve(
        og, "side", ("node Bin {", "node Lamp implements Named {\n  watts: I64?\n}\n\nnode Bin {")
    )
    put(og, "side", {"type": "Lamp", "data": {"id": "l1", "watts": 5, "title": "t"}})
    evolve(og, "main", ("title: String?", "title: String?\n  lead: String?"))
    result = merged(og)
    assert dispositions(result) == {"node:Lamp": "adopted"}
    assert rows(og, "main", "node:Lamp") == {"l1": {"id": "l1", "watts": 5, "title": "t"}}
    assert "lead" in og.table(og.snapshot(), "node:Lamp").schema.names
    put(og, "main", {"type": "Lamp", "data": {"id": "l2", "lead": "x"}})


def test_a_type_takes_the_name_of_one_that_goes(og: Omnigraph) -> None:
    evolve(og, "side", *DROPPED)
    evolve(
        og,
        "side",
        ("node Part {", 'node Bin @rename_from("Part") {'),
        ("Part -> Part", "Bin -> Bin"),
    )
    put(og, "main", part("p1", stock=2))
    result = merged(og)
    assert PART not in og.snapshot().tables
    assert column(og, "main", "stock", BIN) == {"p1": 2, "p2": 1, "p3": 1, "p4": 1}
    assert result.is_schema_changed


def test_a_new_type_takes_the_name_of_a_renamed_one(og: Omnigraph) -> None:
    evolve(og, "side", *RENAMED)
    evolve(og, "side", ("node Bin {", "node Part {\n  sku: String @key\n}\n\nnode Bin {"))
    put(og, "side", part("new"))
    put(og, "main", part("p1", stock=2))
    result = merged(og)
    assert dispositions(result) == {PART: "adopted"}
    assert set(rows(og, "main", PART)) == {"new"}
    assert column(og, "main", "stock", "node:Item") == {"p1": 2, "p2": 1, "p3": 1, "p4": 1}


def test_a_picked_schema_of_another_line_of_history(og: Omnigraph) -> None:
    evolve(og, "side", NOTED)
    evolve(og, "side", GRADED)
    graded = og.head_commit_id_for_branch("side")
    evolve(og, "main", ("name: String?", "name: String?\n  colour: String?"))
    (conflict,) = og.cherry_pick(graded, dry_run=True).conflicts
    assert (conflict.table_key, str(conflict.kind)) == ("schema", "schema_conflict")
