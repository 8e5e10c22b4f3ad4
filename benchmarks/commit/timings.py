"""How long commits and branches take on local disk, as ratios within one run.

The two sides of a ratio run on graphs made alike.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.commit.bare import BareGraph
from benchmarks.commit.depth import graph_at, republish
from benchmarks.ratios import Figure, Repetitions, compared, in_turns, settled, timed
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.ids import new_ulid
from tests.support.graphs import append_pair

if TYPE_CHECKING:
    from pathlib import Path

SHALLOW: Final = 10
DEEP: Final = 1_000
FULL_IMAGE: Final = 70
"""A depth at which an image carries as many commits as it ever does."""

FEW: Final = 10
MANY: Final = 1_000
"""Branches a graph has."""

FULL: Final = Repetitions(rounds=12, per_round=16, processes=7)
QUICK: Final = Repetitions(rounds=3, per_round=12, processes=3)


def measure(directory: Path, often: Repetitions) -> list[Figure]:
    """Every figure, on graphs made below a directory."""
    shelf = _Shelf(directory)
    deep = graph_at(str(directory / "deep"), DEEP)
    crowded = shelf.take(FULL_IMAGE)
    for number in range(MANY - often.rounds * often.per_round // 2):
        crowded.branch_create(f"branch-{number}")
    return [
        settled(lambda: _publish(shelf, deep, often)),
        settled(lambda: _two_tables(shelf, often)),
        settled(lambda: _branch_create(shelf, crowded, often)),
        _listing(crowded, often),
        _open(shelf, deep, often),
        _open_in_new_process(deep, often),
    ]


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
        pairs += in_turns(lambda: republish(deep), partial(republish, shallow), often)
    return compared(f"publish at depth {DEEP}", f"at depth {SHALLOW}", pairs, budget=2.0)


def _two_tables(shelf: _Shelf, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        ours, bare = shelf.take(FULL_IMAGE), BareGraph(shelf.take(FULL_IMAGE))
        pairs += in_turns(
            partial(append_pair, ours, ["a"]), partial(bare.append_pair, ["a"]), often
        )
    return compared("two-table commit", "its Lance calls alone", pairs, budget=1.6)


def _branch_create(shelf: _Shelf, crowded: Omnigraph, often: Repetitions) -> Figure:
    pairs = []
    for _ in range(often.rounds):
        quiet = shelf.take(FULL_IMAGE)
        for number in range(FEW - often.per_round // 2):
            quiet.branch_create(f"branch-{number}")
        pairs += in_turns(partial(_fork, crowded), partial(_fork, quiet), often)
    return compared(f"creating branch {MANY}", f"creating branch {FEW}", pairs, budget=1.5)


def _fork(og: Omnigraph) -> None:
    og.branch_create(f"new-{new_ulid()}")


def _listing(crowded: Omnigraph, often: Repetitions) -> Figure:
    count = len(crowded.branch_list())
    spent = [timed(crowded.branch_list) for _ in range(often.per_round)]
    return Figure(f"listing {count} branches", statistics.median(spent))


def _open(shelf: _Shelf, deep: Omnigraph, often: Repetitions) -> Figure:
    shallow = shelf.take(SHALLOW)
    pairs = []
    for _ in range(often.rounds):
        pairs += in_turns(
            lambda: Omnigraph.open(deep.uri).snapshot(),
            lambda: Omnigraph.open(shallow.uri).snapshot(),
            often,
        )
    return compared(f"open at depth {DEEP}", f"at depth {SHALLOW}", pairs, budget=None)


def _open_in_new_process(deep: Omnigraph, often: Repetitions) -> Figure:
    code = (
        "from omnigraph_core.engine.omnigraph import Omnigraph\n"
        f"Omnigraph.open({deep.uri!r}).snapshot()"
    )

    def run(text: str) -> object:
        return subprocess.run([sys.executable, "-c", text], check=True)

    run(code)  # the operating system knows the files from here on
    pairs = [(timed(lambda: run(code)), timed(lambda: run("pass"))) for _ in range(often.processes)]
    return compared("open in a new process", "an empty process", pairs, budget=None)
