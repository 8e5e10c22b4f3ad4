"""A graph on which short queries become endless, what a worker tells of its memory, and turns."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BudgetExceeded
from tests.support.processes import hear

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?
  about: String?
  v: Vector(4)?
}
edge Knows: Person -> Person {
  since: I32?
}
"""
PEOPLE: Final = 2_000
DEGREE: Final = 20
EVERYTHING: Final = """
query q() {
  match { $a $x:knows $b  search($a.about, "red") }
  return { $a, $x.since, $b.name, nearest($a.v, [1.0, 0.0, 0.0, 0.0]) as far }
  order { $b.age, $x.since }
  limit 10
}
"""
"""Touches every column: what is kept between queries is there afterwards."""


def build(address: str) -> Omnigraph:
    """Two thousand people, each knows twenty others: products of three are endless."""
    og = Omnigraph.init(address, SCHEMA)
    numbers = np.arange(PEOPLE)
    names = pa.array([f"p{number}" for number in numbers])
    vectors = np.random.default_rng(1).random(4 * PEOPLE, dtype=np.float32)
    people = {
        "name": names,
        "age": pa.array(numbers % 90, pa.int32()),
        "about": pa.array([f"word{number % 50} red" for number in numbers]),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
    }
    og.load(pa.table(people), type="Person")
    sources, steps = np.repeat(numbers, DEGREE), np.tile(np.arange(DEGREE), PEOPLE)
    targets = (sources * 7 + steps * 13 + 1) % PEOPLE
    edges = {
        "from": names.take(pa.array(sources)),
        "to": names.take(pa.array(targets)),
        "since": pa.array(steps, pa.int32()),
    }
    og.load(pa.table(edges), type="edge:Knows")
    return og


def growth(address: str, queries: list[str], memory: int) -> dict[str, Any]:
    """Inside a worker: the bytes the process grows by while queries are stopped for theirs."""
    og = Omnigraph.open(address)
    og.query("main", EVERYTHING)
    before = _most_resident()
    clauses: list[str | None] = []
    for query in queries:
        try:
            og.query("main", query, memory=memory)
            clauses.append(None)
        except BudgetExceeded as stopped:
            clauses.append(stopped.clause)
    return {"clauses": clauses, "grown": _most_resident() - before}


def _most_resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024


def until_told(turn: Callable[[], bool]) -> int:
    """Inside a worker: again and again until a line comes; how many turns were fruitful."""
    told = threading.Event()
    threading.Thread(target=lambda: (hear(), told.set()), daemon=True).start()
    fruitful = 0
    while not told.is_set():
        fruitful += turn()
    return fruitful
