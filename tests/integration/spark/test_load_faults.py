"""Loads on Spark that go wrong: interrupted, killed, short of memory, fed with broken files."""

from __future__ import annotations

import gzip
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyarrow import parquet

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import OmnigraphError
from omnigraph_core.settings import FAILPOINTS
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.settings import REMOTE
from tests.integration.cli.process import ENVIRONMENT, OMNIGRAPH
from tests.integration.spark.conftest import ON_THIS_MACHINE
from tests.support import spark_loads
from tests.support.ageing import clean_up
from tests.support.embedding_server import EmbeddingServer, Reply
from tests.support.load_worlds import SCHEMA, content, outcome
from tests.support.spark import ROOT, SECONDS, DoingTwice
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tests.support.spark import Driver
    from tests.support.spark_cluster import ConnectServer

MANY: Final = 60_000
FEW: Final = 2_000
TEXT: Final = "a wide row " * 180
HEAP: Final = {"OMNIGRAPH_SPARK_CONF": json.dumps({"spark.driver.memory": "512m"})}
WITH_VECTORS: Final = SCHEMA + 'node Page { text: String  topic: Vector(4)? @embed("text") }'
INTERRUPTED: Final = "\ninterrupted: nothing was loaded\n"


def part(number: int, name: str = "") -> str:
    return json.dumps({"type": "Part", "data": {"sku": f"p{number}", "name": name, "stock": 1}})


class Command:
    """`omnigraph load --engine spark` at a terminal, in a session of its own."""

    def __init__(self, graph: Path, *data: Path, env: Mapping[str, str]) -> None:
        self._terminal, other_end = pty.openpty()
        self.screen = b""
        given = [argument for path in data for argument in ("--data", path)]
        self.process = subprocess.Popen(
            [OMNIGRAPH, "load", graph, *given, "--engine", "spark", "--mode", "append"],
            env={**ENVIRONMENT, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **env},
            stdout=other_end,
            stderr=other_end,
            start_new_session=True,
        )
        os.close(other_end)

    def follow(self, until: str | None = None) -> str:
        """Read the screen until it shows a text, or to the end."""
        while until is None or until.encode() not in self.screen:
            try:
                self.screen += os.read(self._terminal, 4096)
            except OSError:  # how a terminal says that nobody writes to it any more
                os.close(self._terminal)
                assert until is None, self.screen.decode()
                break
        return self.screen.decode().replace("\r\n", "\n")

    def wait_for_the_last(self) -> None:
        """It leaves no process of its session behind."""
        pid = self.process.pid
        wait_until(
            lambda: not _session(pid),
            "the end of the session",
            seconds=SECONDS,
            tell=lambda: _session(pid),
        )


def _session(leader: int) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z":
            found.append(command)
    return found


def files_below(graph: Path) -> list[str]:
    """Rows that lie there, referred to or not, and what tasks leave for each other."""
    found = [*graph.glob("nodes/**/data/*"), *(graph / "_scratch").rglob("*")]
    return sorted(str(path.relative_to(graph)) for path in found if path.is_file())


def interrupt(command: Command) -> str:
    """Press Ctrl-C in the midst of a load; it says so and ends, and so does all it has started."""
    command.follow(until=" rows read")
    os.killpg(command.process.pid, signal.SIGINT)  # as a terminal does
    screen = command.follow()
    assert command.process.wait(SECONDS) == 130
    assert "loading on Spark … " in screen
    assert screen.endswith(INTERRUPTED), screen
    assert "WARNING" not in screen
    assert "Traceback" not in screen
    command.wait_for_the_last()
    return screen


def let_land(command: Command, og: Omnigraph, rows: int) -> None:
    screen = command.follow()
    assert command.process.wait(SECONDS) == 0, screen
    assert f"{rows:,} rows read, {rows:,} validated, {rows:,} staged" in screen
    assert f"with append: {rows} nodes across 1 node types" in screen
    assert og.snapshot().table("node:Part").row_count == rows
    assert len(og.list_commits()) == 2
    assert og.verify(is_deep=True).is_sound


def require_nothing(og: Omnigraph, graph: Path, head: str | None) -> None:
    """A killed load has left files, and nothing else; cleanup takes them away."""
    assert og.head_commit_id_for_branch() == head
    assert og.snapshot().table("node:Part").row_count == 0
    assert files_below(graph) != []
    clean_up(og, keep=1)
    assert files_below(graph) == []


def test_an_interrupted_load_has_not_been(tmp_path: Path) -> None:
    """Its second task waits for a vector that never comes, so that it is always in the midst."""
    parts, pages, graph = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "graph"
    parts.write_text("\n".join(part(number) for number in range(FEW)))
    pages.write_text(json.dumps({"type": "Page", "data": {"text": "a page"}}))
    og = Omnigraph.init(str(graph), WITH_VECTORS)
    head = og.head_commit_id_for_branch()
    with EmbeddingServer() as server:
        server.queue(*[Reply(is_withheld=True)] * 100)
        provider = {
            "OMNIGRAPH_EMBEDDINGS_MOCK": "",
            "OMNIGRAPH_EMBED_CACHE": "off",
            "OMNIGRAPH_EMBED_PROVIDER": "openai",
            "OMNIGRAPH_EMBED_BASE_URL": server.url,
            "OPENAI_API_KEY": "sk-secret",
            "NO_PROXY": "127.0.0.1",
        }
        command = Command(graph, parts, pages, env=provider)
        command.follow(until=" rows read")
        wait_until(lambda: server.texts == ["a page"], "the other task", seconds=SECONDS)
        screen = interrupt(command)
    assert f"{FEW:,} rows read" in screen
    assert og.head_commit_id_for_branch() == head


def test_a_killed_load_has_not_been(connect_server: ConnectServer, tmp_path: Path) -> None:
    """It stays where all is read, and is killed there; left alone, it loads the rows once."""
    data, graph = tmp_path / "parts.jsonl", tmp_path / "graph"
    data.write_text("\n".join(part(number) for number in range(FEW)))
    og = Omnigraph.init(str(graph), SCHEMA)
    head = og.head_commit_id_for_branch()
    there = {REMOTE.name: connect_server.url}

    staying = {FAILPOINTS.name: f"stage.before_files=sleep({SECONDS}000)"}
    killed = Command(graph, data, env=there | staying)
    killed.follow(until=f"{FEW:,} rows read")
    killed.process.kill()
    killed.follow()
    assert killed.process.wait(SECONDS) == -signal.SIGKILL
    killed.wait_for_the_last()
    require_nothing(og, graph, head)

    let_land(Command(graph, data, env=there), og, FEW)


@pytest.mark.long("the tests above, with few rows; test_cluster shows that Java ends with a driver")
def test_a_large_load_that_is_ended_in_the_midst_has_not_been(tmp_path: Path) -> None:
    """Interrupted, then killed, then left alone: more rows than its heap could hold land once."""
    data, graph = tmp_path / "parts.jsonl", tmp_path / "graph"
    data.write_text("\n".join(part(number, TEXT) for number in range(MANY)))
    assert data.stat().st_size > 100 << 20
    og = Omnigraph.init(str(graph), SCHEMA)
    head = og.head_commit_id_for_branch()

    interrupt(Command(graph, data, env=HEAP))
    assert og.head_commit_id_for_branch() == head

    killed = Command(graph, data, env=HEAP)
    killed.follow(until=" rows read")
    killed.process.kill()
    assert killed.process.wait(SECONDS) == -signal.SIGKILL
    killed.wait_for_the_last()
    require_nothing(og, graph, head)

    let_land(Command(graph, data, env=HEAP), og, MANY)


def test_tasks_may_be_done_twice(tmp_path: Path) -> None:
    data, more = tmp_path / "parts.jsonl", tmp_path / "more.jsonl"
    data.write_text("\n".join(part(number) for number in range(2_000)))
    more.write_text("\n".join(part(number, "again") for number in range(1_000, 3_000)))
    once, twice = (Omnigraph.init(str(tmp_path / name), SCHEMA) for name in ("once", "twice"))
    for path in (data, more):
        once.load(str(path), mode="merge")
        size = path.stat().st_size // 4
        told = spark_loads.load_in_parts(DoingTwice(), twice.uri, [str(path)], "merge", size)
        assert told[0] == "loaded"
    assert content(twice) == content(once)
    assert twice.snapshot().table("node:Part").row_count == 3_000
    assert twice.verify(is_deep=True).is_sound
    left = files_below(tmp_path / "twice")
    clean_up(twice, keep=1)
    assert len(files_below(tmp_path / "twice")) < len(left)
    assert content(twice) == content(once)


def test_a_store_that_is_away_for_a_moment_is_not_noticed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One of two hundred tasks fails when its rows are written, and so does one that emits keys."""
    data, signs = tmp_path / "parts.jsonl", tmp_path / "signs"
    data.write_text("\n".join(part(number) for number in range(1_000)))
    signs.mkdir()
    whole, spread = (Omnigraph.init(str(tmp_path / name), SCHEMA) for name in ("whole", "spread"))
    expected = outcome(lambda: whole.load(str(data), mode="append"))
    part_bytes = -(-data.stat().st_size // 200)
    told, jobs = spark_loads.load_forgetting(
        SparkRunner(spark), spread.uri, [str(data)], str(signs), 137, part_bytes
    )
    assert told == expected
    names = ["read and check records", "compare keys"]
    assert [(job["name"], job["failed_tasks"]) for job in jobs] == [(name, 1) for name in names]
    assert jobs[0]["tasks"] == 200
    assert [len(list(signs.glob(f"{name}-*"))) for name in names] == [2, 2]
    assert content(spread) == content(whole)
    assert len(spread.list_commits()) == 2
    assert spread.verify(is_deep=True).is_sound


class Losing:
    """Before keys are compared, one of the files is lost that those who read them have left."""

    def __init__(self, session: SparkSession, graph: Path) -> None:
        self._inner = SparkRunner(session)
        self._scratch = graph / "_scratch"
        self.lost = ""

    @property
    def parallelism(self) -> int:
        return self._inner.parallelism

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        return self._inner.map(work, tasks, name=name, on_done=on_done)

    def exchange(
        self, emit: Any, tasks: Any, meet: Any, partitions: int, *, name: str
    ) -> list[Any]:
        path = min(path for path in self._scratch.rglob("*") if path.is_file())
        self.lost = path.name
        path.unlink()
        return self._inner.exchange(emit, tasks, meet, partitions, name=name)


def test_what_tasks_leave_for_others_may_be_lost(spark: SparkSession, tmp_path: Path) -> None:
    """The load fails as a whole, names what it lacks, and can be repeated."""
    data, graph = tmp_path / "parts.jsonl", tmp_path / "graph"
    data.write_text("\n".join(part(number) for number in range(2_000)))
    og = Omnigraph.init(str(graph), SCHEMA)
    head = og.head_commit_id_for_branch()
    losing = Losing(spark, graph)
    arguments = (og.uri, [str(data)], "merge", data.stat().st_size // 4)
    with pytest.raises(OmnigraphError) as caught:
        spark_loads.load_in_parts(losing, *arguments)
    assert losing.lost
    assert losing.lost in str(caught.value)
    assert og.head_commit_id_for_branch() == head
    assert not any(name.startswith("_scratch") for name in files_below(graph))
    clean_up(og, keep=1)
    assert files_below(graph) == []
    assert spark_loads.load_in_parts(SparkRunner(spark), *arguments)[0] == "loaded"
    assert og.snapshot().table("node:Part").row_count == 2_000


@ON_THIS_MACHINE
def test_broken_files_among_good_ones_name_themselves(driver: Driver, tmp_path: Path) -> None:
    def lines(*numbers: int) -> bytes:
        return "\n".join(part(number) for number in range(*numbers)).encode()

    packed = gzip.compress(lines(50, 100))
    damaged = bytearray(gzip.compress(lines(100, 110)))
    damaged[-6] ^= 0xFF  # of the checksum
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"label": ["a", "b"]}), sink)
    table = bytearray(sink.getvalue())
    table[-12:-8] = b"\xff\xff\xff\x7f"  # of the footer
    contents = {
        "good.jsonl": lines(50),
        "cut.jsonl.gz": packed[: len(packed) // 2],
        "damaged.jsonl.gz": bytes(damaged),
        "Bin.parquet": bytes(table),
        "latin.jsonl": b"\n".join([lines(110, 113), "größe".encode("latin-1"), lines(113, 115)]),
        "Note.csv": b"id,text\nn1,\xff\n",
    }
    (tmp_path / "nodes").mkdir()
    given = [str(tmp_path / "nodes" / name) for name in contents]
    for path, written in zip(given, contents.values(), strict=True):
        Path(path).write_bytes(written)
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    kind, told = driver.call(spark_loads.load, og.uri, given)
    assert (kind, told) == outcome(lambda: og.load(given))
    found = json.loads("".join(told))["violations"]
    assert {Path(item["file"]).name: item.get("line") for item in found} == {
        "cut.jsonl.gz": None,
        "damaged.jsonl.gz": None,
        "Bin.parquet": None,
        "latin.jsonl": 4,
        "Note.csv": 2,
    }
    assert len(og.list_commits()) == 1
