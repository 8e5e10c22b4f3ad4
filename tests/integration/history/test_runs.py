"""The run registry on a real store: states in order, one winner, one run for one operation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core.errors import AlreadyExists, ConflictError, RunNotFound, StorageError
from omnigraph_core.history.runs import (
    RUNS_SCHEMA,
    RunRecord,
    RunRegistry,
    RunStatus,
    mark_aborted,
    mark_failed,
    mark_published,
)
from omnigraph_core.manifest.layout import GRAPH_RUN_ACTORS, GRAPH_RUNS
from omnigraph_core.storage.log import open_log, read, try_append
from omnigraph_core.storage.session import Store, open_store
from tests.support.processes import hear, say, spawn

if TYPE_CHECKING:
    from omnigraph_core.storage.log import Log


def log_of(store: Store, path: str) -> Log:
    log = open_log(store, path)
    assert log is not None
    return log


def states(store: Store) -> list[tuple[str, int, str]]:
    table = read(log_of(store, GRAPH_RUNS), ["run_id", "sequence", "status"])
    return [tuple(row.values()) for row in table.to_pylist()]  # type: ignore[misc]


def actors(store: Store) -> list[tuple[str, str]]:
    table = read(log_of(store, GRAPH_RUN_ACTORS), ["run_id", "actor_id"])
    return [tuple(row.values()) for row in table.to_pylist()]  # type: ignore[misc]


def test_a_graph_without_runs(local: Store) -> None:
    registry = RunRegistry(local)
    assert registry.list() == ()
    assert registry.find_by_operation_hash("main", "h") is None
    with pytest.raises(RunNotFound, match="run '01R' not found"):
        registry.get("01R")
    assert open_log(local, GRAPH_RUNS) is None, "looking makes nothing"


def test_the_life_of_a_run(store: Store) -> None:
    registry = RunRegistry(store)
    run = registry.begin("main", "01C", 4, operation_hash="h", actor="dana")
    assert run == RunRecord(
        run_id=run.run_id,
        target_branch="main",
        run_branch=f"__run__{run.run_id}",
        base_snapshot_id="01C",
        base_manifest_version=4,
        operation_hash="h",
        actor_id="dana",
        status=RunStatus.RUNNING,
        published_snapshot_id=None,
        created_at=run.created_at,
        updated_at=run.created_at,
    )
    assert registry.get(run.run_id) == run
    later = run.created_at + 5
    publish = partial(mark_published, snapshot_id="01P", now=later)
    published = registry.transition(run.run_id, publish)
    assert published.status is RunStatus.PUBLISHED
    assert registry.get(run.run_id) == published
    assert registry.transition(run.run_id, publish) == published
    with pytest.raises(ConflictError, match="it is published"):
        registry.transition(run.run_id, partial(mark_aborted, now=later))
    assert states(store) == [(run.run_id, 0, "running"), (run.run_id, 1, "published")]
    assert actors(store) == [(run.run_id, "dana")]


def test_equal_times_do_not_confuse_states(local: Store) -> None:
    registry = RunRegistry(local)
    run = registry.begin("main", "01C", 4)
    registry.transition(run.run_id, partial(mark_failed, now=run.created_at))
    registry.transition(run.run_id, partial(mark_aborted, now=run.created_at))
    found = registry.get(run.run_id)
    assert (found.status, found.updated_at) == (RunStatus.ABORTED, run.created_at)
    assert open_log(local, GRAPH_RUN_ACTORS) is None, "no actor, no map"


def test_the_sequence_decides_not_the_place(local: Store) -> None:
    registry = RunRegistry(local)
    run = registry.begin("main", "01C", 4)
    registry.transition(run.run_id, partial(mark_failed, now=1))
    log = log_of(local, GRAPH_RUNS)
    repeated = read(log).slice(0, 1)
    assert try_append(log, repeated) is not None
    assert registry.get(run.run_id).status is RunStatus.FAILED


def test_an_unknown_run(local: Store) -> None:
    registry = RunRegistry(local)
    registry.begin("main", "01C", 4)
    with pytest.raises(RunNotFound):
        registry.get("01X")
    with pytest.raises(RunNotFound):
        registry.transition("01X", partial(mark_failed, now=1))


def test_lists(local: Store) -> None:
    registry = RunRegistry(local)
    runs = [
        registry.begin(target, "01C", 4, run_id=run_id)
        for target, run_id in (("main", "r2"), ("review", "r1"), ("main", "r3"))
    ]
    failed = registry.transition("r2", partial(mark_failed, now=runs[0].created_at))
    assert registry.list() == (failed, runs[1], runs[2])
    assert registry.list("main") == (failed, runs[2])
    assert registry.list(status=RunStatus.FAILED) == (failed,)
    assert registry.list("main", RunStatus.RUNNING) == (runs[2],)
    assert registry.list("nowhere") == ()
    assert registry.list(since=runs[0].updated_at) == (runs[1], runs[2])
    assert registry.list(status=RunStatus.FAILED, since=runs[0].updated_at - 1) == (failed,)
    assert registry.list(since=runs[2].updated_at) == ()
    named = registry.begin("main", "01C", 4, operation_hash="load|a")
    registry.begin("review", "01C", 4, operation_hash="load|b")
    assert registry.list(is_sought=lambda text: text.endswith("a")) == (named,)
    assert registry.list("review", is_sought=lambda text: text.endswith("a")) == ()
    assert registry.list("nowhere", is_sought=lambda _: True) == ()


def test_an_operation_is_begun_once(store: Store) -> None:
    registry = RunRegistry(store)
    first = registry.begin("main", "01C", 4, operation_hash="h", actor="dana")
    assert registry.begin("main", "01D", 5, operation_hash="h", actor="kim") == first
    assert registry.begin("review", "01D", 5, operation_hash="h") != first
    assert registry.begin("main", "01D", 5, operation_hash="other") != first
    published = registry.transition(first.run_id, partial(mark_published, snapshot_id="P", now=0))
    assert registry.begin("main", "01D", 5, operation_hash="h") == published
    assert registry.find_by_operation_hash("main", "h") == published
    assert actors(store) == [(first.run_id, "dana")]


def test_runs_without_a_hash_are_all_different(local: Store) -> None:
    registry = RunRegistry(local)
    assert registry.begin("main", "01C", 4) != registry.begin("main", "01C", 4)


def test_an_operation_that_failed_may_begin_again(local: Store) -> None:
    registry = RunRegistry(local)
    first = registry.begin("main", "01C", 4, operation_hash="h")
    registry.transition(first.run_id, partial(mark_failed, now=0))
    second = registry.begin("main", "01C", 4, operation_hash="h")
    assert second.run_id != first.run_id
    assert registry.find_by_operation_hash("main", "h") == second


def test_an_id_is_used_once(local: Store) -> None:
    registry = RunRegistry(local)
    registry.begin("main", "01C", 4, run_id="r1")
    with pytest.raises(AlreadyExists, match="a run `r1` exists"):
        registry.begin("main", "01C", 4, run_id="r1")


def test_a_state_of_a_newer_release(local: Store) -> None:
    RunRegistry(local).begin("main", "01C", 4, run_id="r1")
    log = log_of(local, GRAPH_RUNS)
    (row,) = read(log).to_pylist()
    newer = pa.Table.from_pylist([{**row, "sequence": 1, "status": "paused"}], schema=RUNS_SCHEMA)
    assert try_append(log, newer) is not None
    with pytest.raises(StorageError, match="holds the status 'paused'"):
        RunRegistry(local).get("r1")


def settle(root: str, action: str, run_ids: list[str]) -> list[str]:
    """In a worker: publish or abort every run; the ids where this worker did it."""
    registry = RunRegistry(open_store(root))
    say("ready")
    hear()
    won = []
    for run_id in run_ids:

        def change(run: RunRecord) -> RunRecord:
            if action == "abort":
                return mark_aborted(run, now=1)
            return mark_published(run, action, now=1)

        try:
            run = registry.transition(run_id, change)
        except ConflictError:
            continue
        if run.published_snapshot_id in (None, action):
            won.append(run_id)
    return won


def test_of_several_processes_one_settles_a_run(local: Store) -> None:
    registry = RunRegistry(local)
    run_ids = [registry.begin("main", "01C", 4).run_id for _ in range(12)]
    target = f"{__name__}:settle"
    actions = ("P1", "P2", "abort")
    workers = [spawn(target, local.root.text, action, run_ids) for action in actions]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    won = {
        action: worker.wait(timeout=300).result()
        for action, worker in zip(actions, workers, strict=True)
    }
    assert sorted(run_id for mine in won.values() for run_id in mine) == sorted(run_ids)
    for run in registry.list():
        outcome = run.published_snapshot_id or "abort"
        assert run.run_id in won[outcome]
    assert len(states(local)) == 2 * len(run_ids), "one change of state each"


def begin_same(root: str, hashes: list[str]) -> list[str]:
    """In a worker: begin every operation; the ids of the runs it got."""
    registry = RunRegistry(open_store(root))
    say("ready")
    hear()
    return [registry.begin("main", "C", 1, operation_hash=h, actor=h).run_id for h in hashes]


def test_of_several_processes_one_begins_an_operation(local: Store) -> None:
    hashes = [f"h{at}" for at in range(10)]
    workers = [spawn(f"{__name__}:begin_same", local.root.text, hashes) for _ in range(3)]
    for worker in workers:
        assert worker.next_line() == "ready"
    for worker in workers:
        worker.send("go")
    first, *others = [worker.wait(timeout=300).result() for worker in workers]
    assert others == [first, first]
    assert [run.run_id for run in RunRegistry(local).list()] == first
    RunRegistry(local).begin("review", "C", 1, actor="dana")
    assert len(actors(local)) == len(hashes) + 1
