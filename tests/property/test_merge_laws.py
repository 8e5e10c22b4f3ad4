"""What holds of merges whatever the branches did: sides, order and repetition do not matter."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome
from tests.support.examples import seeds
from tests.support.merge_checks import without_empty
from tests.support.merge_worlds import SCHEMA, World, graph_of

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.merge.model import MergeConflict, MergeResult


def world(path: Path, seed: int, *branches: str, edits: int = 3) -> World:
    """A filled main, and branches of it that were edited each in its own way."""
    made = World(Omnigraph.init(str(path / "graph"), SCHEMA), seed)
    made.fill("main")
    for branch in branches:
        made.og.branch_create(branch)
        made.edit(branch, made.random.randint(1, edits))
    return made


def merged(og: Omnigraph, source: str, onto: str, name: str, strategy: str = "row") -> MergeResult:
    """Merge a branch into a copy of another; with conflicts, what a dry run says."""
    og.branch_create(name, source=onto)
    tried = og.branch_merge(source, into=name, strategy=strategy, dry_run=True)
    return tried if tried.conflicts else og.branch_merge(source, into=name, strategy=strategy)


@pytest.mark.parametrize("seed", seeds(0, 1))
def test_merging_a_copy_changes_nothing(tmp_path: Path, seed: int) -> None:
    og = world(tmp_path, seed, "a").og
    head, graph = og.head_commit_id_for_branch("a"), graph_of(og, "a")
    og.branch_create("copy", source="a")
    result = og.branch_merge("copy", into="a")
    assert result.outcome is MergeOutcome.ALREADY_UP_TO_DATE
    assert og.head_commit_id_for_branch("a") == head
    assert graph_of(og, "a") == graph


@pytest.mark.parametrize("seed", seeds(0, 1))
def test_equal_edits_on_both_sides_merge_to_the_same(tmp_path: Path, seed: int) -> None:
    made = world(tmp_path, seed)
    state = made.random.getstate()
    for branch in ("a", "b"):
        made.og.branch_create(branch)
        made.random.setstate(state)
        made.edit(branch, 4)
    graph = graph_of(made.og, "a")
    assert graph_of(made.og, "b") == graph
    result = made.og.branch_merge("a", into="b")
    assert result.outcome is MergeOutcome.MERGED
    assert not any(t.inserted or t.updated or t.deleted for t in result.tables)
    assert graph_of(made.og, "b") == graph


@pytest.mark.parametrize("seed", seeds(0, 1))
def test_fast_forward_is_the_source(tmp_path: Path, seed: int) -> None:
    og = world(tmp_path, seed, "a", edits=6).og
    result = og.branch_merge("a")
    assert result.outcome is MergeOutcome.FAST_FORWARD
    assert graph_of(og) == graph_of(og, "a")
    assert og.snapshot().schema == og.snapshot("a").schema
    pins = [
        {key: (entry.location, entry.physical_version) for key, entry in tables.items()}
        for tables in (og.snapshot().tables, og.snapshot("a").tables)
    ]
    assert pins[0] == pins[1]


@pytest.mark.parametrize("seed", seeds(20, 2))
def test_swapping_the_sides_swaps_ours_and_theirs(tmp_path: Path, seed: int) -> None:
    og = world(tmp_path, seed, "a", "b", edits=5).og
    for strategy in ("row", "property"):
        there = merged(og, "a", "b", f"a-into-b-{strategy}", strategy)
        back = merged(og, "b", "a", f"b-into-a-{strategy}", strategy)
        assert _choices(there.conflicts) == _choices(back.conflicts, is_swapped=True)
        if not _choices(there.conflicts):  # else rows that nobody has decided about play a part
            assert _violations(there.conflicts) == _violations(back.conflicts)
        if not there.conflicts:
            assert there.outcome is back.outcome
            assert graph_of(og, there.target) == graph_of(og, back.target)


def _choices(conflicts: tuple[MergeConflict, ...], *, is_swapped: bool = False) -> list[str]:
    found = []
    for item in conflicts:
        if item.kind.is_choice:
            members = item.to_json()
            del members["message"]  # it says what either side did
            if is_swapped:
                members |= {"ours": members["theirs"], "theirs": members["ours"]}
            found.append(json.dumps(members, sort_keys=True))
    return found


def _violations(conflicts: tuple[MergeConflict, ...]) -> Counter[tuple[str, str | None, str]]:
    """Of two rows that share a value, the one that comes in is named: that depends on the side."""
    return Counter(
        (item.table_key, None if item.kind == "unique_violation" else item.row_id, str(item.kind))
        for item in conflicts
        if not item.kind.is_choice
    )


@pytest.mark.parametrize("seed", seeds(40, 2))
def test_merges_without_conflicts_commute(tmp_path: Path, seed: int) -> None:
    og = world(tmp_path, seed, "a", "b", edits=3).og
    graphs = []
    for order in (("a", "b"), ("b", "a")):
        target = "-then-".join(order)
        og.branch_create(target)
        og.branch_merge(order[0], into=target)
        tried = og.branch_merge(order[1], into=target, dry_run=True)
        if tried.conflicts:
            graphs.append(None)
            continue
        og.branch_merge(order[1], into=target)
        graphs.append(without_empty(graph_of(og, target)))
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("seed", seeds(60, 1))
def test_resolving_for_a_side_is_no_conflict_of_rows(tmp_path: Path, seed: int) -> None:
    og = world(tmp_path, seed, "a", "b", edits=5).og
    for side in ("ours", "theirs"):
        tried = og.branch_merge("a", into="b", resolve=side, dry_run=True)
        assert not any(item.kind.is_choice for item in tried.conflicts)


@pytest.mark.parametrize("seed", seeds(80, 1))
def test_a_reverted_commit_never_was(tmp_path: Path, seed: int) -> None:
    made = world(tmp_path, seed)
    for _ in range(4):
        made.edit("main", 1)
        commit = made.og.snapshot().commit
        assert commit.parent_commit_id is not None
        before = graph_of(made.og, ReadTarget(snapshot_id=commit.parent_commit_id))
        result = made.og.revert(commit.graph_commit_id, actor="act-revert")
        assert graph_of(made.og) == before
        if result.commit is None:
            assert not made.og.commit_changes(commit.graph_commit_id).changes
        else:
            assert result.commit.parents == (commit.graph_commit_id,)
            assert result.commit.actor_id == "act-revert"


@pytest.mark.parametrize("seed", seeds(100, 1))
def test_a_commit_picked_onto_its_parent_is_the_commit(tmp_path: Path, seed: int) -> None:
    og = world(tmp_path, seed, "a", edits=6).og
    for number, commit in enumerate(og.list_commits("a")):
        if commit.parent_commit_id is None:
            continue
        target = f"pick-{number}"
        og.branch_create(target, source=ReadTarget(snapshot_id=commit.parent_commit_id))
        result = og.cherry_pick(commit.graph_commit_id, into=target)
        graph = graph_of(og, ReadTarget(snapshot_id=commit.graph_commit_id))
        assert without_empty(graph_of(og, target)) == without_empty(graph)
        # A commit that only moved rows may be taken over; one that changed any must be.
        assert result.commit is not None or not og.commit_changes(commit.graph_commit_id).changes


@pytest.mark.parametrize("seed", seeds(120, 1))
def test_a_branch_reset_to_a_commit_is_the_commit(tmp_path: Path, seed: int) -> None:
    made = world(tmp_path, seed, "a", "b", edits=4)
    og = made.og
    ids = sorted({c.graph_commit_id for name in ("a", "b") for c in og.list_commits(name)})
    for _ in range(4):
        commit_id, branch = made.random.choice(ids), made.random.choice(("a", "b"))
        known = {commit.graph_commit_id for commit in og.list_commits(branch)}
        head = og.branch_reset(branch, commit_id, confirm=True)
        assert og.head_commit_id_for_branch(branch) == head.graph_commit_id
        assert graph_of(og, branch) == graph_of(og, ReadTarget(snapshot_id=commit_id))
        assert known <= {commit.graph_commit_id for commit in og.list_commits(branch)}


def test_what_was_deleted_stays_deleted_whatever_was_merged_since(tmp_path: Path) -> None:
    """The commit that is fewest links away is older than one that both sides have merged."""
    og = Omnigraph.init(str(tmp_path / "graph"), "node Part { code: String @key }")

    def put(branch: str, code: str) -> None:
        og.mutate(f'query q() {{ insert Part {{ code: "{code}" }} }}', branch=branch)

    put("main", "first")
    for branch in ("old", "mine"):
        og.branch_create(branch)
        put(branch, branch)
    put("main", "gone")
    og.branch_merge("main", into="mine")
    og.mutate('query q() { delete Part where code = "gone" }')
    for number in range(4):
        put("main", f"later {number}")
    og.branch_merge("old")
    og.branch_merge("mine")
    codes = {"first", "old", "mine", *(f"later {number}" for number in range(4))}
    assert graph_of(og)["node:Part"].keys() == codes
