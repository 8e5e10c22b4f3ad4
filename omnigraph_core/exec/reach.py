"""Traversals of several hops: what each source reaches with a shortest distance within bounds.

Out goes an adjacency of its own, with one row per source, that is then expanded like any other. A
source reaches itself only through a stored self-loop, and only when one hop is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.exec.dedupe import distinct_of
from omnigraph_core.exec.expand import at, cut, positions_of, slices_of
from omnigraph_core.exec.pairs import are_linked
from omnigraph_core.topology.neighbours import Neighbours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.guard import Guard

SEEN_CELLS: Final = 2**23
"""Flags held at once, one per source and node: what the processor's caches still hold."""
_STEP_ROWS: Final = 2**19
_DENSE_SHARE: Final = 16
"""Sorting this share of all cells costs about as much as looking at every cell."""
_NO_EDGES: Final = np.zeros(0, np.int32)
_NO_KEYS: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Hops:
    """The bounds of a traversal, and the clause that its memory is counted for."""

    least: int
    most: int
    clause: str


class Reach:
    """Walks an adjacency that is simple and leads from a type to itself.

    The flags are kept from one batch of sources to the next: fresh memory costs more than walking.
    """

    __slots__ = ("_guard", "_hops", "_neighbours", "_seen", "_visited")

    def __init__(self, neighbours: Neighbours, hops: Hops, guard: Guard) -> None:
        self._neighbours = neighbours
        self._hops = hops
        self._guard = guard
        self._seen = np.zeros(0, np.bool_)
        self._visited: list[np.ndarray] = []

    @property
    def batch_size(self) -> int:
        """How many sources to ask for at once, at most."""
        return max(1, SEEN_CELLS // max(self._neighbours.node_count, 1))

    def of(self, sources: np.ndarray) -> Neighbours:
        """What each of some distinct sources reaches, ascending; row `i` is that of source `i`.

        Raises:
            BudgetExceeded, QueryCancelled, QueryTimeout: as the guard decides.
        """
        node_count = self._neighbours.node_count
        self._make_room(len(sources) * node_count)
        levels = list(self._iter_levels(sources))
        self._forget()
        self._guard.expect(3 * sum(level.nbytes for level in levels), self._hops.clause)
        keys = levels[0] if len(levels) == 1 else np.sort(np.concatenate((_NO_KEYS, *levels)))
        if len(sources) == 1:
            return _simple(np.array([0, len(keys)]), keys)
        bases = np.arange(len(sources) + 1, dtype=np.int64) * node_count
        offsets = keys.searchsorted(bases)
        return _simple(offsets, keys - np.repeat(bases[:-1], np.diff(offsets)))

    def _make_room(self, cell_count: int) -> None:
        if len(self._seen) < cell_count:
            self._guard.release(len(self._seen))
            self._guard.hold(cell_count, self._hops.clause)
            self._seen = np.zeros(cell_count, np.bool_)

    def _forget(self) -> None:
        """Take back every flag, one by one unless there are many."""
        if sum(map(len, self._visited)) * _DENSE_SHARE > len(self._seen):
            self._seen[:] = False
        else:
            for keys in self._visited:
                self._seen[keys] = False
        self._visited.clear()

    def _iter_levels(self, sources: np.ndarray) -> Iterator[np.ndarray]:
        """For each distance within the bounds the keys that are first reached there, ascending.

        A key is the place of a source times the number of nodes, plus the node.
        """
        node_count, hops = self._neighbours.node_count, self._hops
        # A single source has the first row: its keys are the nodes themselves.
        bases: np.ndarray | None = None
        nodes = keys = sources
        if len(sources) > 1:
            bases = np.arange(len(sources), dtype=np.int64) * node_count
            keys = bases + sources
        if hops.least == 1:
            yield keys[are_linked(self._neighbours, sources, sources)]
        self._seen[keys] = True
        self._visited.append(keys)
        for distance in range(1, hops.most + 1):
            keys = self._step(bases, nodes, len(sources) * node_count)
            self._visited.append(keys)
            if distance >= hops.least:
                yield keys
            if distance == hops.most or not len(keys):
                break
            nodes = keys
            if bases is not None:
                nodes = keys % node_count
                bases = keys - nodes

    def _step(self, bases: np.ndarray | None, nodes: np.ndarray, cell_count: int) -> np.ndarray:
        """The keys one hop further that were not seen yet; they count as seen from now on."""
        starts, counts = slices_of(self._neighbours, nodes)
        total = int(counts.sum())
        seen = self._seen[:cell_count]
        portions = self._iter_keys(bases, starts, counts, total)
        if total * _DENSE_SHARE > cell_count:
            hit = np.zeros(cell_count, np.bool_)
            for keys in portions:
                hit[keys] = True
            np.greater(hit, seen, out=hit)
            seen |= hit
            return np.flatnonzero(hit)
        parts: list[np.ndarray] = []
        for keys in portions:
            fresh = keys[~seen.take(keys)]
            seen[fresh] = True
            parts.append(fresh)
        # Later portions do not see again what earlier ones saw, but one may see a key twice.
        return distinct_of(parts[0] if len(parts) == 1 else np.concatenate(parts))

    def _iter_keys(
        self, bases: np.ndarray | None, starts: np.ndarray, counts: np.ndarray, total: int
    ) -> Iterator[np.ndarray]:
        """The keys one hop further, with repeats, in portions."""
        if total <= _STEP_ROWS:
            yield self._keys(bases, starts, counts, total)
            return
        for start, end in cut(counts, repeat(_STEP_ROWS)):
            self._guard.check()
            some = counts[start:end]
            some_bases = None if bases is None else bases[start:end]
            yield self._keys(some_bases, starts[start:end], some, int(some.sum()))

    def _keys(
        self, bases: np.ndarray | None, starts: np.ndarray, counts: np.ndarray, total: int
    ) -> np.ndarray:
        targets = at(self._neighbours.targets, positions_of(starts, counts, total))
        if bases is None:
            return targets
        keys = np.repeat(bases, counts)
        keys += targets
        return keys


def _simple(offsets: np.ndarray, targets: np.ndarray) -> Neighbours:
    return Neighbours(offsets, targets.astype(np.int32), _NO_EDGES, is_simple=True)
