"""What the first reads after a commit of one row cost: as much as the row, not as the tables.

Counted are bytes that are allocated, texts that are hashed, entries that are sorted and rows that
are read, on a graph and on one ten times as large.
"""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.engine import reads
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.topology import adjacency, columns, ends, links, text_map, touched
from omnigraph_core.topology.memory import ByteCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.storage.dataset import Table

SMALL, LARGE = 6_000, 60_000
SCHEMA = """
node Person {
  code: String @key
  name: String
  age: I32
  city: String
}
edge Knows: Person -> Person
"""
LOOKUP = "query q($c: String) { match { $p: Person {code: $c} } return { $p.name, $p.age } }"
HOP = "query q($c: String) { match { $p: Person {code: $c}  $p <knows> $a } return { $a.name } }"
COUNT = 'query q() { match { $p: Person {city: "c3"}  $p.age > 40 } return { count($p) as n } }'
CHANGES = {
    "insert": (
        'query m($c: String) { insert Person { code: $c, name: "new", age: 1, city: "c3" } }',
        "new",
    ),
    "update": ("query m($c: String) { update Person set { age: 77 } where code = $c }", "p70"),
    "delete": ("query m($c: String) { delete Person where code = $c }", "p80"),
    "new edge": ('query m($c: String) { insert Knows { from: $c, to: "p3" } }', "p90"),
}


class Served:
    """A graph that is read and written through one handle, and the cache of its process."""

    def __init__(self, root: str, count: int) -> None:
        self.cache = ByteCache(2**28)
        self.graph = Omnigraph.init(root, SCHEMA)
        numbers = np.arange(count)
        people = {
            "code": [f"p{n}" for n in numbers],
            "name": [f"name of {n}" for n in numbers],
            "age": pa.array(numbers % 90, pa.int32()),
            "city": [f"c{n % 50}" for n in numbers],
        }
        self.graph.load(pa.table(people), type="Person", mode="append")
        both = np.random.default_rng(5).integers(0, count, (2, 2 * count))
        knows = {
            side: [f"p{n}" for n in end] for side, end in zip(("from", "to"), both, strict=True)
        }
        self.graph.load(pa.table(knows), type="edge:Knows", mode="append")
        self.graph.ensure_indices()
        self.serial = 0

    def read_all(self) -> list[Any]:
        asked = ((LOOKUP, {"c": "p5"}), (HOP, {"c": "p5"}), (COUNT, None))
        return [self.graph.query("main", text, params=given).to_pylist() for text, given in asked]

    def change(self, name: str) -> None:
        text, code = CHANGES[name]
        self.serial += 1
        given = f"{code}{self.serial}" if name == "insert" else f"p{70 + 10 * self.serial}"
        self.graph.mutate(text, {"c": given})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Served]:
    root = tmp_path_factory.mktemp("commits")
    return {count: Served(str(root / f"g{count}"), count) for count in (SMALL, LARGE)}


@contextmanager
def using(served: Served) -> Iterator[None]:
    """Reads inside keep what they keep in the cache of the graph."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reads, "shared_cache", lambda: served.cache)
        yield


def warmed(served: Served) -> None:
    """Everything is in memory, and has made room for more once."""
    for name in CHANGES:
        served.change(name)
        for _ in range(4):
            served.read_all()


def work_of(act: Callable[[], object]) -> Counter[str]:
    """What is done inside, and the bytes that are in use at most."""
    work: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        _count(patch, work, "texts hashed", text_map, "hash_texts", lambda texts: len(texts))
        for module in (adjacency, touched):
            _count(patch, work, "sorted", module, "in_order", lambda entries: len(entries.edges))
        _count(
            patch, work, "columns made", columns.ColumnMaker, "made", lambda _, names: len(names)
        )
        _count(patch, work, "rebuilt", links, "rebase", lambda *_: 1)
        _count(patch, work, "read whole", links, "all_ends", lambda *_: 1)
        for module in (columns, ends):
            _count_rows(patch, work, module)
        gc.collect()
        tracemalloc.start()
        try:
            act()
            work["bytes"] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return work


def _count(
    patch: pytest.MonkeyPatch, work: Counter[str], what: str, place: Any, name: str, size: Any
) -> None:
    original = getattr(place, name)

    def counting(*given: Any) -> Any:
        work[what] += size(*given)
        return original(*given)

    patch.setattr(place, name, counting)


def _count_rows(patch: pytest.MonkeyPatch, work: Counter[str], module: Any) -> None:
    original = module.read_fragments

    def counting(table: Table, names: Any, fragments: Any) -> Iterator[pa.RecordBatch]:
        if len(fragments):
            work["reads"] += 1
        for batch in original(table, names, fragments):
            work["rows read"] += batch.num_rows
            yield batch

    patch.setattr(module, "read_fragments", counting)


@pytest.mark.parametrize("name", CHANGES)
def test_the_first_reads_cost_what_the_change_costs(served: dict[int, Served], name: str) -> None:
    found: dict[int, Counter[str]] = {}
    for count, graph in served.items():
        with using(graph):
            warmed(graph)
            steady = work_of(graph.read_all)
            graph.change(name)
            found[count] = work_of(graph.read_all)
            found[count]["bytes"] -= steady["bytes"]  # a filter looks at the whole column anyway
    large = found[LARGE]
    assert large["rows read"] <= 3
    assert large["reads"] <= 2
    assert large["texts hashed"] <= 10
    assert large["sorted"] <= 200
    assert large["columns made"] == large["rebuilt"] == large["read whole"] == 0
    assert large["bytes"] < 300_000, "a column of integers alone has 240 000"
    assert large["bytes"] < 2 * max(found[SMALL]["bytes"], 100_000)


def test_versions_share_what_they_keep(served: dict[int, Served]) -> None:
    """What a version has alone is a small part of what it shares, most of it Lance's handle."""
    graph = served[LARGE]
    with using(graph):
        warmed(graph)
        before = graph.cache.held
        for _ in range(20):
            for name in ("insert", "update"):
                graph.change(name)
                graph.read_all()
        assert graph.cache.held - before < 40 * before / 80


def test_answers_are_those_of_a_process_that_begins(served: dict[int, Served]) -> None:
    for graph in served.values():
        for name in CHANGES:
            with using(graph):
                graph.change(name)
                warm = graph.read_all()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(reads, "shared_cache", lambda: ByteCache(2**28))
                assert warm == graph.read_all()


def test_threads_that_miss_together_share_the_work(served: dict[int, Served]) -> None:
    """Sixteen readers come at once after a commit: one of them reads the new row, for all."""
    graph, readers = served[LARGE], 16
    with using(graph):
        warmed(graph)
        alone = _crowded(graph, 1)
        together = _crowded(graph, readers)
    assert together["reads"] == alone["reads"] == 1
    assert together["texts hashed"] <= readers * alone["texts hashed"]
    assert together["rebuilt"] == together["read whole"] == together["columns made"] == 0


def _crowded(graph: Served, readers: int) -> Counter[str]:
    graph.change("insert")
    start = threading.Barrier(readers, timeout=120)

    def read() -> list[Any]:
        start.wait()
        return graph.read_all()

    def together() -> None:
        with ThreadPoolExecutor(readers) as pool:
            answers = list(pool.map(lambda _: read(), range(readers)))
        assert all(answer == answers[0] for answer in answers)

    return work_of(together)
