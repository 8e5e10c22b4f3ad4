"""A runner does every task once, whatever happens, and the same wherever Spark runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import MergeConflicts
from tests.support import spark_jobs as jobs
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.spark import Driver

_ALIKE = "this machine; on clusters the same calls, which test_cluster and the settings show"
_ON_CLUSTERS = pytest.mark.long(_ALIKE)
_IN_ONE_SESSION = pytest.mark.long("this machine: no part of the driver has to do with it")
NOT_ON_THE_CLUSTER = pytest.mark.parametrize(
    "driver", ["local", pytest.param("cluster", marks=_ON_CLUSTERS), "connect"], indirect=True
)
ON_THIS_MACHINE = pytest.mark.parametrize(
    "driver",
    [
        "local",
        pytest.param("cluster", marks=_ON_CLUSTERS),
        pytest.param("connect", marks=_IN_ONE_SESSION),
    ],
    indirect=True,
)


@NOT_ON_THE_CLUSTER
def test_results_are_in_the_order_of_the_tasks(driver: Driver) -> None:
    assert driver.call(jobs.squares, 0) == []
    assert driver.call(jobs.squares, 1) == [0]
    assert driver.call(jobs.squares, 40) == [number**2 for number in range(40)]
    assert driver.call(jobs.rich_values)


@NOT_ON_THE_CLUSTER
def test_each_task_is_a_spark_task_of_a_job_with_a_name(driver: Driver) -> None:
    found = driver.call(jobs.spark_tasks, 12, "twelve tasks")
    assert [partition for partition, _, _ in found] == list(range(12))
    if driver.name == "connect":  # the server describes jobs by itself
        assert all("twelve-tasks" in tags for _, _, tags in found)
    else:
        assert {description for _, description, _ in found} == {"twelve tasks"}


@NOT_ON_THE_CLUSTER
def test_progress_rises_to_the_end(driver: Driver, tmp_path: Path) -> None:
    heard = driver.call(jobs.told, str(tmp_path), 6)
    assert heard[0] == 1, "it is told while other tasks wait for it"
    assert heard == sorted(set(heard))
    assert heard[-1] == 6


@NOT_ON_THE_CLUSTER
def test_an_error_of_ours_arrives_as_it_was(driver: Driver) -> None:
    found = driver.call(jobs.failure, "fail_from_two")
    assert found["type"] == "MergeConflicts"
    assert found["message"] == MergeConflicts("conflict in task 2", jobs.CONFLICTS).message
    assert found["details"] == {"merge_conflicts": jobs.CONFLICTS}
    assert found["notes"] == ["2 of 4 tasks of `four tasks` failed: 3, 4"]
    assert "in fail_from_two" in found["cause"]
    assert found["done"] == 4, "all failures are known"


@NOT_ON_THE_CLUSTER
def test_any_other_error_names_job_and_task(driver: Driver) -> None:
    found = driver.call(jobs.failure, "divide")
    assert found["type"] == "JobFailed"
    (task,) = found["details"]["tasks"]
    assert task in (0, 2)
    assert found["message"] == (
        f"task {task + 1} of 4 of `four tasks` failed: ZeroDivisionError: division by zero"
    )
    assert found["details"]["job"] == "four tasks"
    assert "in divide" in found["details"]["trace"]
    assert "in divide" in found["cause"]


@ON_THIS_MACHINE
def test_what_cannot_travel_is_an_error(driver: Driver) -> None:
    found = driver.call(jobs.failure, "return_a_lock")
    assert found["type"] == "JobFailed"
    assert "cannot pickle '_thread.lock' object" in found["message"]

    found = driver.call(jobs.failure, "hold_a_lock")
    assert found["type"] == "MergeConflicts"
    assert found["details"] == {"merge_conflicts": jobs.CONFLICTS}

    said = driver.call(jobs.send_a_lock)
    assert said.startswith("JobFailed: Spark could not run `locks`: ")
    assert "lock" in said.removeprefix("JobFailed: Spark could not run `locks`: ")


@ON_THIS_MACHINE
def test_blocks_meet_behind_the_shuffle(driver: Driver, tmp_path: Path) -> None:
    assert driver.call(jobs.exchange, 0) == []
    expected = [[task * partition for task in range(5)] for partition in range(jobs.PARTITIONS)]
    assert driver.call(jobs.exchange, 5) == expected
    assert driver.call(jobs.exchange, 5, str(tmp_path)) == expected, "what passes is not noticed"
    attempts = [len(list(tmp_path.glob(f"emit-{number}-*"))) for number in range(5)]
    assert attempts[1] == 2


@ON_THIS_MACHINE
def test_a_killed_worker_is_replaced(driver: Driver, tmp_path: Path) -> None:
    assert driver.call(jobs.survive, str(tmp_path)) == [0, 10, 20, 30, 40]
    attempts = [len(list(tmp_path.glob(f"attempt-{number}-*"))) for number in range(5)]
    assert attempts[2] == 3
    assert sum(attempts) >= 7


@NOT_ON_THE_CLUSTER
def test_a_task_that_kills_every_worker_fails_the_job(driver: Driver) -> None:
    found = driver.call(jobs.perish)
    assert found["type"] == "JobFailed"
    assert found["message"].startswith("Spark could not run `perish`: ")
    assert "Job aborted" in found["message"]
    assert driver.call(jobs.squares, 3) == [0, 1, 4], "the session goes on"


@pytest.mark.parametrize(
    ("driver", "how"),
    [
        ("local", "keyboard"),
        ("local", "check"),
        ("connect", "keyboard"),
        pytest.param("connect", "check", marks=pytest.mark.long("the keyboard stops it alike")),
        pytest.param("cluster", "keyboard", marks=_ON_CLUSTERS),
        pytest.param("cluster", "check", marks=_ON_CLUSTERS),
    ],
    indirect=["driver"],
)
def test_a_stopped_job_stops(driver: Driver, tmp_path: Path, how: str) -> None:
    found = driver.call(jobs.interrupt, str(tmp_path), how)
    assert found["raised"] == {"keyboard": "KeyboardInterrupt", "check": "QueryCancelled"}[how]
    assert found["ended"] == [], "it did not wait for its tasks"
    _wait_for_silence(tmp_path)
    started = len(list(tmp_path.glob("beat-*")))
    assert started == jobs.SLOTS
    assert driver.call(jobs.squares, 3) == [0, 1, 4], "the session goes on"
    assert len(list(tmp_path.glob("beat-*"))) == started, "no task was left to be started"


def _wait_for_silence(directory: Path) -> None:
    """Spark kills a worker some seconds after its task was cancelled."""
    wait_until(lambda: not jobs.workers(str(directory)), "the end of every worker with such a task")


@NOT_ON_THE_CLUSTER
def test_stopping_a_job_leaves_others_alone(driver: Driver, tmp_path: Path) -> None:
    found = driver.call(jobs.side_by_side, str(tmp_path))
    assert found == {"found": [0, 1, 4, 9, 16, 25], "stopped": ["QueryCancelled"]}
    _wait_for_silence(tmp_path)


def test_tasks_see_the_settings_of_the_driver(driver: Driver) -> None:
    found = driver.call(jobs.regions)
    theirs = [None] * 3
    ours = driver.name != "connect"  # a server has an environment of its own
    assert found == {
        "first": ["first"] * 3 if ours else theirs,
        "second": ["second"] * 3 if ours else theirs,
        "None": theirs,
        "given": ["given"] * 3,
    }
