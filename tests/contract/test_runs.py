"""Runs: work on a branch of its own, out of sight."""

from __future__ import annotations

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchInUse, BranchNotFound, ConflictError, RunNotFound
from omnigraph_core.history import refs
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.storage.session import open_store
from tests.support.graphs import append_pair, ids


def branches(og: Omnigraph) -> tuple[str, ...]:
    """Internal ones too."""
    return refs.list_branch_names(open_store(og.uri), has_internal=True)


def test_a_run_works_out_of_sight(og: Omnigraph) -> None:
    made = append_pair(og, ["a"])
    run = og.begin_run(actor="ann")
    assert run.run_branch == f"__run__{run.run_id}"
    assert (run.target_branch, run.status, run.actor_id) == ("main", RunStatus.RUNNING, "ann")
    assert (run.base_snapshot_id, run.base_manifest_version) == (made.graph_commit_id, 2)
    assert (run.published_snapshot_id, run.operation_hash) == (None, None)
    assert run.created_at == run.updated_at
    append_pair(og, ["b"], run.run_branch)
    assert ids(og, og.snapshot(run.run_branch)) == ["a", "b"]
    assert ids(og, og.snapshot()) == ["a"]
    assert og.branch_list() == ("main",)
    assert branches(og) == ("main", run.run_branch)
    for handle in (og, Omnigraph.open(og.uri)):
        assert handle.get_run(run.run_id) == run


def test_ending_a_run_drops_its_branch(og: Omnigraph) -> None:
    for end, status in ((og.abort_run, RunStatus.ABORTED), (og.fail_run, RunStatus.FAILED)):
        run = og.begin_run()
        made = append_pair(og, ["x"], run.run_branch)
        ended = end(run.run_id)
        assert (ended.status, ended.run_id) == (status, run.run_id)
        assert ended.updated_at >= run.updated_at
        assert og.get_run(run.run_id) == ended
        assert branches(og) == ("main",)
        with pytest.raises(BranchNotFound):
            og.snapshot(run.run_branch)
        left = og.snapshot_of(ReadTarget(snapshot_id=made.graph_commit_id))
        assert ids(og, left) == ["x"], "its commits stay known"


def test_the_states_of_a_run(og: Omnigraph) -> None:
    aborted = og.abort_run(og.begin_run().run_id).run_id
    failed = og.fail_run(og.begin_run().run_id).run_id
    with pytest.raises(ConflictError, match=r"cannot abort run .*: it is aborted"):
        og.abort_run(aborted)
    with pytest.raises(ConflictError, match=r"cannot fail run .*: it is aborted"):
        og.fail_run(aborted)
    assert og.fail_run(failed) == og.get_run(failed), "failing twice is failing once"
    assert og.abort_run(failed).status is RunStatus.ABORTED
    assert [run.status for run in og.list_runs()] == [RunStatus.ABORTED, RunStatus.ABORTED]


def test_unknown_runs(og: Omnigraph) -> None:
    for _ in range(2):  # before and after there is a registry
        for call in (og.get_run, og.abort_run, og.fail_run):
            with pytest.raises(RunNotFound, match="no run `nope`"):
                call("nope")
        og.begin_run()
    with pytest.raises(BranchNotFound):
        og.begin_run("nope")
    assert len(og.list_runs()) == 2


def test_runs_are_listed_oldest_first(og: Omnigraph) -> None:
    og.branch_create("review")
    runs = [og.begin_run(target) for target in ("main", "review", "main")]
    og.abort_run(runs[0].run_id)
    assert [run.run_id for run in og.list_runs()] == [run.run_id for run in runs]
    assert og.list_runs(target_branch="review") == (runs[1],)
    assert og.list_runs(target_branch="main", status=RunStatus.RUNNING) == (runs[2],)
    assert og.list_runs(status=RunStatus.PUBLISHED) == ()


def test_an_operation_is_begun_once(og: Omnigraph) -> None:
    og.branch_create("review")
    run = og.begin_run(operation_hash="load-1", actor="ann")
    again = Omnigraph.open(og.uri).begin_run(operation_hash="load-1", actor="bob")
    assert again == run
    assert branches(og) == ("main", run.run_branch, "review"), "the branch for it is gone again"
    others = [
        og.begin_run(operation_hash="load-2"),
        og.begin_run("review", operation_hash="load-1"),
    ]
    assert len({run.run_id, *(other.run_id for other in others)}) == 3
    og.fail_run(run.run_id)
    assert og.begin_run(operation_hash="load-1").run_id != run.run_id, "a failed one may be tried"
    assert og.begin_run().run_id != og.begin_run().run_id


def test_a_running_run_keeps_its_target(og: Omnigraph) -> None:
    og.branch_create("review")
    run = og.begin_run(" review ")
    with pytest.raises(BranchInUse, match=run.run_id):
        og.branch_delete("review")
    og.fail_run(run.run_id)
    og.branch_delete("review")
    assert og.branch_list() == ("main",)


def test_ending_a_run_that_a_branch_was_forked_from(og: Omnigraph) -> None:
    """The record decides; a branch that stays behind is hidden and harmless."""
    run = og.begin_run()
    append_pair(og, ["a"], run.run_branch)
    og.branch_create("kept", source=run.run_branch)
    assert og.abort_run(run.run_id).status is RunStatus.ABORTED
    assert og.branch_list() == ("main", "kept")
    assert ids(og, og.snapshot("kept")) == ["a"]
