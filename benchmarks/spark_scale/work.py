"""One plan of a load without data, or one large load, in a process of its own."""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.writes import load_options
from omnigraph_core.spark.ingest.inspect import Inspected
from omnigraph_core.spark.ingest.load import load
from omnigraph_core.spark.ingest.parts import part_size
from omnigraph_core.spark.worker import pack
from omnigraph_core.storage.fragments import StagedFragments
from omnigraph_core.write.sources import Format, Source, open_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from omnigraph_core.spark.blocks import Blocks, Received
    from omnigraph_core.spark.ingest.model import PartRead

_SCHEMA: Final = """
node Person { name: String @key  age: I64?  bio: String? }
edge Knows: Person -> Person { since: Date?  weight: F64? }
"""
_EDGES_OF_TEN: Final = 9


class Planning:
    """A runner that packs what it would send, and answers for every part as a sample does."""

    parallelism = 256

    def __init__(self, sample: Path) -> None:
        self._sample = sample
        self.payload = 0
        self.closures = 0
        self.parts = 0
        self.objects = 0

    def map(
        self,
        work: Callable[[Any], Any],
        tasks: Sequence[Any],
        *,
        name: str,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Any]:
        assert name == "read and check records"  # a good load maps nothing else
        self._count([work], tasks)
        source = Source(self._sample, Format.JSONL, str(self._sample))
        with ProcessPoolExecutor(1, get_context("spawn")) as executor:  # its memory is not ours
            done = executor.submit(_do, pack(work), pack(replace(tasks[0], source=source)))
            read: PartRead = cloudpickle.loads(done.result())
        self.parts = len(tasks)
        written = sum(len(StagedFragments.from_json(one).fragments) for one in read.files.values())
        self.objects += len(tasks) * (1 + written)
        # Copies have strings of their own, as what tasks return has.
        return [
            replace(
                read,
                number=number,
                rows=dict(read.rows),
                keys=f"{read.keys}"[:-1] + "0",
                files={key: f"{files} " for key, files in read.files.items()},
            )
            for number in range(len(tasks))
        ]

    def exchange(
        self,
        emit: Callable[[Any], Iterable[Blocks]],
        tasks: Sequence[Any],
        meet: Callable[[int, Received], Any],
        partitions: int,
        *,
        name: str,
    ) -> list[Any]:
        self._count([emit, meet], tasks)
        return [Inspected() for _ in range(partitions)]

    def _count(self, closures: Iterable[object], tasks: Sequence[object]) -> None:
        self.closures += sum(len(pack(closure)) for closure in closures)
        self.payload += sum(len(pack(task)) for task in tasks)


def _do(work: bytes, task: bytes) -> bytes:
    """A task, as an executor does it."""
    return pack(cloudpickle.loads(work)(cloudpickle.loads(task)))


def plan(size: int, directory: Path) -> dict[str, float]:
    """Load a file that only seems to have so many bytes."""
    sample = directory / "sample.jsonl"
    wanted, number = part_size(size), 0
    with sample.open("w") as lines:
        while lines.tell() < wanted:
            lines.writelines(f"{_record(at)}\n" for at in range(number, number + 1_000))
            number += 1_000
    seeming = directory / "seeming.jsonl"
    with seeming.open("wb") as file:
        file.write(f"{_record(0)}\n".encode())
        file.truncate(size)
    graph = Omnigraph.init(str(directory / "graph"), _SCHEMA)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runner = Planning(sample)
    options = load_options("main", mode="append")
    loaded = load(graph._context, open_sources(str(seeming)), options, runner)
    assert loaded.commit is not None
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "parts": runner.parts,
        "payload": runner.payload,
        "closures": runner.closures,
        "memory": (after - before) * 1024,
        "objects_per_gb": runner.objects / (size / 1e9),
    }


def _record(number: int) -> str:
    if number % 10 < _EDGES_OF_TEN:
        ends = {"from": f"person{number}", "to": f"person{number * 7 % 1000}"}
        return json.dumps({"edge": "Knows", **ends, "data": {"weight": number / 3}})
    data = {"name": f"person{number}", "age": number % 90, "bio": "some words " * 12}
    return json.dumps({"type": "Person", "data": data})


def load_rows(count: int, directory: Path) -> dict[str, float]:
    """Load rows that Spark makes up while it goes: a tenth nodes, the rest edges."""
    from omnigraph_core.spark.session import open_session
    from omnigraph_core.spark.source import load_frames

    session = open_session()
    nodes = count // 10
    slices = max(8, count // 2_000_000)
    people = session.range(0, nodes, 1, max(8, slices // 4)).selectExpr(
        "concat('person', id) AS name", "id % 90 AS age"
    )
    knows = session.range(0, count - nodes, 1, slices).selectExpr(
        f"concat('person', id % {nodes}) AS src",
        f"concat('person', (id * 7919 + 13) % {nodes}) AS dst",
        "id / 3.0D AS weight",
    )
    graph = Omnigraph.init(str(directory / "graph"), _SCHEMA)
    with _Watch() as watch:
        begin = time.perf_counter()
        loaded = load_frames(graph, {"Person": people, "edge:Knows": knows}, mode="append")
        seconds = time.perf_counter() - begin
    assert loaded.nodes_loaded + loaded.edges_loaded == count
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"rows": count, "seconds": seconds, "driver": driver, "tree": watch.peak}


class _Watch:
    """The most memory that this process and those below it have at one time; shared pages once."""

    def __init__(self) -> None:
        self.peak = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.5):
            self.peak = max(self.peak, sum(map(_own_bytes, _tree())))


def _tree() -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            parents[int(entry.name)] = int(stat[1])
    found, more = set(), {int(Path("/proc/self").readlink().name)}
    while more:
        found |= more
        more = {child for child, parent in parents.items() if parent in more} - found
    return found


def _own_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    work, amount, place = sys.argv[1:]
    print(json.dumps((plan if work == "plan" else load_rows)(int(amount), Path(place))))
