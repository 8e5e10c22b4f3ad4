"""A runner in this process keeps the promises of the others."""

from __future__ import annotations

import traceback
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import JobFailed, MergeConflicts, QueryCancelled, StorageError
from omnigraph_core.interruption import interrupted_by
from omnigraph_core.spark import worker
from omnigraph_core.spark.blocks import Blocks
from omnigraph_core.spark.outcomes import (
    Failed,
    Returned,
    WorkerTraceback,
    attempt,
    error_of,
    values,
)
from omnigraph_core.spark.runner import InProcessRunner
from omnigraph_core.spark.worker import emitter, meeter, outcome_of, pack, take_on, unpack
from tests.support import spark_jobs as jobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.spark.blocks import Received

RUNNER = InProcessRunner()


def test_results_are_in_the_order_of_the_tasks() -> None:
    assert RUNNER.map(str, [], name="none") == []
    assert RUNNER.map(str, [3, 1, 2], name="texts") == ["3", "1", "2"]
    assert jobs.rich_values(RUNNER)


def test_progress_rises_to_the_end(tmp_path: Path) -> None:
    assert jobs.told(RUNNER, str(tmp_path), 4) == [1, 2, 3, 4]


def test_an_error_of_ours_is_raised_as_it_was() -> None:
    found = jobs.failure(RUNNER, "fail_from_two")
    assert found["type"] == "MergeConflicts"
    assert found["details"] == {"merge_conflicts": jobs.CONFLICTS}
    assert found["notes"] == ["2 of 4 tasks of `four tasks` failed: 3, 4"]
    assert found["done"] == 4


def test_any_other_error_names_job_and_task() -> None:
    found = jobs.failure(RUNNER, "divide")
    assert (found["type"], found["details"]["tasks"]) == ("JobFailed", [0])
    assert found["message"] == (
        "task 1 of 4 of `four tasks` failed: ZeroDivisionError: division by zero"
    )
    assert "in divide" in found["cause"]


def test_it_can_be_stopped_between_tasks() -> None:
    done: list[int] = []

    def check() -> None:
        if len(done) == 2:
            raise QueryCancelled

    with interrupted_by(check), pytest.raises(QueryCancelled):
        RUNNER.map(done.append, range(5), name="five")
    assert done == [0, 1]


def test_an_interrupt_of_a_task_is_no_outcome() -> None:
    def press(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RUNNER.map(press, [1], name="one")


def test_many_failures_are_counted_and_some_are_named() -> None:
    failed = Failed(MergeConflicts("conflict", jobs.CONFLICTS), "trace")
    with pytest.raises(MergeConflicts) as caught:
        values([Returned(1), *[failed] * 12], name="many")
    assert caught.value.__notes__ == [
        "12 of 13 tasks of `many` failed: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and others"
    ]
    assert isinstance(caught.value.__cause__, WorkerTraceback)


def done_elsewhere(work: Any, task: object, **environment: str) -> Returned[Any] | Failed:
    take_on(environment)
    return unpack(outcome_of(work, pack(task), 0))


def test_outcomes_travel() -> None:
    assert done_elsewhere(lambda pair: pair[0], ("x", 1)) == Returned("x")
    found = done_elsewhere(jobs.fail_from_two, 2)
    assert isinstance(found, Failed)
    assert isinstance(found.error, MergeConflicts)
    assert vars(found.error) == vars(MergeConflicts("conflict in task 2", jobs.CONFLICTS))
    assert "in fail_from_two" in found.trace


def test_errors_that_hold_what_cannot_travel_do_so_without() -> None:
    found = done_elsewhere(jobs.hold_a_lock, 0)
    assert isinstance(found, Failed)
    assert isinstance(found.error, MergeConflicts)
    assert found.error.details() == {"merge_conflicts": jobs.CONFLICTS}


def test_a_task_that_does_not_arrive_is_for_spark_to_repeat() -> None:
    with pytest.raises(UnpicklingError) as raised:
        outcome_of(str, b"no pickle", 3)
    assert raised.value.__notes__ == ["omnigraph task 3"]


def test_a_worker_takes_on_the_variables_of_each_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "mine")
    assert done_elsewhere(jobs.region, 0, AWS_REGION="first") == Returned("first")
    assert done_elsewhere(jobs.region, 0, AWS_REGION="second") == Returned("second")
    assert done_elsewhere(jobs.region, 0) == Returned("mine"), "what it had before any job"
    take_on({})


def test_only_what_a_retry_cannot_change_is_an_outcome() -> None:
    assert attempt(int, "3", 0) == Returned(3)
    assert isinstance(attempt(jobs.fail_from_two, 2, 0), Failed)
    with pytest.raises(ValueError, match="invalid literal") as raised:
        attempt(int, "x", 7)
    trace = "".join(traceback.format_exception(raised.value))
    found = error_of(trace, summary="ValueError: x", name="ints", count=9)
    assert isinstance(found, JobFailed)
    assert found.message == "task 8 of 9 of `ints` failed: ValueError: x"


def test_a_passing_error_is_told_as_it_was_when_spark_gives_up() -> None:
    def lose(_: int) -> None:
        raise StorageError("the store is away", retryable=True)

    with pytest.raises(StorageError) as raised:
        attempt(lose, 0, 0)
    trace = "".join(traceback.format_exception(raised.value))
    found = error_of(trace, summary="", name="x", count=1)
    assert isinstance(found, StorageError)
    assert (found.message, found.retryable) == ("the store is away", True)


def words(task: tuple[str, ...]) -> Iterator[Blocks]:
    """Each word of a text for the partition of its length."""
    for section, longest in ((1, 9), (0, 5)):
        chosen = sorted((word for word in task if len(word) < longest), key=len)
        lengths = [len(word) for word in chosen]
        ends = [sum(length for length in lengths if length < at) for at in range(10)]
        yield Blocks(section, np.array(ends), "".join(chosen).encode())


def gathered(partition: int, received: Received) -> tuple[int, dict[int, list[Any]]]:
    return partition, {section: list(blocks) for section, blocks in received.items()}


def test_blocks_meet_by_partition() -> None:
    tasks = [("aa", "bb", "cccccc"), (), ("dd", "e")]
    assert RUNNER.exchange(words, tasks, gathered, 9, name="words") == [
        (1, {0: [(2, b"e")], 1: [(2, b"e")]}),
        (2, {0: [(0, b"aabb"), (2, b"dd")], 1: [(0, b"aabb"), (2, b"dd")]}),
        (6, {1: [(0, b"cccccc")]}),
    ]
    assert RUNNER.exchange(words, [], gathered, 9, name="words") == []


def batches_of(tasks: list[Any]) -> Iterator[pa.RecordBatch]:
    payloads = [pack(task) for task in tasks]
    yield pa.record_batch([pa.array(range(len(tasks)), pa.int32()), pa.array(payloads)], ["t", "p"])


def test_workers_exchange_what_the_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_BATCH_BYTES", 3)
    tasks = [("aa", "bb", "cccccc"), (), ("dd", "e")]
    emitted = list(emitter(words, 9, {})(batches_of(tasks)))
    assert len(emitted) > 4, "some blocks at a time"
    met = meeter(gathered, {})(reversed(emitted))
    outcomes = [unpack(row["outcome"]) for batch in met for row in batch.to_pylist()]
    expected = RUNNER.exchange(words, tasks, gathered, 9, name="words")
    assert outcomes == [Returned(value) for value in expected]


def refuse_empty(task: tuple[str, ...]) -> Iterator[Blocks]:
    yield from words(task)
    if not task:
        raise MergeConflicts("it is empty", jobs.CONFLICTS)


def test_an_error_of_ours_goes_through_the_exchange() -> None:
    emitted = emitter(refuse_empty, 9, {})(batches_of([("aa",), ()]))
    outcomes = [
        unpack(row["outcome"])
        for batch in meeter(gathered, {})(emitted)
        for row in batch.to_pylist()
    ]
    (failed,) = outcomes
    assert isinstance(failed, Failed), "and no partition looks at half of what there is"
    assert failed.error.message == MergeConflicts("it is empty", ()).message
