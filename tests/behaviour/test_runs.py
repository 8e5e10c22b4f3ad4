"""Runs: work beside a branch that is published, given up or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import (
    BranchInUse,
    BranchNotFound,
    ConfigError,
    ConflictError,
    MergeConflicts,
    RunNotFound,
)
from omnigraph_core.history.runs import RunRecord, RunStatus
from tests.behaviour.stock import amounts, part, put
from tests.support.ways import NOT_ON_S3

if TYPE_CHECKING:
    from tests.support.ways import Place

NO_RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_work_is_published_once(place: Place) -> None:
    graph = place.graph
    head = graph.snapshot()
    run = graph.begin_run(operation_hash="night 7")
    assert run == RunRecord(
        run.run_id, "main", f"__run__{run.run_id}", head.commit.graph_commit_id, 2, "night 7",
        None, RunStatus.RUNNING, None, run.created_at, run.updated_at,
    )  # fmt: skip
    assert graph.begin_run(operation_hash="night 7") == run
    assert place.both(lambda graph: graph.get_run(run.run_id)) == run
    put(graph, part("new", stock=1), branch=run.run_branch)
    assert "new" not in amounts(graph)
    assert place.both(lambda graph: graph.branch_list()) == ("main",)
    preview = place.both(lambda graph: graph.preview_run(run.run_id))
    assert (preview.is_dry_run, preview.target, preview.commit) == (True, "main", None)
    done = graph.publish_run(run.run_id)
    assert (done.status, done.published_snapshot_id) == (
        RunStatus.PUBLISHED, graph.head_commit_id_for_branch(),
    )  # fmt: skip
    assert "new" in amounts(graph)
    assert graph.publish_run(run.run_id) == done
    assert place.both(lambda graph: graph.get_run(run.run_id)) == done
    assert isinstance(place.raised(lambda graph: graph.abort_run(run.run_id)), ConflictError)
    assert isinstance(place.raised(lambda graph: graph.preview_run(run.run_id)), ConflictError)


@NOT_ON_S3
def test_runs_that_end_otherwise(place: Place) -> None:
    graph = place.graph
    graph.branch_create("side")
    aborted, failed = graph.begin_run("side"), graph.begin_run()
    assert isinstance(place.raised(lambda graph: graph.branch_delete("side")), BranchInUse)
    assert graph.abort_run(aborted.run_id).status is RunStatus.ABORTED
    assert graph.fail_run(failed.run_id).status is RunStatus.FAILED
    assert graph.fail_run(failed.run_id).status is RunStatus.FAILED
    for call in (
        lambda graph: graph.publish_run(aborted.run_id),
        lambda graph: graph.abort_run(aborted.run_id),
        lambda graph: graph.fail_run(aborted.run_id),
        lambda graph: graph.publish_run(failed.run_id),
    ):
        problem = place.raised(call)
        assert type(problem) is ConflictError
    running = graph.begin_run("side")
    listed = place.both(lambda graph: graph.list_runs())
    assert [run.run_id for run in listed] == [aborted.run_id, failed.run_id, running.run_id]
    on_side = place.both(lambda graph: graph.list_runs(target_branch="side"))
    assert [run.status for run in on_side] == [RunStatus.ABORTED, RunStatus.RUNNING]
    for status in RunStatus:
        found = place.both(lambda graph, status=status: graph.list_runs(status=status))  # type: ignore[misc]
        assert len(found) == (status is not RunStatus.PUBLISHED)
    assert place.both(lambda graph: graph.list_runs(target_branch="none")) == ()


@NOT_ON_S3
def test_a_run_that_conflicts_goes_on(place: Place) -> None:
    graph = place.graph
    run = graph.begin_run()
    put(graph, part("nut", stock=1), branch=run.run_branch)
    put(graph, part("nut", stock=2))
    preview = place.both(lambda graph: graph.preview_run(run.run_id, strategy="property"))
    assert len(preview.conflicts) == 1
    problem = place.raised(lambda graph: graph.publish_run(run.run_id))
    assert isinstance(problem, MergeConflicts)
    assert len(problem.conflicts) == 1
    assert place.both(lambda graph: graph.get_run(run.run_id)).status is RunStatus.RUNNING
    place.raised(lambda graph: graph.publish_run(run.run_id, resolve="none"))
    decided = {("node:Part", "nut"): "theirs"}
    assert place.both(lambda graph: graph.preview_run(run.run_id, choices=decided)).resolved == 1
    done = graph.publish_run(run.run_id, choices=decided)
    assert (done.status, amounts(graph)["nut"]) == (RunStatus.PUBLISHED, 1)


@NOT_ON_S3
def test_runs_that_are_not_there(shared: Place) -> None:
    for call in (
        lambda graph: graph.get_run(NO_RUN),
        lambda graph: graph.publish_run(NO_RUN),
        lambda graph: graph.preview_run("x y?"),
        lambda graph: graph.abort_run("Ü"),
        lambda graph: graph.fail_run(NO_RUN),
    ):
        assert isinstance(shared.raised(call), RunNotFound)
    assert isinstance(shared.raised(lambda graph: graph.begin_run("none")), BranchNotFound)
    assert isinstance(shared.raised(lambda graph: graph.begin_run("__run__x")), ConfigError)
