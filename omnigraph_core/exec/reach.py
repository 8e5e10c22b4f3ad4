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

SEEN_CELLS: Final = 2**24
"""Flags held at once, one per source and node."""
_STEP_ROWS: Final = 2**19
_DENSE_SHARE: Final = 16
"""Sorting this share of all cells costs as much as looking at every cell."""
_NO_EDGES: Final = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Hops:
    """The bounds of a traversal, and the clause that its memory is counted for."""

    least: int
    most: int
    clause: str


def batch_size(node_count: int) -> int:
    """How many sources `reach` should be asked for at once."""
    return max(1, SEEN_CELLS // max(node_count, 1))


def reach(neighbours: Neighbours, sources: np.ndarray, hops: Hops, guard: Guard) -> Neighbours:
    """What each of some distinct sources reaches; row `i` belongs to `sources[i]`.

    The adjacency must be simple and lead from a type to itself.

    Raises:
        BudgetExceeded, QueryCancelled, QueryTimeout: as the guard decides.
    """
    node_count = neighbours.node_count
    guard.expect(len(sources) * node_count, hops.clause)
    levels = list(_iter_levels(neighbours, sources, hops, guard))
    guard.expect(2 * sum(level.nbytes for level in levels), hops.clause)
    keys = np.sort(np.concatenate(levels)) if levels else np.zeros(0, np.int64)
    if len(sources) == 1:
        return Neighbours(np.array([0, len(keys)]), keys.astype(np.int32), _NO_EDGES, True)
    bases = np.arange(len(sources) + 1, dtype=np.int64) * node_count
    offsets = keys.searchsorted(bases)
    keys -= np.repeat(bases[:-1], np.diff(offsets))
    return Neighbours(offsets, keys.astype(np.int32), _NO_EDGES, True)


def _iter_levels(
    neighbours: Neighbours, sources: np.ndarray, hops: Hops, guard: Guard
) -> Iterator[np.ndarray]:
    """For each distance within the bounds the keys that are first reached there.

    A key is the place of a source times the number of nodes, plus the node.
    """
    node_count = neighbours.node_count
    bases = np.arange(len(sources), dtype=np.int64) * node_count
    starts = bases + sources
    if hops.least == 1:
        yield starts[are_linked(neighbours, sources, sources)]
    seen = np.zeros(len(sources) * node_count, np.bool_)
    seen[starts] = True
    nodes = sources
    for distance in range(1, hops.most + 1):
        keys = _step(neighbours, bases, nodes, seen, guard)
        if distance >= hops.least:
            yield keys
        if distance == hops.most or not len(keys):
            return
        nodes = keys % node_count if len(sources) > 1 else keys
        bases = keys - nodes


def _step(
    neighbours: Neighbours, bases: np.ndarray, nodes: np.ndarray, seen: np.ndarray, guard: Guard
) -> np.ndarray:
    """The keys one hop further that were not seen yet; they count as seen from now on."""
    starts, counts = slices_of(neighbours, nodes)
    total = int(counts.sum())
    if total <= _STEP_ROWS:
        return _mark(seen, _keys(neighbours, bases, starts, counts, total))
    parts: list[np.ndarray] = []
    for start, end in cut(counts, repeat(_STEP_ROWS)):
        guard.check()
        some = counts[start:end]
        keys = _keys(neighbours, bases[start:end], starts[start:end], some, int(some.sum()))
        parts.append(_mark(seen, keys))
    return np.concatenate(parts)


def _keys(
    neighbours: Neighbours, bases: np.ndarray, starts: np.ndarray, counts: np.ndarray, total: int
) -> np.ndarray:
    targets = at(neighbours.targets, positions_of(starts, counts, total))
    keys = np.repeat(bases, counts)
    keys += targets
    return keys


def _mark(seen: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Those of the keys that were not seen yet, each once and ascending."""
    fresh = keys[~seen.take(keys)]
    if len(fresh) * _DENSE_SHARE > len(seen):
        before = seen.copy()
        seen[fresh] = True
        before ^= seen
        return np.flatnonzero(before)
    seen[fresh] = True
    return distinct_of(fresh)
