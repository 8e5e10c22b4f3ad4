"""Diffs and the feed across changes of the schema: rows count as the later schema has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff.model import ChangeFilter
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import SnapshotNotFound
from omnigraph_core.history.snapshots import ReadTarget
from tests.integration.diff.conftest import load, part
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.diff.model import ChangeSet

FIRST = """
node Part { sku: String @key  size: I32?  note: String? }
node Bin { code: String @key }
edge Fits: Part -> Bin
"""
DEFAULTED = FIRST.replace("note: String?", 'note: String?  state: String @default("new")')
RENAMED = """
node Piece @rename_from("Part") {
  sku: String @key
  width: I32? @rename_from("size")
  note: String?
}
node Bin { code: String @key }
edge Fits: Piece -> Bin
"""
WIDER = FIRST.replace("I32?", "I64?")
SHORTER = FIRST.replace("note: String?", "")


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    graph = Omnigraph.init(str(tmp_path / "graph"), FIRST)
    load(
        graph,
        part("a", size=1, note="x"),
        part("b", size=2),
        part("c"),
        {"type": "Bin", "data": {"code": "n"}},
        {"edge": "Fits", "from": "a", "to": "n", "data": {"id": "f"}},
    )
    graph.tag_create("first")
    return graph


BEFORE = ReadTarget(tag="first")


def told(found: ChangeSet) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (str(item.op), f"{item.type_name} {item.id}", item.properties) for item in found.changes
    ]


def kinds(found: ChangeSet) -> list[str]:
    return [step.split()[0] for step in found.stats.schema_steps]


def test_a_new_property_is_no_change_of_rows(og: Omnigraph) -> None:
    og.schema_apply(DEFAULTED)
    found = og.diff_between(BEFORE, "main")
    assert (told(found), kinds(found)) == ([], ["add_property"])
    load(og, part("a", size=1, note="x", state="old"), part("b", size=2, state="new"))
    found = og.diff_between(BEFORE, "main")
    assert told(found) == [("update", "Part a", ("state",))]
    (change,) = found.changes
    assert change.before == {"id": "a", "sku": "a", "size": 1, "note": "x"}
    assert change.after == {"id": "a", "sku": "a", "size": 1, "note": "x", "state": "old"}


def test_back_to_where_a_property_was_not(og: Omnigraph) -> None:
    og.schema_apply(DEFAULTED)
    load(og, part("a", size=1, note="x", state="old"))
    found = og.diff_between("main", BEFORE)
    assert (told(found), kinds(found)) == ([], ["drop_property"])


def test_renames_continue(og: Omnigraph) -> None:
    og.schema_apply(RENAMED)
    found = og.diff_between(BEFORE, "main")
    assert (told(found), kinds(found)) == ([], ["rename_type", "rename_property"])
    load(og, {"type": "Piece", "data": {"sku": "a", "width": 9, "note": "x"}})
    found = og.diff_between(BEFORE, "main")
    assert told(found) == [("update", "Piece a", ("width",))]
    (change,) = found.changes
    assert change.table_key == "node:Piece"
    assert change.before == {"id": "a", "sku": "a", "size": 1, "note": "x"}
    assert change.after == {"id": "a", "sku": "a", "width": 9, "note": "x"}
    back = og.diff_between("main", BEFORE)
    assert told(back) == [("update", "Part a", ("size",))]
    for name in ("Part", "Piece"):
        by_name = og.diff_between(BEFORE, "main", ChangeFilter(type_names=frozenset({name})))
        assert by_name.changes == found.changes


def test_a_wider_type_is_no_change_either_way(og: Omnigraph) -> None:
    og.schema_apply(WIDER)
    assert told(og.diff_between(BEFORE, "main")) == []
    assert told(og.diff_between("main", BEFORE)) == []
    load(og, part("b", size=2**40))
    (there,) = og.diff_between(BEFORE, "main").changes
    assert (there.id, there.properties) == ("b", ("size",))
    (back,) = og.diff_between("main", BEFORE).changes
    assert (back.id, back.properties) == ("b", ("size",))
    assert (back.before or {})["size"] == 2**40
    assert (back.after or {})["size"] == 2


def test_a_property_that_is_gone(og: Omnigraph) -> None:
    """Towards the schema that has it, its values are what differs."""
    og.schema_apply(SHORTER)
    assert told(og.diff_between(BEFORE, "main")) == []
    assert told(og.diff_between("main", BEFORE)) == [("update", "Part a", ("note",))]


def test_types_come_and_go(og: Omnigraph) -> None:
    og.schema_apply(
        "node Part { sku: String @key  size: I32?  note: String? } node Crate { c: I64? }"
    )
    load(og, {"type": "Crate", "data": {"id": "k", "c": 3}})
    found = og.diff_between(BEFORE, "main")
    assert told(found) == [
        ("delete", "Bin n", ()),
        ("insert", "Crate k", ()),
        ("delete", "Fits f", ()),
    ]
    assert kinds(found) == ["add_type", "drop_type", "drop_type"]
    og.schema_apply(FIRST)
    load(
        og,
        {"type": "Bin", "data": {"code": "n"}},
        {"edge": "Fits", "from": "a", "to": "n", "data": {"id": "f"}},
    )
    assert told(og.diff_between(BEFORE, "main")) == [], "made again as it was"


def test_branches_that_each_changed_the_schema(og: Omnigraph) -> None:
    og.branch_create("review")
    og.schema_apply(RENAMED, branch="review")
    og.schema_apply(DEFAULTED)
    load(og, part("b", size=3, state="new"))
    load(og, {"type": "Piece", "data": {"sku": "c", "width": 7}}, branch="review")
    found = og.diff_between("main", "review")
    assert told(found) == [
        ("update", "Piece b", ("width",)),
        ("update", "Piece c", ("width",)),
    ]
    assert set(kinds(found)) == {"rename_type", "rename_property", "drop_property"}
    back = og.diff_between("review", "main")
    assert told(back) == [("update", "Part b", ("size",)), ("update", "Part c", ("size",))]


def test_a_type_that_two_branches_made(og: Omnigraph) -> None:
    og.branch_create("review")
    for branch, value in (("main", 1), ("review", 2)):
        og.schema_apply(f"{FIRST} node Tag {{ name: String @key  n: I64? }}", branch=branch)
        rows = [{"type": "Tag", "data": {"name": name, "n": value}} for name in (branch, "both")]
        load(og, *rows, {"type": "Tag", "data": {"name": "same", "n": 0}}, branch=branch)
    found = og.diff_between("main", "review")
    assert told(found) == [
        ("update", "Tag both", ("n",)),
        ("delete", "Tag main", ()),
        ("insert", "Tag review", ()),
    ]
    assert found.stats.schema_steps == ()


def test_the_base_of_two_schemas_was_cleaned_up(og: Omnigraph) -> None:
    """Ids that both have still tell what continues: no two branches draw the same."""
    og.branch_create("review")
    og.schema_apply(RENAMED, branch="review")
    og.tag_create("renamed", "review")
    og.branch_delete("review")
    og.tag_delete("first")
    base = og.head_commit_id_for_branch()
    og.schema_apply(DEFAULTED)
    load(og, part("c", note="y", state="new"))
    clean_up(og, keep=1)
    with pytest.raises(SnapshotNotFound):
        og.snapshot_of(ReadTarget(snapshot_id=base))
    found = og.diff_between(ReadTarget(tag="renamed"), "main")
    assert told(found) == [("update", "Part c", ("note",))]


def test_the_feed_tells_when_the_schema_changes(og: Omnigraph) -> None:
    cursor = og.cursor_at()
    og.schema_apply(DEFAULTED)
    load(og, part("d"))
    og.schema_apply(RENAMED)
    page = og.poll(cursor)
    assert [(told(block.changes), kinds(block.changes)) for block in page.blocks] == [
        ([], ["add_property"]),
        ([("insert", "Part d", ())], []),
        ([], ["rename_type", "rename_property", "drop_property"]),
    ]
