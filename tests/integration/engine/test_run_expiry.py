"""Runs that were left behind: they block nothing, and cleanup ends them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine import run_calls
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchInUse, BranchNotFound
from omnigraph_core.failpoints import arm
from omnigraph_core.history import refs
from omnigraph_core.history.runs import RunStatus
from omnigraph_core.settings import RUN_EXPIRY
from omnigraph_core.storage.session import open_store
from tests.support.ageing import Clock, clean_up
from tests.support.graphs import append_pair, ids, new_graph

if TYPE_CHECKING:
    from pathlib import Path

HOUR = timedelta(hours=1)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, tmp_path)


@pytest.fixture
def og(tmp_path: Path, clock: Clock) -> Omnigraph:
    """With the branch `review`."""
    og = new_graph(str(tmp_path / "graph"))
    og.branch_create("review")
    return og


def run_branches(og: Omnigraph) -> list[str]:
    names = refs.list_branch_names(open_store(og.uri), has_internal=True)
    return [name for name in names if name.startswith("__run__")]


def test_a_run_expires_when_nothing_is_written(og: Omnigraph, clock: Clock) -> None:
    idle, busy = og.begin_run(), og.begin_run()
    clock.advance(23 * HOUR)
    append_pair(og, ["a"], busy.run_branch)
    assert not any(run.is_expired for run in og.list_runs())
    clock.advance(2 * HOUR)
    assert [run.is_expired for run in og.list_runs()] == [True, False]
    assert og.get_run(idle.run_id).status is RunStatus.RUNNING
    assert og.get_run(idle.run_id).to_json()["is_expired"] is True
    clock.advance(23 * HOUR)
    assert [run.is_expired for run in Omnigraph.open(og.uri).list_runs()] == [True, True]


def test_how_long_a_run_may_idle(
    og: Omnigraph, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = og.begin_run()
    monkeypatch.setenv(RUN_EXPIRY.name, "60")
    clock.advance(timedelta(seconds=59))
    assert not og.get_run(run.run_id).is_expired
    clock.advance(timedelta(seconds=2))
    assert og.get_run(run.run_id).is_expired


def test_what_has_ended_does_not_expire(og: Omnigraph, clock: Clock) -> None:
    for end in (og.abort_run, og.fail_run, og.publish_run):
        end(og.begin_run().run_id)
    clock.advance(100 * HOUR)
    assert not any(run.is_expired for run in og.list_runs())


def test_a_commit_of_the_target_is_no_work_of_the_run(og: Omnigraph, clock: Clock) -> None:
    clock.advance(HOUR)
    run = og.begin_run()
    clock.advance(25 * HOUR)
    append_pair(og, ["a"])
    assert og.get_run(run.run_id).is_expired


def test_an_expired_run_does_not_keep_its_target(og: Omnigraph, clock: Clock) -> None:
    old = og.begin_run("review", actor="ann")
    append_pair(og, ["a"], old.run_branch)
    clock.advance(25 * HOUR)
    live = og.begin_run("review", actor="bob")
    with pytest.raises(BranchInUse) as refused:
        og.branch_delete("review")
    assert live.run_id in refused.value.message
    assert old.run_id not in refused.value.message
    assert og.get_run(old.run_id).status is RunStatus.RUNNING, "a refusal changes nothing"
    og.abort_run(live.run_id)
    og.branch_delete("review")
    assert og.get_run(old.run_id).status is RunStatus.ABORTED
    assert run_branches(og) == []


def test_a_refused_delete_leaves_expired_runs_alone(og: Omnigraph, clock: Clock) -> None:
    run = og.begin_run("review")
    og.branch_create("child", source="review")
    clock.advance(25 * HOUR)
    with pytest.raises(BranchInUse, match="source of `child`"):
        og.branch_delete("review")
    assert og.get_run(run.run_id).status is RunStatus.RUNNING


def test_cleanup_fails_expired_runs(og: Omnigraph, clock: Clock) -> None:
    old = og.begin_run()
    append_pair(og, ["a"], old.run_branch)
    clock.advance(25 * HOUR)
    live = og.begin_run()
    clean_up(og, keep=10, grace=HOUR, is_preview=True, is_aged=False)
    assert og.get_run(old.run_id).is_expired
    clean_up(og, keep=10, grace=HOUR, is_aged=False)
    assert og.get_run(old.run_id).status is RunStatus.FAILED
    assert og.get_run(live.run_id) == live
    assert run_branches(og) == [live.run_branch]
    with pytest.raises(BranchNotFound):
        og.snapshot(old.run_branch)


def test_cleanup_records_what_was_published(og: Omnigraph, clock: Clock) -> None:
    """The publisher was killed after the merge and nobody came back."""
    run = og.begin_run()
    append_pair(og, ["a"], run.run_branch)
    with arm("run.after_merge", "error"), pytest.raises(Exception, match="failpoint"):
        og.publish_run(run.run_id)
    merged = og.head_commit_id_for_branch()
    clock.advance(25 * HOUR)
    clean_up(og, keep=10, grace=HOUR, is_aged=False)
    found = og.get_run(run.run_id)
    assert (found.status, found.published_snapshot_id) == (RunStatus.PUBLISHED, merged)
    assert run_branches(og) == []


def test_an_expired_run_can_be_published(og: Omnigraph, clock: Clock) -> None:
    run = og.begin_run()
    append_pair(og, ["a"], run.run_branch)
    clock.advance(25 * HOUR)
    assert og.publish_run(run.run_id).status is RunStatus.PUBLISHED
    assert ids(og, og.snapshot()) == ["a"]


def test_an_expired_run_that_is_begun_again_goes_on(og: Omnigraph, clock: Clock) -> None:
    run = og.begin_run(operation_hash="load-1")
    append_pair(og, ["a"], run.run_branch)
    clock.advance(25 * HOUR)
    again = og.begin_run(operation_hash="load-1")
    assert again.run_id == run.run_id
    assert again.updated_at > run.updated_at
    assert og.get_run(run.run_id) == again
    assert not again.is_expired
    assert ids(og, og.snapshot(again.run_branch)) == ["a"]
    assert run_branches(og) == [run.run_branch]


def test_cleanup_refuses_no_load_for_having_waited(og: Omnigraph, clock: Clock) -> None:
    """Failed means that the rows of a load were refused: its files would go to quarantine."""
    waiting = run_calls.begin_load(og, "main", operation_hash="drops")
    clock.advance(25 * HOUR)
    clean_up(og, keep=10, grace=HOUR, is_aged=False)
    assert og.get_run(waiting.run_id).status is RunStatus.ABORTED
    again = run_calls.begin_load(og, "main", operation_hash="drops")
    assert again.run_id != waiting.run_id
