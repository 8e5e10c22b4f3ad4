"""Jobs on Spark whose driver is killed at each point it passes: all has happened, or nothing.

Tasks run on a Connect server, which outlives the drivers.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.failpoints import Failpoint
from omnigraph_core.settings import EMBEDDINGS_MOCK
from omnigraph_core.spark.embed import backfill as embed
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.spark.settings import REMOTE
from omnigraph_core.write.commit import WriteOptions
from tests.faults.crashes import crash_at
from tests.faults.operations import BY_NAME
from tests.faults.states import check_actors, state_of
from tests.faults.test_operations import record_another_commit
from tests.faults.writes import records
from tests.support.spark import driver_there

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.spark.runner import Runner
    from tests.faults.conftest import Copies
    from tests.support.spark import DriverThere
    from tests.support.spark_cluster import ConnectServer

LANDED: Final = "image.after_commit"


def load_append(address: str) -> None:
    _load(address, "append", records(["first", "first too"]))


def load_merge(address: str) -> None:
    """One of the rows is in the graph already."""
    _load(address, "merge", records(["a1", "first"], stock=5))


def load_overwrite(address: str) -> None:
    _load(address, "overwrite", records(["first", "b1"]))


def _load(address: str, mode: str, data: bytes) -> None:
    source = Path(f"{address}.jsonl")
    source.write_bytes(data)
    Omnigraph.open(address).load(
        source, mode=mode, embed="off", idempotency_key="first", engine="spark", actor="tester"
    )


def merge(address: str) -> None:
    Omnigraph.open(address).branch_merge("first", engine="spark", actor="tester")


def optimize(address: str) -> None:
    Omnigraph.open(address).optimize(engine="spark", actor="tester")


def backfill(address: str) -> None:
    """The server has no settings of ours."""
    runner = SparkRunner(open_session(), environment={EMBEDDINGS_MOCK.name: "1"})
    embed.backfill(Omnigraph.open(address)._context, WriteOptions(actor="tester"), runner)


@dataclass(frozen=True, slots=True)
class Job:
    """An operation that is done on Spark: its driver passes the points that one process passes,
    but for those which tasks pass."""

    run: Callable[[str], None]
    operation: str
    by_tasks: tuple[str, ...] = ()

    @property
    def graph(self) -> str:
        return BY_NAME[self.operation].graph

    @property
    def points(self) -> tuple[str, ...]:
        passed = BY_NAME[self.operation].points
        return tuple(point for point in passed if point not in self.by_tasks)

    def is_done_at(self, point: str) -> bool:
        return self.points.index(point) >= self.points.index(LANDED)


_BY_TASKS: Final = ("compact.after_rewrite", "compact.after_record", "index.after_build")
JOBS: Final = {
    job.run.__name__: job
    for job in (
        Job(load_append, "load, append"),
        Job(load_merge, "load, merge"),
        Job(load_overwrite, "load, overwrite"),
        Job(merge, "merge"),
        Job(backfill, "backfill"),
        Job(optimize, "compaction", _BY_TASKS),
    )
}
_STAGED: Final = "stage.after_version"
_ELSEWHERE: Final = pytest.mark.long(
    "test_operations kills one process at each point; test_the_points_a_driver_passes holds that "
    "a driver passes the same"
)
PASSED: Final = [
    pytest.param(name, point, id=f"{name}-{point}", marks=() if is_usual else _ELSEWHERE)
    for name, job in JOBS.items()
    for point in job.points
    # All jobs publish alike: for the others it is enough to try what differs.
    if name == "load_merge" or point.startswith(("stage.", "merge."))
    for is_usual in [
        (point == _STAGED and name not in ("load_append", "load_overwrite"))
        or (name == "load_merge" and point == LANDED)
    ]
]


def perform(runner: Runner, name: str, address: str) -> list[str]:
    """Do a job; the points that the driver passed."""
    passed: set[str] = set()
    with mock.patch.object(Failpoint, "hit", lambda point: passed.add(point.name)):
        JOBS[name].run(address)
    return sorted(passed)


@pytest.fixture(scope="module")
def remote(connect_server: ConnectServer) -> str:
    """A session of a Connect server, which the drivers share: each new one would start processes
    for its tasks, and a killed driver would leave them behind."""
    return f"{connect_server.url}/;session_id={uuid.uuid4()}"


@pytest.fixture(scope="module")
def driver(remote: str) -> Iterator[DriverThere]:
    """A process that is not killed; the one of the test may have a session elsewhere."""
    with driver_there("connect", remote=remote) as found:
        yield found


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """What a job does when nothing fails."""

    passed: list[str]
    before: dict[str, Any]
    after: dict[str, Any]


@pytest.fixture(scope="module")
def undisturbed(copies: Copies, driver: DriverThere) -> Callable[[str], Undisturbed]:
    found: dict[str, Undisturbed] = {}

    def of(name: str) -> Undisturbed:
        if name not in found:
            address = copies.of(JOBS[name].graph)
            before = state_of(address)
            passed = driver.call(perform, name, address)
            found[name] = Undisturbed(passed, before, state_of(address))
        return found[name]

    return of


@pytest.mark.parametrize("name", JOBS)
def test_the_points_a_driver_passes(name: str, undisturbed: Callable[[str], Undisturbed]) -> None:
    assert undisturbed(name).passed == sorted(JOBS[name].points)


@pytest.mark.parametrize(("name", "point"), PASSED)
def test_a_killed_driver(
    name: str,
    point: str,
    copies: Copies,
    remote: str,
    driver: DriverThere,
    undisturbed: Callable[[str], Undisturbed],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REMOTE.name, remote)
    job, expected = JOBS[name], undisturbed(name)
    address = copies.of(job.graph)
    crash_at(point, job.run, address)
    assert state_of(address) == (expected.after if job.is_done_at(point) else expected.before)
    driver.call(perform, name, address)
    assert state_of(address) == expected.after
    record_another_commit(Omnigraph.open(address))
    check_actors(address)
    Omnigraph.open(address).verify(is_deep=True).require_sound()
