"""Memory of merges and diffs: that of some portions, and of what is known of each changed row.

The values that are merged take several times the memory that the process may take for it, so much
that it could not hold the table.
"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.compare import view
from omnigraph_core.diff.model import ChangeFilter
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA: Final = """
node Doc { name: String @key
  text: String
  seen: I64?
}
node Scan { name: String @key
  page: Blob?
  seen: I64?
}
"""
ROWS: Final = 6_500
"""Fewer than are written at a time: it is their bytes that bound portions."""
WIDTH: Final = 60_000
WORD: Final = 1_000
"""Bytes that are repeated in a text: so it is read and written fast."""
VALUES: Final = ROWS * WIDTH
"""Bytes of the texts that the source has changed."""
BLOBS: Final = 200
BLOB_BYTES: Final = VALUES // BLOBS
MOST_GROWTH: Final = VALUES // 3
"""Bytes that a process may take, of memory and of what it could use of it, to do anything."""
OTHERS: Final = ("first", "second")
PROMPT: Final = {
    # What is freed goes back at once, so that the peak is what was in use and not what was kept.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 20),
    # Each thread has some memory for itself: as many on every machine.
    "LANCE_CPU_THREADS": "2",
    "OMP_NUM_THREADS": "2",
}
SECONDS: Final = 240


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Branches of short rows: `wide` has long values, `seen` another property, others a row."""
    graph = Omnigraph.init(str(tmp_path_factory.mktemp("graph") / "graph"), SCHEMA)
    graph.load(docs(seen=0), type="Doc")
    graph.load(pa.table({"name": names(0, BLOBS)}), type="Scan")
    for branch in ("wide", "seen", *OTHERS):
        graph.branch_create(branch)
    graph.load(docs(seen=1), type="Doc", branch="seen")
    for branch in OTHERS:
        graph.load(pa.table({"name": ["x"], "text": ["short"]}), type="Doc", branch=branch)
        graph.load(pa.table({"name": ["x"]}), type="Scan", branch=branch)
    load_portions(graph, "Doc", wide_docs())
    load_portions(graph, "Scan", wide_scans())
    return graph.uri


def load_portions(graph: Omnigraph, type: str, portions: Iterator[pa.RecordBatch]) -> None:
    first = next(portions)

    def everything() -> Iterator[pa.RecordBatch]:
        yield first
        yield from portions

    reader = pa.RecordBatchReader.from_batches(first.schema, everything())
    graph.load(reader, type=type, branch="wide")


def docs(*, seen: int) -> pa.Table:
    texts = ["short"] * ROWS
    return pa.table({"name": names(0, ROWS), "text": texts, "seen": np.full(ROWS, seen)})


def wide_docs() -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(1)
    step = 100
    ends = pa.py_buffer(np.arange(0, (step + 1) * WIDTH, WIDTH, dtype=np.int32))
    for first in range(0, ROWS, step):
        words = chance.integers(97, 123, (step, WORD), np.uint8)
        letters = pa.py_buffer(np.tile(words, WIDTH // WORD))
        texts = pa.Array.from_buffers(pa.utf8(), step, [None, ends, letters])
        numbers = np.zeros(step, np.int64)
        columns = {"name": names(first, first + step), "text": texts, "seen": numbers}
        yield pa.RecordBatch.from_pydict(columns)


def wide_scans() -> Iterator[pa.RecordBatch]:
    for number in range(BLOBS):
        page = pa.array([bytes([number]) * BLOB_BYTES], pa.large_binary())
        yield pa.RecordBatch.from_pydict({"name": names(number, number + 1), "page": page})


def names(first: int, last: int) -> list[str]:
    return [f"d{number:06}" for number in range(first, last)]


@pytest.mark.parametrize("work", ["take_all", "combine_all", "tell_all"])
def test_memory_is_far_below_the_values(uri: str, work: str) -> None:
    assert grown(work, uri) < MOST_GROWTH


@pytest.mark.long("shows that the bound of the test above can be broken")
def test_without_portions_it_would_not_be(uri: str) -> None:
    assert grown("take_all_at_once", uri) > 2 * MOST_GROWTH


def grown(work: str, uri: str) -> int:
    """By how many bytes the memory of a process grows with some work."""
    with spawn(
        f"tests.integration.merge.test_memory:{work}", uri, env=PROMPT, is_cold=True
    ) as worker:
        return int(worker.wait(SECONDS).result())


def take_all(uri: str) -> int:
    """A merge of a source that has changed every row, into a target that has put one."""

    def merge(graph: Omnigraph) -> None:
        result = graph.branch_merge("wide", into=OTHERS[0])
        assert {table.table_key: table.updated for table in result.tables} == {
            "node:Doc": ROWS,
            "node:Scan": BLOBS,
        }

    return measured(uri, merge, is_limited=True)


def take_all_at_once(uri: str) -> int:
    """The same with all rows in one portion."""
    vars(view)["PORTION_BYTES"] = 1 << 40

    def merge(graph: Omnigraph) -> None:
        graph.branch_merge("wide", into=OTHERS[1], dry_run=True)

    return measured(uri, merge, is_limited=False)


def combine_all(uri: str) -> int:
    """A merge by property of two sides that have both changed every row."""

    def merge(graph: Omnigraph) -> None:
        result = graph.branch_merge("wide", into="seen", strategy="property")
        (table,) = (table for table in result.tables if table.table_key == "node:Doc")
        assert table.updated == ROWS

    return measured(uri, merge, is_limited=True)


def tell_all(uri: str) -> int:
    """A diff whose rows are looked at one after the other."""

    def diff(graph: Omnigraph) -> None:
        total = 0
        for change in graph.iter_diff("main", "wide", ChangeFilter(type_names=frozenset({"Doc"}))):
            assert change.after is not None
            total += len(str(change.after["text"]))
        assert total == VALUES

    return measured(uri, diff, is_limited=True)


def measured(uri: str, work: Callable[[Omnigraph], None], *, is_limited: bool) -> int:
    graph = Omnigraph.open(uri)
    graph.snapshot()
    if is_limited:
        most = status("VmData") + MOST_GROWTH
        assert most < VALUES  # if it were all of its memory, the table would not fit in
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    before = status("VmHWM")
    work(graph)
    return status("VmHWM") - before


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) << 10
