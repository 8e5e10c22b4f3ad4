"""How long commits and branches take on local disk, as ratios within one run.

The two sides of a ratio run in turns on graphs made alike, so a busy moment of the machine hits
both; times and ratios are medians. A broken budget is measured again: noise passes, a slow commit
stays slow.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.commit.bare import BareGraph
from benchmarks.commit.depth import graph_at, republish
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.ids import new_ulid
from tests.support.graphs import append_pair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHALLOW: Final = 10
DEEP: Final = 1_000
FULL_IMAGE: Final = 70
"""A depth at which an image carries as many commits as it ever does."""

FEW: Final = 10
MANY: Final = 1_000
"""Branches a graph has."""

_MORE_CHANCES: Final = 2


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often things are measured; rounds are made on fresh graphs."""

    rounds: int
    per_round: int
    processes: int


FULL: Final = Repetitions(rounds=12, per_round=16, processes=7)
QUICK: Final = Repetitions(rounds=3, per_round=12, processes=3)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The median of the ratios of what ran one after the other."""

    against: str
    ms: float
    ratio: float
    budget: float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """Median milliseconds, and how that compares with something else of the same run."""

    name: str
    ms: float
    comparison: Comparison | None = None

    @property
    def is_broken(self) -> bool:
        limit = self.comparison.budget if self.comparison else None
        return self.comparison is not None and limit is not None and self.comparison.ratio > limit


def measure(directory: Path, often: Repetitions) -> list[Figure]:
    """Every figure, on graphs made below a directory."""
    shelf = _Shelf(directory)
    deep = graph_at(str(directory / "deep"), DEEP)
    crowded = shelf.take(FULL_IMAGE)
    for number in range(MANY - often.rounds * often.per_round // 2):
        crowded.branch_create(f"branch-{number}")
    return [
        _settled(lambda: _publish(shelf, deep, often)),
        _settled(lambda: _two_tables(shelf, often)),
        _settled(lambda: _branch_create(shelf, crowded, often)),
        _listing(crowded, often),
        _open(shelf, deep, often),
        _open_in_new_process(deep, often),
    ]


def _settled(measure_once: Callable[[], Figure]) -> Figure:
    for _ in range(_MORE_CHANCES):
        figure = measure_once()
        if not figure.is_broken:
            return figure
    return measure_once()


class _Shelf:
    """Fresh graphs of a depth, as many as needed: one is made, the others are copies of it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = itertools.count()

    def take(self, depth: int) -> Omnigraph:
        original = self._directory / f"depth-{depth}"
        if not original.exists():
            graph_at(str(original), depth)
        copy = self._directory / f"copy-{next(self._numbers)}"
        shutil.copytree(original, copy)
        return Omnigraph.open(str(copy))


def _publish(shelf: _Shelf, deep: Omnigraph, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        shallow = shelf.take(SHALLOW)
        pairs += _in_turns(lambda: republish(deep), partial(republish, shallow), often)
    return _compared(f"publish at depth {DEEP}", f"at depth {SHALLOW}", pairs, budget=2.0)


def _two_tables(shelf: _Shelf, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        ours, bare = shelf.take(FULL_IMAGE), BareGraph(shelf.take(FULL_IMAGE))
        pairs += _in_turns(
            partial(append_pair, ours, ["a"]), partial(bare.append_pair, ["a"]), often
        )
    return _compared("two-table commit", "its Lance calls alone", pairs, budget=1.6)


def _branch_create(shelf: _Shelf, crowded: Omnigraph, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        quiet = shelf.take(FULL_IMAGE)
        for number in range(FEW - often.per_round // 2):
            quiet.branch_create(f"branch-{number}")
        pairs += _in_turns(partial(_fork, crowded), partial(_fork, quiet), often)
    return _compared(f"creating branch {MANY}", f"creating branch {FEW}", pairs, budget=1.5)


def _fork(og: Omnigraph) -> None:
    og.branch_create(f"new-{new_ulid()}")


def _listing(crowded: Omnigraph, often: Repetitions) -> Figure:
    count = len(crowded.branch_list())
    spent = [_timed(crowded.branch_list) for _ in range(often.per_round)]
    return Figure(f"listing {count} branches", statistics.median(spent))


def _open(shelf: _Shelf, deep: Omnigraph, often: Repetitions) -> Figure:
    shallow = shelf.take(SHALLOW)
    pairs = []
    for _ in range(often.rounds):
        pairs += _in_turns(
            lambda: Omnigraph.open(deep.uri).snapshot(),
            lambda: Omnigraph.open(shallow.uri).snapshot(),
            often,
        )
    return _compared(f"open at depth {DEEP}", f"at depth {SHALLOW}", pairs, budget=None)


def _open_in_new_process(deep: Omnigraph, often: Repetitions) -> Figure:
    code = (
        "from omnigraph_core.engine.omnigraph import Omnigraph\n"
        f"Omnigraph.open({deep.uri!r}).snapshot()"
    )

    def run(text: str) -> object:
        return subprocess.run([sys.executable, "-c", text], check=True)

    run(code)  # the operating system knows the files from here on
    pairs = [
        (_timed(lambda: run(code)), _timed(lambda: run("pass"))) for _ in range(often.processes)
    ]
    return _compared("open in a new process", "an empty process", pairs, budget=None)


def _in_turns(
    first: Callable[[], object], second: Callable[[], object], often: Repetitions
) -> list[tuple[float, float]]:
    """Milliseconds of both, pair by pair; who begins alternates."""
    pairs = []
    for number in range(often.per_round):
        if number % 2:
            pairs.append((_timed(first), _timed(second)))
        else:
            reverse = (_timed(second), _timed(first))
            pairs.append((reverse[1], reverse[0]))
    return pairs


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def _compared(
    name: str, against: str, pairs: list[tuple[float, float]], *, budget: float | None
) -> Figure:
    ours, theirs = zip(*pairs, strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    comparison = Comparison(against, statistics.median(theirs), ratio, budget)
    return Figure(name, statistics.median(ours), comparison)
