"""Merges with and without conflicts, single commits brought over and taken back, resets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import (
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    MergeConflicts,
    PreconditionFailed,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import (
    MergeConflict,
    MergeConflictKind,
    MergeOutcome,
    MergeResult,
    MergeSide,
    MergeStrategy,
    TableDisposition,
    TableMerge,
)
from tests.behaviour.stock import SCHEMA, amounts, bin_, holds, part, put
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.ways import Place

NO_COMMIT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def heads(place: Place, *branches: str) -> list[str]:
    return [place.at_hand.head_commit_id_for_branch(branch) for branch in branches]


def check(place: Place, done: MergeResult, expected: MergeResult) -> None:
    """What a merge says, with the commit that is the head of its target now."""
    assert done.commit is not None
    assert told(done.commit) == told(place.at_hand.snapshot(done.target).commit)
    assert told(replace(done, commit=None)) == told(expected)


@pytest.fixture
def forked(place: Place) -> Place:
    """Main and `side` changed the bolt differently; each has something the other has not."""
    place.at_hand.branch_create("side")
    put(place.at_hand, part("bolt", stock=1), part("nut", size=5), part("new"), branch="side")
    put(place.at_hand, part("bolt", stock=2), part("nut", weight=2.5), bin_("b3"))
    return place


def test_a_merge_that_only_goes_forward(place: Place) -> None:
    graph = place.graph
    base = graph.head_commit_id_for_branch()
    graph.branch_create("side")
    put(graph, part("new", stock=1), part("nut", stock=4), branch="side")
    side = graph.head_commit_id_for_branch("side")
    tried = place.both(lambda graph: graph.branch_merge("side", dry_run=True))
    kept = (TableMerge(key, TableDisposition.KEPT) for key in ("edge:Holds", "node:Bin"))
    tables = tuple(item for item in tried.tables if item.table_key == "node:Part")
    assert {item.disposition for item in tables} == {TableDisposition.ADOPTED}
    assert set(tried.tables) <= {*kept, *tables}
    expected = MergeResult(
        "side", "main", MergeOutcome.FAST_FORWARD, base, side, base, None, tried.tables,
    )  # fmt: skip
    assert tried == replace(expected, is_dry_run=True)
    assert graph.head_commit_id_for_branch() == base
    done = graph.branch_merge("side", delete_branch=True)
    check(place, done, replace(expected, is_source_deleted=True))
    assert done.commit is not None
    assert (done.commit.operation, done.commit.parents) == ("merge", (base, side))
    assert amounts(graph)["nut"] == 4
    assert place.both(lambda graph: graph.branch_list()) == ("main",)


@NOT_ON_S3
def test_nothing_to_merge(place: Place) -> None:
    place.graph.branch_create("side")
    done = place.both(lambda graph: graph.branch_merge("side"))
    (head,) = heads(place, "main")
    assert done == MergeResult(
        "side", "main", MergeOutcome.ALREADY_UP_TO_DATE, head, head, head, None
    )


@NOT_ON_S3
def test_conflicts_are_told_in_full(forked: Place) -> None:
    main, side = heads(forked, "main", "side")
    tried = forked.both(lambda graph: graph.branch_merge("side", dry_run=True))
    assert (tried.outcome, tried.commit, tried.is_dry_run) == (MergeOutcome.MERGED, None, True)
    assert (tried.target_commit_id, tried.source_commit_id) == (main, side)
    kinds = {(item.table_key, item.row_id, item.kind) for item in tried.conflicts}
    update = MergeConflictKind.DIVERGENT_UPDATE
    assert kinds == {("node:Part", "bolt", update), ("node:Part", "nut", update)}
    bolt = next(item for item in tried.conflicts if item.row_id == "bolt")
    assert isinstance(bolt, MergeConflict)
    assert bolt.has_rows
    rows: list[Any] = [bolt.base, bolt.ours, bolt.theirs]
    assert [int(row["stock"]) for row in rows] == [2**53 + 1, 2, 1]
    assert bolt.properties == ("stock",)
    problem = forked.raised(lambda graph: graph.branch_merge("side"))
    assert isinstance(problem, MergeConflicts)
    assert list(problem.conflicts) == [item.to_json() for item in tried.conflicts]
    assert heads(forked, "main", "side") == [main, side]


def test_conflicts_are_decided(forked: Place) -> None:
    graph = forked.graph
    (main,) = heads(forked, "main")
    problem = forked.raised(lambda graph: graph.branch_merge("side", strategy="property"))
    assert isinstance(problem, MergeConflicts)
    assert [item["row_id"] for item in problem.conflicts] == ["bolt"]
    done = graph.branch_merge(
        "side",
        strategy=MergeStrategy.PROPERTY,
        resolve=MergeSide.OURS,
        choices={("node:Part", "bolt"): "theirs"},
        if_commit=main,
        delete_branch=True,
    )
    assert (done.outcome, done.resolved, done.is_source_deleted) == (MergeOutcome.MERGED, 1, True)
    assert done.commit is not None
    assert told(done.commit) == told(forked.at_hand.snapshot().commit)
    part_table = next(item for item in done.tables if item.table_key == "node:Part")
    assert (part_table.disposition, part_table.inserted) == (TableDisposition.MERGED, 1)
    assert amounts(graph)["bolt"] == 1
    nut = forked.both(
        lambda graph: graph.entity_at("node:Part", "nut", version=done.commit.manifest_version)  # type: ignore[union-attr]
    )
    assert nut is not None
    assert (nut["size"], nut["weight"]) == (5, 2.5)


@NOT_ON_S3
def test_options_that_cannot_be_used(forked: Place) -> None:
    before = heads(forked, "main", "side")
    for options in (
        {"strategy": "guess"},
        {"resolve": "mine"},
        {"choices": {("node:Part", "bolt"): "both"}},
        {"choices": {("node:Part", "none"): "ours"}},
        {"choices": {("node:Prt", "bolt"): "ours"}},
        {"into": "side"},
        {"into": "none"},
    ):
        forked.raised(lambda graph, options=options: graph.branch_merge("side", **options))  # type: ignore[misc]
    assert isinstance(forked.raised(lambda graph: graph.branch_merge("none")), BranchNotFound)
    problem = forked.raised(
        lambda graph: graph.branch_merge("side", resolve="ours", if_commit=NO_COMMIT)
    )
    assert isinstance(problem, PreconditionFailed)
    assert (problem.expected, problem.actual) == (NO_COMMIT, before[0])
    assert heads(forked, "main", "side") == before


@NOT_ON_S3
def test_a_merge_that_breaks_a_rule(place: Place) -> None:
    """No choice of a row settles it."""
    place.graph.branch_create("side")
    put(place.graph, bin_("b8", label="x"), branch="side")
    place.graph.mutate('query q() { delete Part where sku = "bare" }', branch="side")
    put(place.graph, bin_("b9", label="x"), holds("b2", "bare", id="h9"))
    problem = place.raised(lambda graph: graph.branch_merge("side", resolve="theirs"))
    assert isinstance(problem, MergeConflicts)
    kinds = {str(item["kind"]) for item in problem.conflicts}
    assert kinds == {"unique_violation", "orphan_edge"}


@NOT_ON_S3
def test_schemas_are_merged_as_well(place: Place) -> None:
    graph = place.graph
    graph.branch_create("side")
    graph.schema_apply(SCHEMA + "node Note { text: String @key }\n", branch="side")
    graph.schema_apply(SCHEMA.replace("label: String?", "room: String?  label: String?"))
    done = graph.branch_merge("side")
    assert done.is_schema_changed
    assert done.outcome is MergeOutcome.MERGED
    source = place.both(lambda graph: graph.schema_show()).source
    assert "node Note" in source
    assert "room: String?" in source


def test_a_commit_is_brought_over_and_taken_back(place: Place) -> None:
    graph = place.graph
    graph.branch_create("side")
    put(graph, part("first"), branch="side")
    wanted = put(graph, part("second"), part("nut", stock=3), branch="side")
    (main,) = heads(place, "main")
    tried = place.both(lambda graph: graph.cherry_pick(wanted, dry_run=True))
    assert tried.is_dry_run
    assert tried.source_commit_id == wanted
    done = graph.cherry_pick(wanted)
    assert done.commit is not None
    assert told(replace(done, commit=None)) == told(replace(tried, is_dry_run=False))
    assert (done.commit.operation, done.commit.parent_commit_id) == ("cherry_pick", main)
    assert amounts(graph) == {"bare": None, "bolt": 2**53 + 1, "nut": 3, "second": None}
    again = place.both(lambda graph: graph.cherry_pick(wanted))
    assert (again.outcome, again.commit) == (MergeOutcome.ALREADY_UP_TO_DATE, None)
    back = graph.revert(done.commit.graph_commit_id)
    assert back.commit is not None
    assert back.commit.operation == "revert"
    assert told(back.commit) == told(place.at_hand.snapshot().commit)
    assert amounts(graph) == {"bare": None, "bolt": 2**53 + 1, "nut": 0}


@NOT_ON_S3
def test_a_revert_that_others_built_on(place: Place) -> None:
    graph = place.graph
    commit = put(graph, part("nut", stock=3))
    put(graph, part("nut", stock=4))
    problem = place.raised(lambda graph: graph.revert(commit))
    assert isinstance(problem, MergeConflicts)
    done = graph.revert(commit, resolve="theirs")
    assert (done.resolved, amounts(graph)["nut"]) == (1, 0)
    kept = place.both(lambda graph: graph.revert(commit, resolve="ours", dry_run=True))
    assert kept.is_dry_run


@NOT_ON_S3
def test_commits_that_cannot_be_brought_over(place: Place) -> None:
    first = place.at_hand.list_commits()[-1].graph_commit_id
    for call in (
        lambda graph: graph.cherry_pick(first),
        lambda graph: graph.revert(first),
        lambda graph: graph.revert(first, strategy="none"),
    ):
        assert isinstance(place.raised(call), ConfigError)
    for call in (
        lambda graph: graph.cherry_pick(NO_COMMIT),
        lambda graph: graph.revert("x"),
        lambda graph: graph.revert(first, branch="none"),
        lambda graph: graph.cherry_pick(first, into="none"),
    ):
        assert isinstance(place.raised(call), CommitNotFound | BranchNotFound)


def test_a_branch_is_reset(place: Place) -> None:
    graph = place.graph
    before = graph.head_commit_id_for_branch()
    graph.tag_create("v1")
    moved = put(graph, part("late"))
    problem = place.raised(lambda graph: graph.branch_reset("main", before))
    assert isinstance(problem, ConfigError)
    assert graph.head_commit_id_for_branch() == moved
    done = graph.branch_reset("main", before, confirm=True)
    assert told(done) == told(place.at_hand.snapshot().commit)
    assert (done.parent_commit_id, done.operation) == (moved, "reset")
    assert "late" not in amounts(graph)
    same = place.both(lambda graph: graph.branch_reset("main", ReadTarget(tag="v1"), confirm=True))
    assert same.graph_commit_id == done.graph_commit_id, "it is in that state already"
    graph.branch_create("side", source=ReadTarget(snapshot_id=moved))
    _reset_to_branch(graph)
    for call in (
        lambda graph: graph.branch_reset("none", before, confirm=True),
        lambda graph: graph.branch_reset("main", NO_COMMIT, confirm=True),
        lambda graph: graph.branch_reset("main", ReadTarget(tag="none"), confirm=True),
        lambda graph: graph.branch_reset("main", "main", confirm=True),
    ):
        place.raised(call)


def _reset_to_branch(graph: Omnigraph) -> None:
    graph.branch_reset("main", ReadTarget(branch="side"), confirm=True)
    assert "late" in amounts(graph)
