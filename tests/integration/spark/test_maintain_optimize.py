"""Executors leave a graph as one process would: the same rows, files, indexes, and one commit."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.indexing import IndexState, ensure_indices
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.optimize import OptimizeReason, optimize
from omnigraph_core.engine.workers import workers_for
from omnigraph_core.errors import ConfigError, JobFailed, PolicyDenied
from omnigraph_core.failpoints import arm
from omnigraph_core.spark.maintain.workers import Executors
from omnigraph_core.spark.runner import InProcessRunner, SparkRunner
from omnigraph_core.spark.settings import MASTER, UPKEEP_FROM
from tests.integration.cli.process import omnigraph
from tests.integration.spark.conftest import ON_THIS_MACHINE
from tests.support.ageing import clean_up
from tests.support.damage import damages
from tests.support.judges import Recorder
from tests.support.upkeep_worlds import (
    answers,
    coverage,
    docs,
    grown_graph,
    records,
    rows,
    twin,
)
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.spark.runner import Runner
    from tests.support.spark import Driver

PART_ROWS = 1_500
BY_TASKS = {
    "compact": ("compact.after_rewrite", "compact.after_record"),
    "index": ("index.after_build",),
}
"""Points that tasks pass, by job."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("grown") / "graph"
    grown_graph(root)
    return root


def optimize_by(og: Omnigraph, runner: Any) -> tuple[TableOptimizeStats, ...]:
    return optimize(og._context, "main", actor="ada", workers=Executors(runner, PART_ROWS))


def optimize_there(runner: Runner, address: str) -> list[dict[str, object]]:
    return [item.to_json() for item in optimize_by(Omnigraph.open(address), runner)]


def index_there(runner: Runner, address: str) -> list[dict[str, object]]:
    context = Omnigraph.open(address)._context
    workers = Executors(runner, PART_ROWS)
    return coverage(ensure_indices(context, "main", actor=None, workers=workers))


def operations(og: Omnigraph) -> list[str]:
    return [commit.operation for commit in og.list_commits()]


@ON_THIS_MACHINE
def test_optimize(driver: Driver, original: Path, tmp_path: Path) -> None:
    here, there = twin(original, tmp_path / "here"), twin(original, tmp_path / "there")
    before, found = rows(here), answers(here)
    expected = [item.to_json() for item in here.optimize()]
    assert driver.call(optimize_there, there.uri) == expected
    assert rows(there) == rows(here) == before
    assert answers(there) == found
    assert coverage(there.index_status()) == coverage(here.index_status())
    assert {report.state for report in there.index_status()} == {IndexState.COMPLETE}
    assert records(tmp_path / "there") == records(tmp_path / "here") == 2
    assert damages(there) == []
    assert operations(there) == operations(here)
    assert operations(there).count("optimize") == 1
    assert there.list_commits(limit=1)[0].actor_id == "ada"
    assert {item["reason"] for item in driver.call(optimize_there, there.uri)} == {"nothing to do"}
    assert operations(there).count("optimize") == 1


@ON_THIS_MACHINE
def test_indexes_of_many_fragments(driver: Driver, original: Path, tmp_path: Path) -> None:
    here, there = twin(original, tmp_path / "here"), twin(original, tmp_path / "there")
    found = answers(here)
    reports = driver.call(index_there, there.uri)
    assert reports == coverage(here.ensure_indices())
    assert {(report["state"], report["segments"]) for report in reports} == {("complete", 1)}
    assert answers(there) == found
    assert damages(there) == []
    assert operations(there).count("ensure_indices") == 1
    assert [item["is_built"] for item in driver.call(index_there, there.uri)] == [False] * 11


def test_commands_and_calls(spark: SparkSession, original: Path, tmp_path: Path) -> None:
    told, graphs = [], []
    for engine in ("local", "spark"):
        twin(original, tmp_path / engine / "graph").close()
        ended = [
            omnigraph(*command, "graph", "--engine", engine, folder=tmp_path / engine)
            for command in (
                ["index", "ensure", "--as", "ada"],
                ["optimize", "--as", "bob"],
                ["index", "topology"],
                ["cleanup", "--keep", "9"],
            )
        ]
        assert {done.returncode for done in ended} == {0}, [done.stderr for done in ended]
        # A handle from before the commits would look for versions that so short a grace removes.
        og = Omnigraph.open(str(tmp_path / engine / "graph"))
        removed = clean_up(og, keep=1, engine=engine)
        shown = [done.stdout.splitlines() for done in ended]
        jobs = [[line for line in lines if line.startswith("spark: ")] for lines in shown]
        ran = [len(lines) for lines in jobs]
        assert ran == ([0, 0, 0, 0] if engine == "local" else [1, 1, 0, 1]), shown
        kept = [[line for line in lines if line not in jobs[at]] for at, lines in enumerate(shown)]
        told.append((kept, removed.branches))
        graphs.append(og)
    assert told[0] == told[1]
    here, there = graphs
    assert rows(there) == rows(here)
    by = [(commit.operation, commit.actor_id) for commit in there.list_commits()]
    assert by == [(commit.operation, commit.actor_id) for commit in here.list_commits()]
    assert {("ensure_indices", "ada"), ("optimize", "bob")} <= set(by)
    assert damages(there) == []


def test_the_engine_is_chosen_by_the_rows_of_a_branch(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    og = Omnigraph.open(str(original))
    context, count = og._context, sum(map(len, rows(og).values()))
    others = Executors(InProcessRunner())
    monkeypatch.setattr("omnigraph_core.spark.maintain.entry.workers", lambda: others)
    for master, least, expected in (
        ("spark://other:7077", count, others),
        ("spark://other:7077", count + 1, None),
        ("local[2]", 1, None),
    ):
        monkeypatch.setenv(MASTER.name, master)
        monkeypatch.setenv(UPKEEP_FROM.name, str(least))
        assert workers_for("auto", context, "main") is expected
    assert workers_for("spark", context, "main") is others
    assert workers_for("local", context, "main") is None
    with pytest.raises(ConfigError, match="duck"):
        workers_for("duck", context, "main")


def test_indexes_catch_up_as_in_one_process(original: Path, tmp_path: Path) -> None:
    here, there = twin(original, tmp_path / "here"), twin(original, tmp_path / "there")
    for start in range(10_000, 13_000, 500):
        assert index_there(InProcessRunner(), there.uri) == coverage(here.ensure_indices())
        for og in (here, there):
            og.load(docs(start, start + 500), type="Doc")
    assert coverage(there.index_status()) == coverage(here.index_status())
    assert max(report.segments for report in there.index_status()) > 1
    assert damages(there) == []


def test_a_merge_follows_rows_that_executors_moved(original: Path, tmp_path: Path) -> None:
    og = twin(original, tmp_path / "graph")
    og.branch_create("side")
    og.mutate('query q() { update Doc set { title: "new" } where slug = "d00017" }', branch="side")
    optimize_there(InProcessRunner(), og.uri)
    assert records(tmp_path / "graph") == 2
    before = rows(og)["node:Doc"]
    og.branch_merge("side")
    after = rows(og)["node:Doc"]
    assert [row["id"] for old, row in zip(before, after, strict=True) if old != row] == ["d00017"]
    assert damages(og) == []


class Meddling:
    """A runner that lets somebody write between its jobs."""

    def __init__(self, meddle: Callable[[], None], times: int) -> None:
        self._meddle, self._left = meddle, times
        self._inner = InProcessRunner()

    def map(self, work: Any, tasks: Sequence[Any], *, name: str, on_done: Any = None) -> list[Any]:
        done = self._inner.map(work, tasks, name=name, on_done=on_done)
        if name == "merge indexes" and self._left:
            self._left -= 1
            self._meddle()
        return done


@pytest.mark.parametrize(("times", "is_committed"), [(1, True), (3, False)])
def test_a_table_that_moves_meanwhile(
    original: Path, tmp_path: Path, times: int, is_committed: bool
) -> None:
    og, writer = twin(original, tmp_path / "graph"), Omnigraph.open(str(tmp_path / "graph"))
    start = iter(range(20_000, 30_000, 10))

    def meddle() -> None:
        first = next(start)
        writer.load(docs(first, first + 10), type="Doc")

    done = {item.table_key: item for item in optimize_by(og, Meddling(meddle, times))}
    assert done["edge:Cites"].committed
    assert done["node:Doc"].committed is is_committed
    assert done["node:Doc"].reason is (None if is_committed else OptimizeReason.MOVED)
    assert operations(og).count("optimize") == 1
    assert len(rows(og)["node:Doc"]) == 5943 + 10 * times
    assert damages(og) == []


def test_nothing_is_done_for_who_may_not(original: Path, tmp_path: Path) -> None:
    twin(original, tmp_path / "graph")
    judge = Recorder(is_allowing=False)
    og = Omnigraph.open(str(tmp_path / "graph"), policy=judge, actor="eve")
    calls: list[Callable[[], object]] = [
        lambda: og.optimize(engine="spark"),
        lambda: og.ensure_indices(engine="spark"),
        lambda: og.cleanup(keep=1, engine="spark"),
        lambda: og.build_topology(engine="spark"),
    ]
    for call in calls:
        with pytest.raises(PolicyDenied):
            call()
    asked = [(item.actor, item.action) for item in judge.asked]
    assert asked == [*[("eve", "admin")] * 3, ("eve", "read")]


def armed(points: Sequence[str], marks: str, most: int, work: Any, task: Any) -> Any:
    """Do a task that ends the process at a point; so many end at each."""
    left, at_work = Path(marks), Path(f"{marks}-at-work", str(os.getpid()))
    at_work.touch()
    try:
        point = next((one for one in points if len(list(left.glob(f"{one}-*"))) < most), None)
        if point is None:
            return work(task)
        (left / f"{point}-{os.getpid()}").touch()
        with arm(point, "crash"):
            return work(task)
    finally:
        at_work.unlink()


class Crashing:
    """A runner whose workers die in the midst of a task, at one point of a job after another."""

    def __init__(
        self, session: SparkSession, points: Mapping[str, Sequence[str]], marks: Path, most: int
    ) -> None:
        marks.mkdir()
        Path(f"{marks}-at-work").mkdir()
        self._runner = SparkRunner(session)
        self._points, self._marks, self._most = points, str(marks), most

    def map(self, work: Any, tasks: Sequence[Any], *, name: str, on_done: Any = None) -> list[Any]:
        deadly = partial(armed, self._points.get(name, ()), self._marks, self._most, work)
        return self._runner.map(deadly, tasks, name=name, on_done=on_done)


def test_lost_executors_are_replaced(spark: SparkSession, original: Path, tmp_path: Path) -> None:
    """One at each point that tasks pass."""
    og, marks = twin(original, tmp_path / "graph"), tmp_path / "marks"
    before = rows(og)
    runner = Crashing(spark, BY_TASKS, marks, 1)
    assert all(item.committed for item in optimize_by(og, runner))
    assert rows(og) == before
    assert {report.state for report in og.index_status()} == {IndexState.COMPLETE}
    assert damages(og) == []
    lost = {path.name for path in Path(f"{marks}-at-work").iterdir()}
    at = {
        point
        for point, _, worker in (mark.name.rpartition("-") for mark in marks.iterdir())
        if worker in lost
    }
    assert at == {point for points in BY_TASKS.values() for point in points}


@pytest.mark.parametrize("job", BY_TASKS)
def test_a_job_that_fails_leaves_nothing_to_see(
    spark: SparkSession, original: Path, tmp_path: Path, job: str
) -> None:
    og = twin(original, tmp_path / "graph")
    before, head = rows(og), og.head_commit_id_for_branch()
    with pytest.raises(JobFailed):
        optimize_by(og, Crashing(spark, {job: BY_TASKS[job][-1:]}, tmp_path / "marks", 10**6))
    assert og.head_commit_id_for_branch() == head
    assert rows(og) == before
    assert _swept(og, spark, tmp_path / "marks-at-work") > 0, "what tasks wrote is swept"
    assert damages(og) == []
    assert all(item.committed for item in og.optimize())


def _swept(og: Omnigraph, spark: SparkSession, at_work: Path) -> int:
    """Files that cleanup removes until it finds none and no record is left.

    Other tasks of a failed job end later. Spark counts a task from its dispatch to its end; the
    mark of a worker stands for what it does after Spark has given it up.
    """

    def tasks() -> list[str]:
        """A worker that crashed has not taken its mark away."""
        tracker = spark.sparkContext._jsc.sc().statusTracker()
        dispatched = sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())
        marks = [mark.name for mark in at_work.iterdir() if Path("/proc", mark.name).exists()]
        return [*marks, *["a task"] * dispatched]

    def sweep() -> bool:
        if tasks():
            return False
        report = clean_up(og, keep=1)
        removed.append(sum(table.files_removed for table in report.tables))
        return not removed[-1] and records(Path(og.uri)) == 0

    removed: list[int] = []
    wait_until(sweep, "nothing to sweep", tell=lambda: (tasks(), removed, records(Path(og.uri))))
    return sum(removed)
