"""Branches that merged each other crosswise: no single commit tells what each has changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import MergeConflicts
from omnigraph_core.history import bases
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import (
    HOLDS,
    PART,
    bin,
    column,
    copied,
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
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    made = new_graph(tmp_path_factory.mktemp("parted") / "graph")
    made.branch_create("side")
    return made


@pytest.fixture(scope="module")
def crossed(parted: Omnigraph, tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """Each side has changed a part, and both have both changes."""
    made = copied(parted, tmp_path_factory.mktemp("crossed"))
    put(made, "side", part("p2", stock=9))
    put(made, "main", part("p1", stock=2))
    cross(made)
    return made


@pytest.fixture(scope="module")
def at_odds(parted: Omnigraph, tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    """Both sides have changed one part, and each has kept its own."""
    made = copied(parted, tmp_path_factory.mktemp("odds"))
    put(made, "main", part("p2", stock=2))
    put(made, "side", part("p2", stock=3))
    cross(made, resolve="ours")
    return made


@pytest.fixture
def og(parted: Omnigraph, tmp_path: Path) -> Omnigraph:
    """With a branch `side` where main is."""
    return copied(parted, tmp_path)


def cross(og: Omnigraph, *, strategy: str = "row", resolve: str | None = None) -> None:
    """Merge both into each other, each as it is before the other gets there."""
    og.branch_create("was_main")
    og.branch_create("was_side", source="side")
    og.branch_merge("was_main", into="side", strategy=strategy, resolve=resolve)
    og.branch_merge("was_side", strategy=strategy, resolve=resolve)
    og.branch_delete("was_main")
    og.branch_delete("was_side")


@pytest.mark.parametrize("taken_back", ["p1", "p2"])
@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_what_was_taken_back_stays_so(
    crossed: Omnigraph, tmp_path: Path, taken_back: str, source: str, target: str
) -> None:
    """Whoever took it back, and wherever it came from."""
    og = copied(crossed, tmp_path)
    assert graph(og, "main") == graph(og, "side")
    put(og, "main", part(taken_back, stock=1))
    result = og.branch_merge(source, into=target)
    assert result.outcome is MergeOutcome.MERGED
    assert column(og, target, "stock")[taken_back] == 1
    other = {"p1": "p2", "p2": "p1"}[taken_back]
    assert column(og, target, "stock")[other] == {"p1": 2, "p2": 9}[other]


def test_nothing_to_do_writes_nothing(crossed: Omnigraph, tmp_path: Path) -> None:
    og = copied(crossed, tmp_path)
    before = og.snapshot("main").tables
    result = og.branch_merge("side")
    assert dispositions(result) == {}
    assert og.snapshot("main").tables == before


def test_the_nearest_base_is_told(og: Omnigraph) -> None:
    put(og, "side", part("p2", stock=9))
    put(og, "main", part("p1", stock=2))
    bases = {og.head_commit_id_for_branch(name) for name in ("main", "side")}
    cross(og)
    found = og.branch_merge("side", dry_run=True).base_commit_id
    assert found in bases
    assert og.branch_merge("main", into="side", dry_run=True).base_commit_id == found


def test_inserts_deletes_and_edges(og: Omnigraph) -> None:
    put(og, "main", part("p8"), holds("h8", "b2", "p8"))
    drop(og, "main", "p4")
    put(og, "side", part("p9"), holds("h9", "b2", "p9"))
    drop(og, "side", "p3")
    cross(og)
    drop(og, "main", "p9")  # and with it the edge
    put(og, "main", part("p3", stock=7))
    put(og, "side", part("p8", stock=5), bin("b3"))
    result = og.branch_merge("side")
    assert not result.conflicts
    assert column(og, "main", "stock") == {"p1": 1, "p2": 1, "p3": 7, "p8": 5}
    assert set(rows(og, "main", HOLDS)) == {"h1", "h8"}
    og.branch_merge("main", into="side")
    assert graph(og, "side") == graph(og, "main")


def test_rules_are_checked_as_ever(og: Omnigraph) -> None:
    put(og, "main", part("p8"))
    put(og, "side", part("p9"))
    cross(og)
    drop(og, "main", "p9")
    put(og, "side", holds("h9", "b2", "p9"))
    assert told(og.branch_merge("side", dry_run=True)) == [(HOLDS, "h9", "orphan_edge")]


def test_by_property(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=1, name="bolt"))
    put(og, "side", part("p1", stock=5))
    cross(og, strategy="property")
    assert rows(og, "main")["p1"] == {"id": "p1", "sku": "p1", "stock": 5, "name": "bolt"}
    put(og, "main", part("p1", stock=1, name="bolt"))
    put(og, "side", part("p1", stock=5, name="nut"))
    og.branch_merge("side", strategy="property")
    assert rows(og, "main")["p1"] == {"id": "p1", "sku": "p1", "stock": 1, "name": "nut"}


def test_what_the_bases_disagree_about_has_to_be_decided(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=2), part("p2", stock=2))
    put(og, "side", part("p1", stock=3), part("p2", stock=3))
    cross(og, resolve="ours")
    result = og.branch_merge("side", dry_run=True)
    both = [(PART, id, "divergent_insert") for id in ("p1", "p2")]
    assert told(result) == both
    assert [(item.base, _stock(item.ours), _stock(item.theirs)) for item in result.conflicts] == [
        (None, 2, 3),
        (None, 2, 3),
    ]
    with pytest.raises(MergeConflicts):
        og.branch_merge("side")
    choices = {(PART, "p1"): "ours", (PART, "p2"): "theirs"}
    assert og.branch_merge("side", choices=choices).resolved == 2
    assert column(og, "main", "stock") == {"p1": 2, "p2": 3, "p3": 1, "p4": 1}


def _stock(row: object) -> object:
    assert isinstance(row, dict)
    return row["stock"]


@pytest.mark.parametrize("resolve", ["ours", "theirs"])
@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_deleted_row_that_the_bases_disagree_about_does_not_come_back(
    at_odds: Omnigraph, tmp_path: Path, source: str, target: str, resolve: str
) -> None:
    og = copied(at_odds, tmp_path)
    drop(og, "main", "p2")
    result = og.branch_merge(source, into=target, dry_run=True)
    assert told(result) == [(PART, "p2", "delete_vs_update")]
    og.branch_merge(source, into=target, resolve=resolve)
    chosen = target if resolve == "ours" else source
    assert ("p2" in rows(og, target)) == (chosen == "side")


def test_rounds_after_rounds(og: Omnigraph) -> None:
    """Each base is itself made of several."""
    for at in range(2, 6):
        put(og, "main", part("p1", stock=at), part(f"m{at}"))
        put(og, "side", part("p2", stock=at), part(f"s{at}"))
        cross(og)
    put(og, "main", part("p2", stock=1))
    drop(og, "main", "s3")
    put(og, "side", part("p1", stock=1))
    drop(og, "side", "m3")
    assert not og.branch_merge("side").conflicts
    assert column(og, "main", "stock") == {
        **dict.fromkeys(("p1", "p2", "p3", "p4"), 1),
        **dict.fromkeys(("m2", "m4", "m5", "s2", "s4", "s5")),
    }


def test_the_oldest_of_many_rounds_are_let_go(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that both have agreed on since are known; one that never rests has to be decided."""
    monkeypatch.setattr(bases, "MOST_LEVELS", 2)
    for at in range(2, 7):
        put(og, "main", part(f"m{at}"), part("p1", stock=at))
        put(og, "side", part(f"s{at}"))
        cross(og, resolve="ours" if at > 3 else None)
    drop(og, "main", "s2")
    drop(og, "main", "s6")
    drop(og, "side", "m3")
    put(og, "side", part("p2", stock=8))
    assert told(og.branch_merge("side", dry_run=True)) == [(PART, "p1", "divergent_insert")]
    og.branch_merge("side", resolve="ours")
    assert column(og, "main", "stock") == {
        "p1": 6,
        "p2": 8,
        "p3": 1,
        "p4": 1,
        **dict.fromkeys(("m2", "m4", "m5", "m6", "s3", "s4", "s5")),
    }


# Schemas


NOTE = "node Note {\n  title: String @key\n  text: String?\n}\n\nnode Bin {"


def note(title: str, **values: str) -> dict[str, object]:
    return {"type": "Note", "data": {"title": title, **values}}


def test_each_side_adds_to_the_schema(og: Omnigraph) -> None:
    evolve(og, "main", ("name: String?", "name: String?\n  grade: String?"))
    put(og, "main", part("p1", stock=1, grade="a"), part("p3", stock=1, grade="a"))
    evolve(og, "side", ("name: String?", "name: String?\n  colour: String?"), ("node Bin {", NOTE))
    put(og, "side", part("p2", stock=1, colour="red"), note("n1"), note("n2"))
    cross(og)
    put(og, "main", part("p2", stock=1), part("p4", stock=1, colour="blue"))
    put(og, "main", note("n1", text="changed"))
    put(og, "side", part("p1", stock=1), note("n3"))
    result = og.branch_merge("side")
    assert not result.conflicts
    assert column(og, "main", "colour") == {"p1": None, "p2": None, "p3": None, "p4": "blue"}
    assert column(og, "main", "grade") == {"p1": None, "p2": None, "p3": "a", "p4": None}
    assert column(og, "main", "text", "node:Note") == {"n1": "changed", "n2": None, "n3": None}
    og.branch_merge("main", into="side")
    assert graph(og, "side") == graph(og, "main")


def test_both_sides_add_the_same_type(og: Omnigraph) -> None:
    """At different times, so that it has two ids and two tables."""
    evolve(og, "main", ("name: String?", "name: String?\n  grade: String?"))
    evolve(og, "main", ("node Bin {", NOTE))
    evolve(og, "side", ("node Bin {", NOTE))
    put(og, "main", note("m1"), note("m2"))
    put(og, "side", note("s1"), note("s2"))
    cross(og)
    change = {"text": "changed"}
    put(og, "main", note("m1", **change), note("s1", **change))
    put(og, "side", note("s2", **change), note("n1"))
    og.branch_merge("side")
    assert column(og, "main", "text", "node:Note") == {
        **dict.fromkeys(("m1", "s1", "s2"), "changed"),
        **dict.fromkeys(("m2", "n1")),
    }
    og.branch_merge("main", into="side")
    assert graph(og, "side") == graph(og, "main")


def test_one_base_lacks_a_value_that_the_other_requires(og: Omnigraph) -> None:
    """What is compared with need not keep the rules; what is merged has to, and does."""
    put(og, "main", part("p8"))
    evolve(og, "side", ("stock: I64?", "stock: I64"))
    put(og, "side", part("p2", stock=9))
    og.branch_create("was_main")
    og.branch_create("was_side", source="side")
    for branch, source in (("main", "was_side"), ("side", "was_main")):
        with pytest.raises(MergeConflicts):
            og.branch_merge(source, into=branch)
    put(og, "main", part("p8", stock=4))
    og.branch_merge("was_side")
    og.branch_create("filled", source="was_main")
    put(og, "filled", part("p8", stock=4))
    og.branch_merge("filled", into="side")
    put(og, "main", part("p2", stock=1))
    assert not og.branch_merge("side").conflicts
    assert column(og, "main", "stock") == {"p1": 1, "p2": 1, "p3": 1, "p4": 1, "p8": 4}


def test_bases_whose_schemas_exclude_each_other(og: Omnigraph) -> None:
    for branch, type in (("main", "String?"), ("side", "I64?")):
        evolve(og, branch, ("name: String?", f"name: String?\n  grade: {type}"))
        og.branch_create(f"was_{branch}", source=branch)
        source = og.schema_show(branch).source.replace(f"  grade: {type}\n", "")
        og.schema_apply(source, branch=branch, allow_data_loss=True)
    og.branch_merge("was_main", into="side")
    og.branch_merge("was_side")
    result = og.branch_merge("side", dry_run=True)
    assert {str(item.kind) for item in result.conflicts} == {"schema_conflict"}
    assert "one by one" in result.conflicts[0].message
    with pytest.raises(MergeConflicts):
        og.branch_merge("side")


# Cleanup


def test_cleanup_keeps_what_the_base_is_made_of(og: Omnigraph) -> None:
    for at in range(2, 5):
        put(og, "side", part("p2", stock=at))
        put(og, "main", part("p1", stock=at))
        cross(og)
    for at in range(3):
        put(og, "side", part("p3", stock=4 + at))
        put(og, "main", part("p4", stock=at))
    put(og, "main", part("p2", stock=1))
    clean_up(og, keep=1)
    clean_up(og, keep=1)
    assert not og.branch_merge("side").conflicts
    assert column(og, "main", "stock") == {"p1": 4, "p2": 1, "p3": 6, "p4": 2}
