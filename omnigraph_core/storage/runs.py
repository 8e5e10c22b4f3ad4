"""Runs of places that lie alike in two rows of places: pairs of starts, and lengths.

Positions in one file come in with the positions they have in another; what goes out are the same
for a third. Everything is arrays: a file whose rows were deleted here and there has many runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """`length` places from `here` on are the places from `there` on; int64, ascending, disjoint."""

    here: np.ndarray
    there: np.ndarray
    length: np.ndarray

    @property
    def count(self) -> int:
        """Of places."""
        return int(self.length.sum())

    def turned(self) -> Runs:
        """Seen from the other side; in their order there."""
        order = np.argsort(self.there, kind="stable")
        return Runs(self.there[order], self.here[order], self.length[order])

    def here_places(self) -> np.ndarray:
        return _spread(self.here, self.length)

    def there_places(self) -> np.ndarray:
        return _spread(self.there, self.length)


def whole(count: int) -> Runs:
    """A file beside itself."""
    start = np.zeros(1, np.int64)
    return Runs(start, start, np.array([count], np.int64))


def packed(live: np.ndarray, start: int) -> Runs:
    """Where rows are that were written one after another from a place on, out of a file in which
    they were at these offsets, ascending."""
    if not len(live):
        return Runs(*(np.zeros(0, np.int64) for _ in range(3)))
    cuts = np.flatnonzero(np.diff(live) != 1) + 1
    firsts = np.concatenate(([0], cuts))
    lengths = np.diff(np.concatenate((firsts, [len(live)])))
    return Runs(firsts + start, live[firsts].astype(np.int64), lengths)


def cut(runs: Runs, first: int, last: int) -> Runs:
    """The part from one place here up to another, counted from the first."""
    inside = compose(runs.turned(), Runs(*(np.array([n]) for n in (first, 0, last - first))))
    return inside.turned()


def compose(a: Runs, b: Runs) -> Runs:
    """From here of the first to there of the second, through the places both know.

    >>> joined = compose(packed(np.array([2, 3, 7]), 0), packed(np.array([1, 2, 3]), 0).turned())
    >>> joined.here.tolist(), joined.there.tolist(), joined.length.tolist()
    ([0], [1], [2])
    """
    a = a.turned()  # by the places between, which are `here` now
    bounds = distinct(np.concatenate((a.here, a.here + a.length, b.here, b.here + b.length)))
    starts, lengths = bounds[:-1], np.diff(bounds)
    first, is_first = _inside(a, starts)
    second, is_second = _inside(b, starts)
    kept = is_first & is_second
    here = a.there[first[kept]] + starts[kept] - a.here[first[kept]]
    there = b.there[second[kept]] + starts[kept] - b.here[second[kept]]
    order = np.argsort(here, kind="stable")
    return _merged(here[order], there[order], lengths[kept][order])


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Each number once, ascending: by sorting, for NumPy's own way through a table of hashes takes
    many times as long.

    >>> distinct(np.array([3, 1, 3])).tolist(), distinct(np.zeros(0, np.int64)).tolist()
    ([1, 3], [])
    """
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def is_in(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Which of the values are among numbers in ascending order."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(ordered, values)
    found: np.ndarray = ordered.take(places, mode="clip") == values
    return found


def _spread(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All places of runs, one after another."""
    passed = np.cumsum(lengths) - lengths
    places: np.ndarray = np.repeat(starts - passed, lengths) + np.arange(int(lengths.sum()))
    return places


def _inside(runs: Runs, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The run each place is in, and whether it is in one."""
    if not len(runs.here):
        return np.zeros(len(places), np.int64), np.zeros(len(places), np.bool_)
    found = np.searchsorted(runs.here, places, side="right") - 1
    known = found.clip(min=0)
    return known, (found >= 0) & (places < runs.here[known] + runs.length[known])


def _merged(here: np.ndarray, there: np.ndarray, length: np.ndarray) -> Runs:
    """Runs that continue each other as one."""
    if not len(here):
        return Runs(here, there, length)
    continues = (here[1:] == here[:-1] + length[:-1]) & (there[1:] == there[:-1] + length[:-1])
    firsts = np.flatnonzero(np.concatenate(([True], ~continues)))
    return Runs(here[firsts], there[firsts], np.add.reduceat(length, firsts))
