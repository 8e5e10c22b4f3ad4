"""Types in the filter of a feed: followed when they are renamed, patient when they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff.model import ChangeFilter
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ChangeFeedGap, ConfigError, CursorRejected
from omnigraph_core.query.typed import EntityKind
from tests.integration.diff.conftest import load, part
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.diff.model import ChangePage

FIRST = """
node Part { sku: String @key  size: I64? }
node Bin { sku: String @key }
edge Fits: Part -> Bin
"""
RENAMED = FIRST.replace("node Part {", 'node Item @rename_from("Part") {').replace(
    "Part -> Bin", "Item -> Bin"
)
AGAIN = RENAMED.replace('Item @rename_from("Part")', 'Thing @rename_from("Item")').replace(
    "Item -> Bin", "Thing -> Bin"
)
SWAPPED = """
node Part @rename_from("Bin") { sku: String @key }
node Bin @rename_from("Item") { sku: String @key  size: I64? }
edge Fits: Bin -> Part
"""
WITHOUT = "node Bin { sku: String @key }"


def wanted(*names: str) -> ChangeFilter:
    return ChangeFilter(type_names=frozenset(names))


def row(type: str, sku: str, **values: object) -> dict[str, object]:
    return {"type": type, "data": {"sku": sku, **values}}


def told(page: ChangePage) -> list[str]:
    return [
        f"{change.type_name} {change.id}"
        for block in page.blocks
        for change in block.changes.changes
    ]


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    graph = Omnigraph.init(str(tmp_path / "graph"), FIRST)
    load(graph, row("Part", "a"), row("Bin", "b"))
    return graph


def test_a_renamed_type_is_followed(og: Omnigraph) -> None:
    cursor = og.cursor_at(filter=wanted("Part"))
    load(og, row("Part", "p1"), row("Bin", "b1"))
    og.schema_apply(RENAMED)
    load(og, row("Item", "p2"), row("Bin", "b2"))
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Part p1", "Item p2"]
    load(og, row("Item", "p3"))
    og.schema_apply(AGAIN)
    load(og, row("Thing", "p4"), row("Bin", "b4"))
    for name in ("Part", "Item", "Thing"):
        following = og.poll(page.cursor, filter=wanted(name))
        assert told(following) == ["Item p3", "Thing p4"]
        assert og.poll(following.cursor, filter=wanted(name)).blocks == ()
    for name in ("Part", "Thing"):
        everything = og.poll(cursor, filter=wanted(name))
        assert told(everything) == ["Part p1", "Item p2", "Item p3", "Thing p4"]


def test_commit_by_commit_is_the_same(og: Omnigraph) -> None:
    cursor = og.cursor_at(filter=wanted("Part"))
    for schema, type in ((FIRST, "Part"), (RENAMED, "Item"), (AGAIN, "Thing")):
        og.schema_apply(schema)
        load(og, row(type, type), row("Bin", type))
    whole = og.poll(cursor, filter=wanted("Part"))
    found: list[str] = []
    while True:
        page = og.poll(cursor, filter=wanted("Part"), most_commits=1)
        found += told(page)
        cursor = page.cursor
        if page.is_caught_up:
            break
    assert found == told(whole) == ["Part Part", "Item Item", "Thing Thing"]
    assert cursor == whole.cursor


def test_another_choice_of_types(og: Omnigraph) -> None:
    cursor = og.cursor_at(filter=wanted("Part"))
    og.schema_apply(RENAMED)
    page = og.poll(cursor, filter=wanted("Part"))
    for names in ((), ("Bin",), ("Part", "Bin"), ("Part", "Item"), ("Itme",)):
        for given in (cursor, page.cursor):
            with pytest.raises(CursorRejected, match="another filter"):
                og.poll(given, filter=wanted(*names))
    nodes = ChangeFilter(frozenset({EntityKind.NODE}), frozenset({"Part"}))
    with pytest.raises(CursorRejected, match="another filter"):
        og.poll(cursor, filter=nodes)
    with pytest.raises(CursorRejected, match="another filter"):
        og.poll(og.cursor_at(), filter=wanted("Item"))


def test_names_that_change_places(og: Omnigraph) -> None:
    """With one commit, as a merge brings it."""
    cursor = og.cursor_at(filter=wanted("Part"))
    og.branch_create("side")
    og.schema_apply(RENAMED, branch="side")
    half = SWAPPED.replace('node Bin @rename_from("Item")', "node Item")
    og.schema_apply(half.replace("Bin ->", "Item ->"), branch="side")
    og.schema_apply(SWAPPED.replace(' @rename_from("Bin")', ""), branch="side")
    og.branch_merge("side")
    load(og, row("Bin", "p1", size=1), row("Part", "b1"))
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Bin p1"]
    both = og.poll(og.cursor_at(filter=wanted("Part", "Bin")), filter=wanted("Bin", "Part"))
    assert both.blocks == ()


def test_another_type_takes_the_old_name(og: Omnigraph) -> None:
    """The reader asked for what was called so then."""
    cursor = og.cursor_at(filter=wanted("Part"))
    og.schema_apply(RENAMED)
    og.schema_apply(RENAMED + "node Part { sku: String @key }")
    load(og, row("Part", "n1"), row("Item", "p1"))
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Item p1"]
    fresh = og.cursor_at(filter=wanted("Part"))
    load(og, row("Part", "n2"), row("Item", "p2"))
    assert told(og.poll(fresh, filter=wanted("Part"))) == ["Part n2"]
    assert told(og.poll(page.cursor, filter=wanted("Part"))) == ["Item p2"]


def test_a_type_that_is_dropped_and_made_again(og: Omnigraph) -> None:
    cursor = og.cursor_at(filter=wanted("Part"))
    og.schema_apply(WITHOUT, allow_data_loss=True)
    load(og, row("Bin", "b1"))
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Part a"]
    assert [str(change.op) for change in page.blocks[0].changes.changes] == ["delete"]
    load(og, row("Bin", "b2"))
    page = og.poll(page.cursor, filter=wanted("Part"))
    assert (page.blocks, page.is_caught_up) == ((), True)
    assert og.poll(page.cursor, filter=wanted("Part")) == page
    og.schema_apply(FIRST)
    load(og, row("Part", "p1"), row("Bin", "b3"))
    assert told(og.poll(page.cursor, filter=wanted("Part"))) == ["Part p1"]
    assert told(og.poll(cursor, filter=wanted("Part"))) == ["Part a", "Part p1"]


def test_a_node_and_an_edge_of_one_name(og: Omnigraph) -> None:
    og.schema_apply(FIRST + "edge Part: Bin -> Bin")
    cursor = og.cursor_at(filter=wanted("Part"))
    og.schema_apply(RENAMED + "edge Part: Bin -> Bin")
    edge: dict[str, object] = {"edge": "Part", "from": "b", "to": "b", "data": {"id": "e1"}}
    load(og, row("Item", "p1"), edge)
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Item p1", "Part e1"]
    load(og, row("Item", "p2"))
    assert told(og.poll(page.cursor, filter=wanted("Item"))) == ["Item p2"]


def test_an_earlier_commit_under_todays_name(og: Omnigraph) -> None:
    first = og.head_commit_id_for_branch()
    load(og, row("Part", "p1"), row("Bin", "b1"))
    og.schema_apply(RENAMED + "node Note { sku: String @key }")
    load(og, row("Item", "p2"), row("Note", "n1"))
    for name in ("Part", "Item"):
        cursor = og.cursor_at(first, filter=wanted(name))
        page = og.poll(cursor, filter=wanted(name))
        assert told(page) == ["Part p1", "Item p2"]
        assert og.poll(page.cursor, filter=wanted("Item")).blocks == ()
    cursor = og.cursor_at(first, filter=wanted("Note"))
    assert told(og.poll(cursor, filter=wanted("Note"))) == ["Note n1"]
    with pytest.raises(ConfigError, match=r"no type `Itme` \(did you mean `Item`\?\)"):
        og.cursor_at(first, filter=wanted("Itme"))


def test_an_earlier_commit_that_was_cleaned_up(og: Omnigraph) -> None:
    first = og.head_commit_id_for_branch()
    for name in ("p1", "p2"):
        load(og, part(name))
    clean_up(og, keep=1)
    cursor = og.cursor_at(first, filter=wanted("Part"))
    with pytest.raises(ChangeFeedGap):
        og.poll(cursor, filter=wanted("Part"))


def test_a_rename_that_comes_with_a_merge(og: Omnigraph) -> None:
    og.branch_create("side")
    cursor = og.cursor_at(filter=wanted("Part"))
    og.schema_apply(RENAMED, branch="side")
    load(og, row("Item", "s1"), branch="side")
    load(og, row("Part", "m1"))
    og.branch_merge("side")
    load(og, row("Item", "m2"), row("Bin", "b1"))
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Part m1", "Item s1", "Item m2"]


def test_a_rename_that_is_taken_back(og: Omnigraph) -> None:
    before = og.head_commit_id_for_branch()
    cursor = og.cursor_at(filter=wanted("Part"))
    og.schema_apply(RENAMED)
    load(og, row("Item", "p1"))
    og.branch_reset("main", before, confirm=True)
    load(og, row("Part", "p2"))
    page = og.poll(cursor, filter=wanted("Part"))
    assert told(page) == ["Item p1", "Part p1", "Part p2"]
