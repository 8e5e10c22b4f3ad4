"""Single commits picked and reverted, and branches set back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    MergeConflicts,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import (
    HOLDS,
    PART,
    bin,
    column,
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
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Main and `side`, at the same commit."""
    graph = new_graph(tmp_path / "graph")
    graph.branch_create("side")
    return graph


def head(og: Omnigraph, branch: str = "main") -> str:
    return og.head_commit_id_for_branch(branch)


# Picking


def test_one_commit_of_several(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    put(og, "side", part("p2", stock=3), part("p9"))
    picked = head(og, "side")
    put(og, "side", part("p3", stock=4))
    put(og, "main", bin("b9"))
    parent = head(og)
    result = og.cherry_pick(picked, actor="ann")
    assert result.outcome is MergeOutcome.MERGED
    assert column(og, "main", "stock") == {"p1": 1, "p2": 3, "p3": 1, "p4": 1, "p9": None}
    commit = result.commit
    assert commit is not None
    assert (commit.parents, commit.operation, commit.actor_id) == ((parent,), "cherry_pick", "ann")
    assert (result.source, result.target) == (picked, "main")
    again = og.cherry_pick(picked)
    assert (again.outcome, again.commit) == (MergeOutcome.ALREADY_UP_TO_DATE, None)


def test_a_pick_onto_its_parent_gives_the_same(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2), holds("h2", "b2", "p2"))
    drop(og, "side", "p3")
    picked = head(og, "side")
    og.branch_create("before", source=ReadTarget(snapshot_id=_parent(og, picked)))
    og.cherry_pick(picked, into="before")
    assert graph(og, "before") == graph(og, "side")


def test_a_pick_in_conflict(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    put(og, "main", part("p1", stock=3))
    found = og.cherry_pick(head(og, "side"), dry_run=True)
    assert told(found) == [(PART, "p1", "divergent_update")]
    with pytest.raises(MergeConflicts):
        og.cherry_pick(head(og, "side"))
    og.cherry_pick(head(og, "side"), choices={(PART, "p1"): "theirs"})
    assert column(og, "main", "stock")["p1"] == 2


def test_a_pick_without_what_it_needs(og: Omnigraph) -> None:
    put(og, "side", part("p9"))
    put(og, "side", holds("h9", "b1", "p9"))
    with pytest.raises(MergeConflicts) as caught:
        og.cherry_pick(head(og, "side"))
    assert caught.value.message == "merge conflicts: edge:Holds:h9 (orphan_edge)"


def test_a_merge_is_picked_for_what_it_brought(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    put(og, "main", part("p2", stock=3))
    og.branch_create("third", source=ReadTarget(snapshot_id=_parent(og, head(og))))
    og.branch_merge("side")
    og.cherry_pick(head(og), into="third")
    assert column(og, "third", "stock") == {"p1": 2, "p2": 1, "p3": 1, "p4": 1}


def test_a_commit_that_only_moved_rows(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    og.branch_merge("side")
    og.optimize(branch="side")
    moved = head(og, "side")
    for result in (og.cherry_pick(moved), og.revert(moved, branch="side")):
        assert (result.outcome, result.commit) == (MergeOutcome.ALREADY_UP_TO_DATE, None)


def test_picks_of_nothing(og: Omnigraph) -> None:
    first = og.list_commits()[-1].graph_commit_id
    with pytest.raises(ConfigError, match="is the first of the graph"):
        og.cherry_pick(first)
    with pytest.raises(CommitNotFound):
        og.cherry_pick("01M7HCZHFTMSC2SD39WK608SV8")
    with pytest.raises(BranchNotFound):
        og.cherry_pick(head(og), into="nowhere")
    with pytest.raises(ConfigError, match="reserved for internal use"):
        og.cherry_pick(head(og), into="__run__1")


def test_a_commit_of_a_branch_that_is_gone(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    picked = head(og, "side")
    og.branch_delete("side")
    og.cherry_pick(picked)
    assert column(og, "main", "stock")["p1"] == 2


def test_the_target_of_a_pick_moves_meanwhile(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    with meanwhile(lambda: put(og, "main", part("p2", stock=3))):
        og.cherry_pick(head(og, "side"))
    assert column(og, "main", "stock") == {"p1": 2, "p2": 3, "p3": 1, "p4": 1}


def test_a_picked_schema_and_rows_across_schemas(og: Omnigraph) -> None:
    evolve(og, "side", ("name: String?", "name: String?\n  grade: I32?"))
    changed = head(og, "side")
    put(og, "side", part("p1", stock=1, grade=7))
    graded = head(og, "side")
    with pytest.raises(MergeConflicts) as caught:
        og.cherry_pick(graded)
    (conflict,) = caught.value.conflicts
    assert conflict["kind"] == "schema_conflict"
    assert "the source has written values to `grade`, in 'p1'" in str(conflict["message"])
    og.cherry_pick(changed)
    og.cherry_pick(graded)
    assert column(og, "main", "grade") == {"p1": 7, "p2": None, "p3": None, "p4": None}
    assert og.schema_show().source == og.schema_show("side").source


# Reverting


def test_a_revert_takes_back_one_commit(og: Omnigraph) -> None:
    before = graph(og, "main")
    put(og, "main", part("p1", stock=2), part("p9"))
    drop(og, "main", "p4")
    wrong = head(og)
    put(og, "main", part("p2", stock=3))
    result = og.revert(wrong, actor="ann")
    assert rows(og, "main").keys() == {"p1", "p2", "p3", "p4", "p9"}
    assert column(og, "main", "stock")["p2"] == 3
    assert result.commit is not None
    assert (result.commit.operation, result.commit.actor_id) == ("revert", "ann")
    assert result.commit.merged_parent_commit_id is None
    og.revert(og.list_commits()[1].graph_commit_id)
    og.revert(_nth(og, 4))
    assert graph(og, "main") == before


def test_a_revert_in_conflict_with_later_work(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=2))
    wrong = head(og)
    put(og, "main", part("p1", stock=3))
    with pytest.raises(MergeConflicts):
        og.revert(wrong)
    og.revert(wrong, resolve="ours")
    assert column(og, "main", "stock")["p1"] == 3


def test_a_revert_that_would_leave_orphans(og: Omnigraph) -> None:
    put(og, "main", part("p9"))
    wrong = head(og)
    put(og, "main", holds("h9", "b1", "p9"))
    assert told(og.revert(wrong, dry_run=True)) == [(HOLDS, "h9", "orphan_edge")]


def test_a_reverted_revert(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=2), part("p9"))
    wanted = graph(og, "main")
    og.revert(head(og))
    og.revert(head(og))
    assert graph(og, "main") == wanted


def test_a_reverted_merge(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2), holds("h2", "b2", "p2"))
    put(og, "main", part("p2", stock=3))
    before = graph(og, "main")
    og.branch_merge("side")
    og.revert(head(og))
    assert graph(og, "main") == before


def test_a_reverted_schema(og: Omnigraph) -> None:
    source = og.schema_show().hash
    evolve(og, "main", ("name: String?", "name: String?\n  grade: I32?"))
    wrong = head(og)
    put(og, "main", part("p2", stock=3))
    og.revert(wrong)
    assert og.schema_show().hash == source
    assert column(og, "main", "stock")["p2"] == 3


def test_a_reverted_schema_that_rows_have_used_since(og: Omnigraph) -> None:
    evolve(og, "main", ("name: String?", "name: String?\n  grade: I32?"))
    wrong = head(og)
    put(og, "main", part("p2", stock=3, grade=1))
    assert told(og.revert(wrong, dry_run=True)) == [(PART, None, "schema_conflict")]


# Setting back


def test_a_branch_set_back(og: Omnigraph) -> None:
    old, content = head(og), graph(og, "main")
    put(og, "main", part("p1", stock=2))
    drop(og, "main", "p4")
    evolve(og, "main", ("node Bin", "node Note {\n  text: String?\n}\n\nnode Bin"))
    last = head(og)
    with pytest.raises(ConfigError) as caught:
        og.branch_reset("main", old)
    assert "would change 2 tables (node:Note, node:Part) and the schema" in caught.value.message
    assert head(og) == last
    commit = og.branch_reset("main", old, confirm=True, actor="ann")
    assert graph(og, "main") == content
    assert og.schema_show().hash == og.schema_show(ReadTarget(snapshot_id=old)).hash
    assert (commit.parents, commit.operation, commit.actor_id) == ((last,), "reset", "ann")
    assert og.snapshot_of(ReadTarget(snapshot_id=last)).tables.keys() > content.keys()
    assert og.branch_reset("main", old, confirm=True) == commit, "there is nothing to do"
    og.branch_reset("main", last, confirm=True)
    assert rows(og, "main").keys() == {"p1", "p2", "p3"}


def test_set_to_a_tag_and_to_another_branch(og: Omnigraph) -> None:
    og.tag_create("v1")
    put(og, "side", part("p9"))
    og.branch_reset("main", ReadTarget(branch="side"), confirm=True)
    assert graph(og, "main") == graph(og, "side")
    og.branch_reset("main", ReadTarget(tag="v1"), confirm=True)
    assert "p9" not in rows(og, "main")
    put(og, "main", part("p8"))
    assert set(rows(og, "main")) == {"p1", "p2", "p3", "p4", "p8"}


def test_a_branch_that_moves_while_it_is_set_back(og: Omnigraph) -> None:
    old, content = head(og), graph(og, "main")
    put(og, "main", part("p1", stock=2))
    with meanwhile(lambda: put(og, "main", bin("b9"))):
        og.branch_reset("main", old, confirm=True)
    assert graph(og, "main") == content


def test_what_cannot_be_set_back(og: Omnigraph) -> None:
    with pytest.raises(BranchNotFound):
        og.branch_reset("nowhere", head(og), confirm=True)
    with pytest.raises(CommitNotFound):
        og.branch_reset("main", "side", confirm=True)
    with pytest.raises(ConfigError, match="reserved for internal use"):
        og.branch_reset("__run__1", head(og), confirm=True)


def test_no_lease_stays_behind(og: Omnigraph, tmp_path: Path) -> None:
    put(og, "side", part("p1", stock=2))
    og.cherry_pick(head(og, "side"))
    og.branch_reset("side", head(og), confirm=True)
    assert not list((tmp_path / "graph" / "_refs" / "leases").glob("*.json"))
    og.cleanup(keep=1, older_than=timedelta(0))


def _parent(og: Omnigraph, commit_id: str) -> str:
    return og.get_commit(commit_id).parent_commit_id or ""


def _nth(og: Omnigraph, place: int) -> str:
    """A commit of main, counted from the newest."""
    return og.list_commits()[place].graph_commit_id
