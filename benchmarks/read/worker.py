"""One engine in a process of its own: requests come in over a connection, times go out.

Engines are kept apart because some cannot be loaded beside each other, and so that the memory and
the threads of one are not those of another.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.read import data

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from benchmarks.read.operations import Rows

ENGINES: Final = {
    "ours": ("benchmarks.read.ours", "Ours"),
    "kuzu": ("benchmarks.read.peers.kuzu", "Kuzu"),
    "ladybug": ("benchmarks.read.peers.ladybug", "Ladybug"),
    "duckdb": ("benchmarks.read.peers.duckdb", "DuckDB"),
    "lancedb": ("benchmarks.read.peers.lancedb", "LanceDB"),
    "lance_graph": ("benchmarks.read.peers.lance_graph", "LanceGraph"),
    "floor": ("benchmarks.read.floor", "Floor"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    rows: Rows
    ms: float


class Worker:
    """The caller's side; the graph below the directory is made when it is not there yet."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(name, directory, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.operations: frozenset[str] = self._connection.recv()

    def answer(self, operation: str, case: int) -> Answer:
        found: Answer = self._ask("answer", operation, case)
        return found

    def times(self, operation: str, count: int) -> list[float]:
        """Milliseconds of so many calls, one case after the other."""
        taken: list[float] = self._ask("times", operation, count)
        return taken

    def stop(self) -> None:
        self._connection.close()
        self._process.join()

    def _ask(self, *request: Any) -> Any:
        self._connection.send(request)
        return self._connection.recv()


def serve(name: str, directory: Path, connection: Connection) -> None:
    graph = data.load(directory)
    cases = data.cases(graph)
    module, kind = ENGINES[name]
    complete = directory / f"{name}.complete"
    if not complete.exists():
        shutil.rmtree(directory / name, ignore_errors=True)
    engine = getattr(importlib.import_module(module), kind)(graph, directory / name)
    complete.touch()
    asks = engine.asks
    connection.send(frozenset(asks))
    turns = itertools.cycle(cases)
    while True:
        try:
            wish, operation, number = connection.recv()
        except EOFError:
            return
        ask = asks[operation]
        if wish == "answer":
            start = time.perf_counter()
            found = ask(cases[number])
            ms = (time.perf_counter() - start) * 1000
            connection.send(Answer(engine.rows(found), ms))
        else:
            connection.send([_timed(ask, case) for case in itertools.islice(turns, number)])


def _timed(ask: Any, case: data.Case) -> float:
    start = time.perf_counter()
    ask(case)
    return (time.perf_counter() - start) * 1000
