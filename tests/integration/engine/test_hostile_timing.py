"""Interleavings and clocks that once lost something: each is forced, and nothing is lost."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import PreconditionFailed
from omnigraph_core.history import branches, refs
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.changes import AdoptTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.manifest.retry import prepare_again
from omnigraph_core.storage.fragments import write_append
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from tests.support.ageing import Clock
from tests.support.graphs import (
    BIN,
    PART,
    append,
    append_parts,
    ids,
    new_graph,
    parts,
    publish,
    rows_of,
    touch,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.manifest.image import GraphCommit

HOUR = timedelta(hours=1)


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(str(tmp_path))


@pytest.fixture
def clock(tmp_path: Path, og: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch, tmp_path)


def replace_parts(og: Omnigraph, names: list[str], branch: str = "main") -> GraphCommit:
    snapshot = og.snapshot(branch)
    staged = stage_overwrite(og.table(snapshot, PART), parts(names))
    assert staged is not None
    return publish(og, snapshot, {PART: staged}, TableOperation.OVERWRITE)


def test_a_branch_deleted_while_cleanup_lists(
    og: Omnigraph, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    og.branch_create("x")
    made = replace_parts(og, ["tagged"], "x")
    og.tag_create("kept", "x")
    clock.advance(48 * HOUR)
    other, listed, calls = Omnigraph.open(og.uri), refs.list_branch_refs, iter(range(1))

    def delete_after_listing(*given: Any, **named: Any) -> tuple[refs.BranchRef, ...]:
        found = listed(*given, **named)
        for _ in calls:
            other.branch_delete("x")
        return found

    monkeypatch.setattr(refs, "list_branch_refs", delete_after_listing)
    og.cleanup(keep=1)
    for target in (ReadTarget(tag="kept"), ReadTarget(snapshot_id=made.graph_commit_id)):
        assert ids(og, og.snapshot_of(target)) == ["tagged"]


def test_a_machine_that_slept(og: Omnigraph, clock: Clock) -> None:
    """What it knows as the newest was superseded, and the number after it is free again."""
    sleeper = Omnigraph.open(og.uri)
    append_parts(og, ["a"])
    sleeper.snapshot()
    for name in "bcd":
        clock.advance(30 * HOUR)
        append_parts(og, [name])
    clock.advance(30 * HOUR)
    og.cleanup(keep=1)
    append(sleeper, BIN, ["mine"])
    newest = Omnigraph.open(og.uri).snapshot()
    assert (newest.manifest_version, ids(og, newest, BIN)) == (6, ["mine"])


def test_files_carried_for_longer_than_the_lease(og: Omnigraph, clock: Clock) -> None:
    carried = write_append(og.table(og.snapshot(), PART), parts(["late"]))
    clock.advance(30 * HOUR)
    og.cleanup(keep=1)
    snapshot = og.snapshot()
    staged = stage_append(og.table(snapshot, PART), carried)
    assert staged is not None
    with pytest.raises(PreconditionFailed, match=f"the age of {PART}"):
        publish(og, snapshot, {PART: staged}, TableOperation.APPEND)
    assert ids(og, og.snapshot()) == []


def test_a_table_adopted_from_long_ago(og: Omnigraph, clock: Clock) -> None:
    replace_parts(og, ["old"])
    old = og.snapshot()
    clock.advance(30 * HOUR)
    now = og.snapshot()
    change = AdoptTable(old.table(PART), staged_since=old.read_at)
    with pytest.raises(PreconditionFailed, match=f"the age of {PART}"):
        og.commit([change], requirements_of(now, touched=[PART]))


def test_work_staged_on_another_version_than_required(og: Omnigraph) -> None:
    """The requirements of a newer snapshot do not make older work fit: it lacks what came since."""
    staged = stage_append(og.table(og.snapshot(), PART), parts(["mine"]))
    assert staged is not None
    append_parts(og, ["theirs"])
    with pytest.raises(PreconditionFailed, match=f"the base of {PART}"):
        publish(og, og.snapshot(), {PART: staged}, TableOperation.APPEND)
    assert ids(og, og.snapshot()) == ["theirs"]


def test_a_tag_on_an_older_version_of_a_dead_branch(og: Omnigraph, clock: Clock) -> None:
    og.branch_create("x")
    replace_parts(og, ["old"], "x")
    og.tag_create("kept", "x")
    head = replace_parts(og, ["new"], "x")
    og.branch_delete("x")
    clock.advance(48 * HOUR)
    og.cleanup(keep=1)
    fresh = Omnigraph.open(og.uri)
    assert ids(fresh, fresh.snapshot_of(ReadTarget(tag="kept"))) == ["old"]
    fresh.branch_create("y", source=ReadTarget(snapshot_id=head.graph_commit_id))
    assert ids(fresh, fresh.snapshot("y")) == ["new"]
    clock.advance(48 * HOUR)
    fresh.cleanup(keep=1)
    assert ids(fresh, fresh.snapshot("y")) == ["new"]


def test_a_writer_whose_clock_is_days_behind(
    og: Omnigraph, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its versions look long superseded; by the clock of the store they are young."""
    append_parts(og, ["a"])
    clock.advance(72 * HOUR)
    victim = Omnigraph.open(og.uri)
    snapshot = victim.snapshot()
    staged = stage_append(victim.table(snapshot, BIN), rows_of(BIN, ["victim"]))
    assert staged is not None
    ahead = 72 * 3600
    with monkeypatch.context() as behind:
        late, late_ns = time.time, time.time_ns
        behind.setattr(time, "time", lambda: late() - ahead)
        behind.setattr(time, "time_ns", lambda: late_ns() - ahead * 10**9)
        slow = Omnigraph.open(og.uri)
        for name in ("s1", "s2"):
            append_parts(slow, [name])
    clock.stamp()
    Omnigraph.open(og.uri).cleanup(keep=1)
    publish(victim, snapshot, {BIN: staged}, TableOperation.APPEND)
    assert ids(og, og.snapshot(), BIN) == ["victim"]
    assert ids(og, og.snapshot()) == ["a", "s1", "s2"]


def test_a_handle_that_does_not_know_the_newest_head(og: Omnigraph) -> None:
    """Staged by one handle, published by another that last looked before: no false conflict."""
    other = Omnigraph.open(og.uri)
    append_parts(og, ["a"])
    snapshot = og.snapshot()
    staged = stage_append(og.table(snapshot, PART), parts(["b"]))
    assert staged is not None
    publish(other, snapshot, {PART: staged}, TableOperation.APPEND)
    prepare_again(lambda: append_parts(other, ["c"]))
    assert ids(og, og.snapshot()) == ["a", "b", "c"]


def test_history_of_a_branch_of_a_branch(og: Omnigraph) -> None:
    for _ in range(9):
        touch(og)
    og.branch_create("x")
    for _ in range(70):
        touch(og, branch="x")
    og.branch_create("y", source="x")
    fresh = Omnigraph.open(og.uri)
    assert len(fresh.list_commits("y")) == 1 + 9 + 70


def test_a_commit_that_lands_while_its_branch_is_deleted(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acknowledged before the branch was gone: it is found by its id ever after."""
    og.branch_create("x")
    other, put_mark = Omnigraph.open(og.uri), refs.put_deleted
    landed: list[GraphCommit] = []

    def commit_first(*given: Any) -> None:
        landed.append(append_parts(other, ["late"], "x"))
        put_mark(*given)

    monkeypatch.setattr(branches.refs, "put_deleted", commit_first)
    og.branch_delete("x")
    for handle in (og, Omnigraph.open(og.uri)):
        assert handle.get_commit(landed[0].graph_commit_id) == landed[0]


def test_a_branch_of_a_run_nobody_registered(og: Omnigraph, clock: Clock) -> None:
    branches.create_branch(
        og._context.store,
        "__run__lost",
        og._context.head("main")[1],
        is_internal_allowed=True,
        actor=None,
    )
    kept = og.begin_run()
    clock.advance(47 * HOUR)
    append_parts(og, ["busy"], kept.run_branch)
    clock.advance(HOUR)
    og.cleanup(keep=1)
    names = refs.list_branch_names(og._context.store, has_internal=True)
    assert names == ("main", kept.run_branch)
