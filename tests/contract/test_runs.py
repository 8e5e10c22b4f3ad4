"""Runs: work on a branch of its own, out of sight."""

from __future__ import annotations

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchInUse,
    BranchNotFound,
    ConfigError,
    ConflictError,
    MergeConflicts,
    RunNotFound,
)
from omnigraph_core.history import refs
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome
from omnigraph_core.storage.session import open_store
from tests.support.graphs import append_pair, append_parts, content, ids

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")


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
            with pytest.raises(RunNotFound, match="run 'nope' not found"):
                call("nope")
        og.begin_run()
    for call in (og.publish_run, og.preview_run):
        with pytest.raises(RunNotFound, match="run 'nope' not found"):
            call("nope")
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
    run = og.begin_run(" review ", actor="ann")
    with pytest.raises(BranchInUse, match=f"run {run.run_id}, begun by ann at 2"):
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


# Publishing


def test_a_run_whose_target_stood_still(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    run = og.begin_run(actor="ann")
    first = append_pair(og, ["b"], run.run_branch)
    last = append_pair(og, ["c"], run.run_branch)
    wanted = content(og, og.snapshot(run.run_branch))
    assert og.preview_run(run.run_id).outcome is MergeOutcome.FAST_FORWARD
    assert ids(og, og.snapshot()) == ["a"], "a preview writes nothing"

    published = og.publish_run(run.run_id)
    assert content(og, og.snapshot()) == wanted
    commit = og.snapshot().commit
    assert commit.parents == (run.base_snapshot_id, last.graph_commit_id)
    assert (commit.operation, commit.actor_id) == ("run_publish", "ann")
    assert published.published_snapshot_id == commit.graph_commit_id
    assert (published.status, published.run_id) == (RunStatus.PUBLISHED, run.run_id)
    assert branches(og) == ("main",)
    listed = {commit.graph_commit_id for commit in og.list_commits()}
    assert {first.graph_commit_id, last.graph_commit_id} <= listed

    for handle in (og, Omnigraph.open(og.uri)):
        assert handle.publish_run(run.run_id) == handle.get_run(run.run_id) == published
    assert og.snapshot().commit == commit, "once is enough"
    with pytest.raises(ConflictError, match="it is published"):
        og.preview_run(run.run_id)


def test_a_run_whose_target_moved(og: Omnigraph) -> None:
    og.branch_create("review")
    run = og.begin_run("review", actor="ann")
    work = append_parts(og, ["b"], run.run_branch)
    moved = append_parts(og, ["a"], "review")
    published = og.publish_run(run.run_id, actor="bob")
    commit = og.snapshot("review").commit
    assert commit.parents == (moved.graph_commit_id, work.graph_commit_id)
    assert (published.published_snapshot_id, commit.actor_id) == (commit.graph_commit_id, "bob")
    assert ids(og, og.snapshot("review")) == ["a", "b"]
    assert ids(og, og.snapshot()) == []


def test_a_run_in_conflict_goes_on(og: Omnigraph) -> None:
    run = og.begin_run()
    og.load(PART, branch=run.run_branch, mode="merge")
    og.load(PART.replace(b"bolt", b"nut"), mode="merge")
    before = og.snapshot()
    with pytest.raises(MergeConflicts, match=r"node:Part:M8 \(divergent_insert\)"):
        og.publish_run(run.run_id)
    assert [item.row_id for item in og.preview_run(run.run_id).conflicts] == ["M8"]
    assert og.get_run(run.run_id) == run
    assert og.snapshot() == before
    published = og.publish_run(run.run_id, choices={("node:Part", "M8"): "theirs"})
    assert published.published_snapshot_id == og.head_commit_id_for_branch()
    (row,) = content(og, og.snapshot())["node:Part"]
    assert row["name"] == "bolt"


PART = b'{"type":"Part","data":{"sku":"M8","name":"bolt"}}'


def test_a_run_that_wrote_nothing(og: Omnigraph) -> None:
    run = og.begin_run()
    head = append_pair(og, ["a"])
    published = og.publish_run(run.run_id)
    assert (published.status, published.published_snapshot_id) == (
        RunStatus.PUBLISHED,
        head.graph_commit_id,
    )
    assert og.snapshot().commit == head
    assert branches(og) == ("main",)


def test_what_has_ended_is_not_published(og: Omnigraph) -> None:
    for end in (og.abort_run, og.fail_run):
        run = end(og.begin_run().run_id)
        with pytest.raises(ConflictError, match=f"cannot publish run .*: it is {run.status}"):
            og.publish_run(run.run_id)
        assert og.get_run(run.run_id) == run
    published = og.publish_run(og.begin_run().run_id)
    for end in (og.abort_run, og.fail_run):
        with pytest.raises(ConflictError, match="it is published"):
            end(published.run_id)


def test_a_published_operation_is_not_begun_again(og: Omnigraph) -> None:
    run = og.begin_run(operation_hash="load-1")
    append_pair(og, ["a"], run.run_branch)
    published = og.publish_run(run.run_id)
    assert og.begin_run(operation_hash="load-1") == published
    assert branches(og) == ("main",)


def test_a_run_targets_a_branch_of_users(og: Omnigraph) -> None:
    run = og.begin_run()
    with pytest.raises(ConfigError, match="reserved for internal use"):
        og.begin_run(run.run_branch)
    assert og.list_runs() == (run,)
