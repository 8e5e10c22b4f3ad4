"""A runner in this process keeps the promises of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import JobFailed, MergeConflicts, QueryCancelled
from omnigraph_core.interruption import interrupted_by
from omnigraph_core.spark.outcomes import Failed, Returned, WorkerTraceback, attempt, values
from omnigraph_core.spark.runner import InProcessRunner
from omnigraph_core.spark.worker import outcome_of, pack, take_on, unpack
from tests.support import spark_jobs as jobs

if TYPE_CHECKING:
    from pathlib import Path

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
    assert (found["type"], found["details"]["tasks"]) == ("JobFailed", [0, 2])
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
    failed = Failed(None, "KeyError: 1", "trace")
    with pytest.raises(JobFailed) as caught:
        values([Returned(1), *[failed] * 12], name="many")
    assert caught.value.tasks == tuple(range(1, 13))
    assert caught.value.__notes__ == [
        "12 of 13 tasks of `many` failed: 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and others"
    ]
    assert isinstance(caught.value.__cause__, WorkerTraceback)


def done_elsewhere(work: Any, task: object, **environment: str) -> Returned[Any] | Failed:
    return unpack(outcome_of(work, pack(task), environment))


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


def test_a_task_that_does_not_arrive_is_a_failure() -> None:
    found = unpack(outcome_of(str, b"no pickle", {}))
    assert isinstance(found, Failed)
    assert found.error is None
    assert "UnpicklingError" in found.summary


def test_a_worker_takes_on_the_variables_of_each_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "mine")
    assert done_elsewhere(jobs.region, 0, AWS_REGION="first") == Returned("first")
    assert done_elsewhere(jobs.region, 0, AWS_REGION="second") == Returned("second")
    assert done_elsewhere(jobs.region, 0) == Returned("mine"), "what it had before any job"
    take_on({})


def test_an_attempt_catches_all_but_interrupts() -> None:
    assert attempt(int, "3") == Returned(3)
    found = attempt(int, "x")
    assert isinstance(found, Failed)
    assert found.summary == "ValueError: invalid literal for int() with base 10: 'x'"
