"""Merges of two branches again and again, after both have added to their schemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import (
    column,
    copied,
    dispositions,
    evolve,
    graph,
    new_graph,
    part,
    put,
    rows,
    told,
)

if TYPE_CHECKING:
    from pathlib import Path

NOTE = "node:Note"
NOTED = ("node Bin {", "node Note {\n  title: String @key\n  text: String?\n}\n\nnode Bin {")
LISTED = ("node Bin {", "node List {\n  title: String @key\n  length: I64?\n}\n\nnode Bin {")


def extra(name: str) -> tuple[str, str]:
    return "name: String?", f"name: String?\n  {name}: String?"


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    made = new_graph(tmp_path_factory.mktemp("parted") / "graph")
    made.branch_create("side")
    return made


@pytest.fixture
def og(parted: Omnigraph, tmp_path: Path) -> Omnigraph:
    """Main and `side`, at the same commit."""
    return copied(parted, tmp_path)


def note(title: str, **values: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"title": title, **values}}


def list_of(title: str, **values: Any) -> dict[str, Any]:
    return {"type": "List", "data": {"title": title, **values}}


# Each side adds something else


def test_types_of_both(og: Omnigraph) -> None:
    evolve(og, "side", NOTED)
    evolve(og, "main", LISTED)
    put(og, "side", note("n1", text="a"))
    put(og, "main", list_of("l1", length=3))
    assert dispositions(og.branch_merge("side")) == {NOTE: "adopted"}
    put(og, "side", note("n2", text="b"))
    assert dispositions(og.branch_merge("side")) == {NOTE: "adopted"}
    evolve(og, "side", ("text: String?", "text: String? @unique"))
    put(og, "side", note("n3", text="c"))
    assert og.branch_merge("side").is_schema_changed
    assert column(og, "main", "text", NOTE) == {"n1": "a", "n2": "b", "n3": "c"}
    assert column(og, "main", "length", "node:List") == {"l1": 3}
    assert "@unique" in og.schema_show().source.partition("text")[2].partition("\n")[0]


def test_properties_of_both(og: Omnigraph) -> None:
    evolve(og, "side", extra("colour"))
    evolve(og, "main", extra("grade"))
    put(og, "side", part("p1", stock=1, colour="red"))
    put(og, "main", part("p2", stock=1, grade="g"))
    og.branch_merge("side")
    put(og, "side", part("p3", stock=1, colour="blue"))
    og.branch_merge("side")
    assert column(og, "main", "colour") == {"p1": "red", "p2": None, "p3": "blue", "p4": None}
    assert column(og, "main", "grade") == {"p1": None, "p2": "g", "p3": None, "p4": None}


def test_and_back_again(og: Omnigraph) -> None:
    evolve(og, "side", NOTED)
    evolve(og, "main", LISTED)
    put(og, "side", note("n1"))
    put(og, "main", list_of("l1"))
    og.branch_merge("side")
    put(og, "side", note("n2"))
    put(og, "main", list_of("l2"))
    og.branch_merge("main", into="side")
    assert set(rows(og, "side", NOTE)) == {"n1", "n2"}
    assert set(rows(og, "side", "node:List")) == {"l1", "l2"}
    assert og.branch_merge("side").outcome is MergeOutcome.FAST_FORWARD
    assert graph(og, "main") == graph(og, "side")


def test_a_commit_is_picked_after_a_merge(og: Omnigraph) -> None:
    evolve(og, "side", NOTED)
    evolve(og, "main", LISTED)
    put(og, "main", list_of("l1"))
    og.branch_merge("side")
    put(og, "side", note("n1"))
    og.cherry_pick(og.head_commit_id_for_branch("side"))
    assert set(rows(og, "main", NOTE)) == {"n1"}
    assert set(rows(og, "main", "node:List")) == {"l1"}


def test_a_type_that_the_target_has_not_cannot_be_picked_into(og: Omnigraph) -> None:
    evolve(og, "side", NOTED)
    evolve(og, "main", LISTED)
    put(og, "side", note("n1"))
    with pytest.raises(MergeConflicts) as caught:
        og.cherry_pick(og.head_commit_id_for_branch("side"))
    assert [item["table_key"] for item in caught.value.conflicts] == [NOTE]


# Both add the same type: it has a table on each side, and maybe an id


@pytest.mark.parametrize("other", [None, "main", "side"])
@pytest.mark.parametrize("has_rows", [True, False])
def test_the_same_type(og: Omnigraph, other: str | None, has_rows: bool) -> None:
    """Whoever has changed the schema before, so that the ids of the type differ."""
    if other is not None:
        evolve(og, other, extra("grade"))
    evolve(og, "main", NOTED)
    evolve(og, "side", NOTED)
    expected: dict[str, str | None] = {}
    if has_rows:
        put(og, "main", note("m1"))
        put(og, "side", note("s1"), note("s0"))
        expected = {"m1": None, "s1": "b", "s0": None}
    put(og, "main", part("p1", stock=3))
    og.branch_merge("side")
    put(og, "side", note("s1", text="b"), note("s2"))
    og.branch_merge("side")
    assert column(og, "main", "text", NOTE) == {**expected, "s1": "b", "s2": None}
    put(og, "side", note("s3"))
    og.cherry_pick(og.head_commit_id_for_branch("side"))
    og.branch_merge("side")
    put(og, "main", note("m2"))
    og.branch_merge("main", into="side")
    assert graph(og, "side") == graph(og, "main")
    put(og, "side", note("s4"))
    put(og, "main", note("m3"))
    og.branch_merge("side")
    assert set(rows(og, "main", NOTE)) == {*expected, "s1", "s2", "s3", "s4", "m2", "m3"}


@pytest.mark.parametrize("other", [None, "main", "side"])
def test_rows_of_the_same_type_conflict(og: Omnigraph, other: str | None) -> None:
    if other is not None:
        evolve(og, other, extra("grade"))
    evolve(og, "main", NOTED)
    evolve(og, "side", NOTED)
    put(og, "side", note("n1"), note("n2"))
    og.branch_merge("side")
    put(og, "main", note("n1", text="a"))
    put(og, "side", note("n1", text="b"), note("n2", text="b"))
    assert told(og.branch_merge("side", dry_run=True)) == [(NOTE, "n1", "divergent_update")]


@pytest.mark.parametrize("other", [None, "main", "side"])
@pytest.mark.parametrize("dropper", ["main", "side"])
def test_the_same_type_is_dropped_later(og: Omnigraph, other: str | None, dropper: str) -> None:
    if other is not None:
        evolve(og, other, extra("grade"))
    evolve(og, "main", NOTED)
    evolve(og, "side", NOTED)
    put(og, "side", note("n1"))
    og.branch_merge("side")
    source = og.schema_show(dropper).source
    declared = NOTED[1].removesuffix("node Bin {")
    og.schema_apply(source.replace(declared, ""), branch=dropper, allow_data_loss=True)
    og.branch_create("before")
    og.branch_merge("side")
    assert NOTE not in og.snapshot("main").tables
    writer = {"main": "side", "side": "before"}[dropper]
    if dropper == "main":
        put(og, "side", note("n2"))
        assert told(og.branch_merge("side", dry_run=True)) == [(NOTE, None, "schema_conflict")]
    else:
        put(og, writer, note("n2"))
        result = og.branch_merge("side", into=writer, dry_run=True)
        assert told(result) == [(NOTE, None, "schema_conflict")]


def test_a_third_branch_has_the_same_type_as_well(og: Omnigraph) -> None:
    og.branch_create("third")
    evolve(og, "third", extra("colour"))
    evolve(og, "side", extra("grade"))
    for branch in ("main", "side", "third"):
        evolve(og, branch, NOTED)
        put(og, branch, note(f"of_{branch}"))
    og.branch_merge("third", into="side")
    og.branch_merge("side")
    og.branch_merge("third")
    for branch in ("side", "third"):
        put(og, branch, note(f"of_{branch}", text="changed"), note(f"new_{branch}"))
    og.branch_merge("third")
    og.branch_merge("side")
    og.branch_merge("third", into="side")
    changed, other = {"of_side", "of_third"}, {"of_main", "new_side", "new_third"}
    expected = {**dict.fromkeys(changed, "changed"), **dict.fromkeys(other)}
    assert column(og, "main", "text", NOTE) == expected
    og.branch_merge("main", into="side")
    assert column(og, "side", "text", NOTE) == expected


def test_taking_back_a_merge_of_the_same_type(og: Omnigraph) -> None:
    evolve(og, "side", extra("grade"))
    evolve(og, "main", NOTED)
    evolve(og, "side", NOTED)
    put(og, "main", note("m1"))
    put(og, "side", note("s1"))
    og.branch_merge("side")
    put(og, "side", note("s2"))
    merge = og.branch_merge("side")
    assert merge.commit is not None
    og.revert(merge.commit.graph_commit_id)
    assert set(rows(og, "main", NOTE)) == {"m1", "s1"}


# Dropped and made anew: another type of the same name


SCHEMA = "node A { k: String @key\n x: I64? }\nnode B { k: String @key }\n"
A = "node A { k: String @key\n x: I64? }\n"


def a(key: str, **values: Any) -> dict[str, Any]:
    return {"type": "A", "data": {"k": key, **values}}


def remake(og: Omnigraph, branch: str, type: str) -> None:
    og.schema_apply(SCHEMA.replace(A, ""), branch=branch, allow_data_loss=True)
    og.schema_apply(SCHEMA.replace("I64?", type), branch=branch)


@pytest.mark.parametrize("type", ["String?", "I64?"])
@pytest.mark.parametrize(("maker", "writer"), [("main", "side"), ("side", "main")])
def test_a_type_made_anew_is_another_one(
    tmp_path: Path, maker: str, writer: str, type: str
) -> None:
    """One conflict tells that, however many values have no place any more."""
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    put(og, "main", a("a1", x=1))
    og.branch_create("side")
    remake(og, maker, type)
    put(og, maker, a("a9"))
    put(og, writer, a("a2", x=2))
    result = og.branch_merge("side", dry_run=True)
    assert told(result) == [("node:A", None, "schema_conflict")]
    assert "dropped this type" in result.conflicts[0].message


@pytest.mark.parametrize("maker", ["main", "side"])
def test_a_type_made_anew_replaces_the_old_one(tmp_path: Path, maker: str) -> None:
    """Also if the other side has changed the schema elsewhere, and with every later merge."""
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    put(og, "main", a("a1", x=1))
    og.branch_create("side")
    remake(og, maker, "String?")
    put(og, maker, a("a9", x="t"))
    other = {"main": "side", "side": "main"}[maker]
    evolve(og, other, ("node B { k: String @key }", "node B { k: String @key\n y: I64? }"))
    og.load(json.dumps({"type": "B", "data": {"k": "b1", "y": 1}}).encode(), branch=other)
    og.branch_merge("side")
    assert column(og, "main", "x", "node:A") == {"a9": "t"}
    put(og, "main", a("a10", x="u"))
    og.branch_merge("main", into="side")
    put(og, "side", a("a11", x="v"))
    og.branch_merge("side")
    assert column(og, "main", "x", "node:A") == {"a9": "t", "a10": "u", "a11": "v"}
    assert column(og, "main", "y", "node:B") == {"b1": 1}


@pytest.mark.parametrize(("maker", "dropper"), [("main", "side"), ("side", "main")])
@pytest.mark.parametrize("has_rows", [True, False])
def test_a_type_is_dropped_here_and_made_anew_there(
    tmp_path: Path, maker: str, dropper: str, has_rows: bool
) -> None:
    """It goes, unless it has rows that nobody has dropped."""
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    og.branch_create("side")
    remake(og, maker, "I64?")
    og.schema_apply(SCHEMA.replace(A, ""), branch=dropper, allow_data_loss=True)
    if has_rows:
        put(og, maker, a("a9"))
        assert told(og.branch_merge("side", dry_run=True)) == [("node:A", None, "schema_conflict")]
    else:
        og.branch_merge("side")
        assert set(og.snapshot("main").tables) == {"node:B"}
