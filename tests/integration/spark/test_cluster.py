"""Executors are lost, lack our package, and end with whoever started them."""

from __future__ import annotations

import fcntl
import json
import signal
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.spark.conftest import CLUSTER_SETTINGS
from tests.support import spark_jobs as jobs
from tests.support import spark_loads, spark_merges, spark_repeats
from tests.support.load_worlds import SCHEMA, content
from tests.support.processes import say, spawn
from tests.support.spark import driver_there
from tests.support.spark_cluster import LonelyMaster
from tests.support.upkeep_worlds import twin
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.spark.runner import SparkRunner
    from tests.support.spark import DriverThere
    from tests.support.spark_cluster import StandaloneCluster


@pytest.mark.long(
    "test_what_a_lost_executor_has_emitted_is_emitted_again, by the one that replaces it"
)
def test_a_lost_executor_is_replaced(cluster_driver: DriverThere, tmp_path: Path) -> None:
    assert cluster_driver.call(jobs.lose_an_executor, str(tmp_path)) == [0, 10, 20, 30, 40]
    assert len(list(tmp_path.glob("lost-*"))) == 2


def test_what_a_lost_executor_has_emitted_is_emitted_again(
    cluster_driver: DriverThere, tmp_path: Path
) -> None:
    expected = [[task * partition for task in range(5)] for partition in range(jobs.PARTITIONS)]
    assert cluster_driver.call(jobs.exchange, 5, "", str(tmp_path)) == expected
    assert len(list(tmp_path.glob("lost-*"))) == 2


def test_executors_are_sent_the_package_they_lack(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    conf = CLUSTER_SETTINGS | {
        "spark.pyspark.python": str(_python_without_us(tmp_path)),
        "spark.python.daemon.module": "pyspark.daemon",  # ours is in the package
        "spark.task.maxFailures": "1",
        "spark.cores.max": "1",  # one executor
    }
    with driver_there("bare", master=cluster.url, conf=conf) as driver:
        found = driver.call(jobs.bare_executors)
        java = driver.call(java_of_the_driver)
        assert _is_running(java)
        driver.worker.kill()
        driver.worker.wait()
        wait_until(lambda: not _is_running(java), "the end of Java with its driver")
    assert "No module named 'omnigraph_core'" in found["before"]
    assert "hint: the executors have no `omnigraph_core`" in found["before"]
    assert found["is_sent"] == [True, False]
    assert all("omnigraph_core.zip" in path for path in found["found"])


@pytest.fixture(scope="module")
def speculating(cluster: StandaloneCluster) -> Iterator[DriverThere]:
    """A session in which slow tasks are repeated elsewhere, and idle executors end."""
    conf = CLUSTER_SETTINGS | {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
        "spark.dynamicAllocation.initialExecutors": "2",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
    }
    with driver_there("speculating", master=cluster.url, conf=conf) as driver:
        yield driver


@pytest.mark.long("tasks that are done twice: test_tasks_may_be_done_twice, of several jobs")
def test_nothing_is_doubled_by_speculation_or_lost_with_idle_executors(
    speculating: DriverThere, tmp_path: Path
) -> None:
    """Spark repeats a slow task elsewhere, and both attempts write; idle executors end."""
    data, signs = tmp_path / "parts.jsonl", tmp_path / "signs"
    rows = ({"type": "Part", "data": {"sku": f"p{number}"}} for number in range(2_000))
    data.write_text("\n".join(map(json.dumps, rows)))
    signs.mkdir()
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    arguments = (graph.uri, [str(data)], str(signs), "wait_for_another_attempt", 20_000)
    assert speculating.call(spark_loads.load_slowly, *arguments)[0] == "loaded"
    assert speculating.call(jobs.wait_for_idle_executors) == 0
    assert speculating.call(jobs.exchange, 5) == [
        [task * partition for task in range(5)] for partition in range(jobs.PARTITIONS)
    ]
    assert len(list(signs.glob("attempt-1-*"))) == 2
    assert graph.snapshot().table("node:Part").row_count == 2_000
    assert graph.verify(is_deep=True).is_sound


NOTES: Final = """
node Note { slug: String @key  text: String? @index  topic: Vector(8)? @embed("text") }
node Tag { slug: String @key  text: String? @index }
edge Marks: Tag -> Note
"""


@pytest.mark.long("tasks that are done twice: test_tasks_may_be_done_twice, of each of them")
def test_vectors_maintenance_and_merges_are_done_once_though_tasks_are_repeated(
    speculating: DriverThere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each job one task is begun twice, between jobs executors end: one commit for each."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    here = Omnigraph.init(str(tmp_path / "here"), NOTES)
    for start in range(0, 400, 100):
        here.load(_notes(range(start, start + 100)), mode="append", embed="off")
    there = twin(tmp_path / "here", tmp_path / "there")

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        found = speculating.call(function, there.uri, str(tmp_path / "attempts"), *arguments)
        assert speculating.call(jobs.wait_for_idle_executors) == 0
        return found

    made = call(spark_repeats.embed, 50, {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    assert made["vectors_made"] == here.embed_backfill().vectors_made == 400
    done = call(spark_repeats.maintain, 100)
    assert done == [item.to_json() for item in here.optimize()]
    for og in (here, there):
        og.branch_create("review")
        og.load(_notes(range(350, 500), "theirs"), mode="merge", embed="off", branch="review")
        og.load(_notes(range(600, 700)), mode="merge", embed="off")
    merged = call(spark_repeats.merge, "review", 16)
    expected = spark_merges.outcome(lambda: here.branch_merge("review", engine="local"))
    assert merged == json.loads(json.dumps(expected))

    repeated = {path.parent.name for path in (tmp_path / "attempts").glob("*/attempt-1-*")}
    assert repeated >= {"ask for vectors", "compact", "index", "write node:Note"}
    for name in repeated:
        assert len(list((tmp_path / "attempts" / name).glob("attempt-1-*"))) >= 2
    found = Omnigraph.open(there.uri)
    operations = [commit.operation for commit in found.list_commits()]
    assert operations == [commit.operation for commit in here.list_commits()]
    assert content(found) == content(here)
    assert found.verify(is_deep=True).is_sound


def _notes(numbers: range, word: str = "note") -> bytes:
    records: list[dict[str, Any]] = []
    for number in numbers:
        note = {"slug": f"n{number}", "text": f"{word} {number}"}
        records.append({"type": "Note", "data": note})
        records.append({"type": "Tag", "data": {"slug": f"t{number}", "text": word}})
        mark = {"edge": "Marks", "from": f"t{number}", "to": f"n{number}"}
        records.append(mark | {"data": {"id": f"m{number}"}})
    return "\n".join(map(json.dumps, records)).encode()


def java_of_the_driver(runner: SparkRunner) -> int:
    return int(runner.session.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]


def _is_running(process: int) -> bool:
    """Whether a process has not ended; nobody may have asked for its end yet."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _python_without_us(directory: Path) -> Path:
    """The packages of this Python, but not those that it only links to."""
    packages = sysconfig.get_path("purelib")
    script = directory / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.long("test_executors_are_sent_the_package_they_lack: the same call of Spark sends it")
def test_a_connect_session_is_sent_the_package(connect_driver: DriverThere) -> None:
    found = connect_driver.call(jobs.sent_package)
    assert not found["is_needed"]
    assert all(len(paths) == 1 and "omnigraph_core.zip" in paths[0] for paths in found["there"])
    assert found["elsewhere"] == [[], []]


def hold_a_master(directory: str) -> None:
    """The body of a process that uses a service until it is killed."""
    with LonelyMaster(Path(directory)) as service:
        say(service.url)
        signal.pause()


def test_a_service_is_shared_and_ends_with_its_last_user(tmp_path: Path) -> None:
    with spawn(f"{__name__}:hold_a_master", str(tmp_path)) as other:
        url = other.next_line(300)
        with LonelyMaster(tmp_path) as ours:
            assert ours.url == url
            assert _processes_in(tmp_path)
            other.kill()
            other.wait()
            with (tmp_path / "users.lock").open("a") as users, pytest.raises(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with LonelyMaster(tmp_path) as third:
                assert third.url == url
            assert _processes_in(tmp_path), "one user is left"
    wait_until(
        lambda: not _processes_in(tmp_path),
        "the end of the service",
        tell=lambda: _processes_in(tmp_path),
    )


def _processes_in(directory: Path) -> list[str]:
    """Processes that work in a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve() == directory.resolve():
                found.append(entry.name)
        except OSError:  # it has ended
            continue
    return found
