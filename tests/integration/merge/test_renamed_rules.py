"""Rules that came with, before or after a rename on one branch hold for rows of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import MergeConflicts
from tests.integration.merge.small_graph import change, evolve, new_graph, part, put

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph

    Edits = Sequence[tuple[str, str]]

HINT = ' @rename_from("Part")'
ITEM = (
    ("node Part {", f"node Item{HINT} {{"),
    ("Bin -> Part", "Bin -> Item"),
    ("Part -> Part", "Item -> Item"),
)
THING = (
    (f"node Item{HINT}", 'node Thing @rename_from("Item")'),
    ("Bin -> Item", "Bin -> Thing"),
    ("Item -> Item", "Thing -> Thing"),
)
UNIQUE = ("name: String?", "name: String? @unique")
LABEL = 'label: String? @rename_from("name")'


def conflicts(og: Omnigraph) -> list[tuple[object, object]]:
    with pytest.raises(MergeConflicts) as refused:
        og.branch_merge("side")
    return [(item["row_id"], item["kind"]) for item in refused.value.conflicts]


@pytest.mark.parametrize(
    "applied",
    [
        ((*ITEM, UNIQUE),),
        (ITEM, (UNIQUE,)),
        (ITEM, ((HINT, ""), UNIQUE)),
        (ITEM, (*THING, UNIQUE)),
        ((("name: String?", LABEL),), ((LABEL, "label: String? @unique"),)),
    ],
    ids=["at once", "after", "without the hint", "renamed twice", "a property"],
)
def test_what_became_unique_must_be_so_in_the_target(
    tmp_path: Path, applied: Sequence[Edits]
) -> None:
    og = new_graph(tmp_path / "g")
    og.branch_create("side")
    for edits in applied:
        evolve(og, "side", *edits)
    put(og, "main", part("p7", name="same"), part("p8", name="same"))
    assert conflicts(og) == [("p8", "unique_violation")]
    assert og.verify(is_deep=True).is_sound


def test_a_narrower_range_of_a_renamed_property(tmp_path: Path) -> None:
    og = new_graph(tmp_path / "g")
    og.branch_create("side")
    hint = ' @rename_from("stock")'
    evolve(
        og,
        "side",
        ("stock: I64?", f"amount: I64?{hint}"),
        ("@range(stock, 0..100)", "@range(amount, 0..100)"),
    )
    evolve(og, "side", (hint, ""), ("0..100", "0..10"))
    put(og, "main", part("p7", stock=50))
    assert conflicts(og) == [("p7", "value_constraint_violation")]


def test_a_default_that_came_and_went_leaves_rows_without_a_value(tmp_path: Path) -> None:
    og = new_graph(tmp_path / "g")
    og.branch_create("side")
    with_default = 'name: String?\n  grade: String @default("a")'
    evolve(og, "side", ("name: String?", with_default))
    evolve(og, "side", (' @default("a")', ""))
    put(og, "main", part("p7"))
    assert conflicts(og) == [(None, "schema_conflict")]


def test_the_same_default_does_when_the_target_has_no_rows_of_its_own(tmp_path: Path) -> None:
    og = new_graph(tmp_path / "g")
    og.branch_create("side")
    with_default = 'name: String?\n  grade: String @default("a")'
    evolve(og, "side", ("name: String?", with_default))
    evolve(og, "side", (' @default("a")', ""))
    change(og, "main", 'insert Bin { code: "b9" }')
    og.branch_merge("side")
    assert og.verify(is_deep=True).is_sound


def test_a_unique_value_that_stays_is_not_looked_for(tmp_path: Path) -> None:
    og = new_graph(tmp_path / "g")
    put(og, "main", part("p1", serial="s1"), part("p2", serial="s2"))
    og.branch_create("side")
    put(og, "side", part("p1", serial="s1", stock=5))
    put(og, "main", part("p3", serial="s3"), part("p4", serial="s4"))
    og.branch_merge("side")
    assert og.verify(is_deep=True).is_sound


def test_a_value_that_another_row_of_the_source_gave_up_is_free(tmp_path: Path) -> None:
    og = new_graph(tmp_path / "g")
    put(og, "main", part("p1", serial="s1"), part("p2", serial="s2"))
    og.branch_create("side")
    change(og, "side", 'update Part set { serial: "s9" } where sku = "p1"')
    change(og, "side", 'update Part set { serial: "s1" } where sku = "p2"')
    put(og, "main", part("p3", serial="s3"))
    og.branch_merge("side")
    assert og.verify(is_deep=True).is_sound


def test_a_value_that_the_target_gave_to_another_row_is_taken(tmp_path: Path) -> None:
    og = new_graph(tmp_path / "g")
    put(og, "main", part("p1", serial="s1"))
    og.branch_create("side")
    put(og, "side", part("p2", serial="s7", stock=1))
    put(og, "main", part("p3", serial="s7", stock=1))
    assert conflicts(og) == [("p2", "unique_violation")]
