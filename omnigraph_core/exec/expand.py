"""Following neighbours for many rows at once: pure functions over the arrays of an adjacency.

In come the numbers of source nodes, out go slices, positions and targets. A row's matches are one
slice of the adjacency: where it starts and how many there are, so output sizes are known first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.topology.neighbours import Neighbours

_MANY_ROWS: Final = 1024
"""From here on, looking for a contiguous run is cheaper than spreading positions."""


def expand_rows(
    neighbours: Neighbours, numbers: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Every (place in `numbers`, target) pair whose target the mask, if any, is true for."""
    starts, counts = slices_of(neighbours, numbers)
    targets = at(neighbours.targets, positions_of(starts, counts, int(counts.sum())))
    places = np.repeat(np.arange(len(numbers)), counts)
    if mask is None:
        return places, targets
    kept = np.flatnonzero(mask.take(targets))
    return places.take(kept), targets.take(kept)


def slices_of(neighbours: Neighbours, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the neighbours of each node start, and how many there are."""
    return neighbours.slices(numbers)


def positions_of(starts: np.ndarray, counts: np.ndarray, total: int) -> slice | np.ndarray:
    """The positions in all slices, one after another; a `slice` where they are contiguous."""
    if len(starts) == 1:
        return slice(int(starts[0]), int(starts[0]) + total)
    if len(starts) > _MANY_ROWS and bool((starts[1:] == starts[:-1] + counts[:-1]).all()):
        return slice(int(starts[0]), int(starts[0]) + total)
    shifts = starts - np.cumsum(counts)
    shifts += counts
    positions = np.repeat(shifts, counts)
    positions += np.arange(total)
    return positions


def at(array: np.ndarray, positions: slice | np.ndarray) -> np.ndarray:
    """The elements at positions; a view where they are contiguous."""
    return array[positions] if isinstance(positions, slice) else array.take(positions)


def cut(counts: np.ndarray, limits: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Split rows into runs with at most so many matches; a row with more is a run of its own.

    >>> import itertools
    >>> list(cut(np.array([1, 1, 5, 1, 2]), itertools.repeat(3)))
    [(0, 2), (2, 3), (3, 5)]
    """
    ends = np.cumsum(counts)
    start, done = 0, 0
    for limit in limits:
        if start == len(counts):
            return
        end = max(int(ends.searchsorted(done + limit, side="right")), start + 1)
        yield start, end
        start, done = end, int(ends[end - 1])


def sums_by_row(kept: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How many of each row's matches are kept; `kept` has a truth per match, row after row."""
    running = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=running[1:])
    ends = np.cumsum(counts)
    sums: np.ndarray = running.take(ends) - running.take(ends - counts)
    return sums


def counts_of_all(neighbours: Neighbours, mask: np.ndarray) -> np.ndarray:
    """How many neighbours each node of an adjacency has that the mask is true for."""
    if not len(mask):
        return np.zeros(neighbours.node_count, np.int64)
    running = np.zeros(len(neighbours.targets) + 1, np.int64)
    # Entries that are of no node any more may lead to nodes that are not there.
    np.cumsum(mask.take(neighbours.targets, mode="clip"), out=running[1:])
    starts, ends = neighbours.bounds()
    counts: np.ndarray = running.take(ends) - running.take(starts)
    return counts
