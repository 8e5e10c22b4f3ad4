"""The adjacency an expand follows: the stored one for a single hop, a made one for several.

For some rows it says which neighbours they have: parts of (places of rows, adjacency, their numbers
in it). Nothing is loaded before the first row comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from omnigraph_core.exec.dedupe import distinct_of
from omnigraph_core.exec.reach import Hops, Reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.context import Run
    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.topology.neighbours import Neighbours

_FEW_SHARE: Final = 16


class Part(NamedTuple):
    """Some rows and where their neighbours are."""

    places: np.ndarray | None
    """None: all rows, in their order."""
    neighbours: Neighbours
    numbers: np.ndarray
    """Of the rows' sources in this adjacency."""


class Walk:
    """What an expand finds from its sources."""

    __slots__ = ("_hops", "_neighbours", "_op", "_reach", "_run", "is_direct", "is_void")

    def __init__(self, run: Run, op: Expand, clause: str, *, is_presence: bool) -> None:
        """`is_presence`: only whether there is a match is asked, of any node."""
        declared = run.graph.catalog.edges[op.edge_type]
        is_chaining = declared.source == declared.target
        self._run = run
        self._op = op
        self._hops = Hops(op.min_hops, op.max_hops, clause)
        self._neighbours: Neighbours | None = None
        self._reach: Reach | None = None
        self.is_void = op.min_hops > 1 and not is_chaining
        """Edges between different types do not chain: nothing is two hops away."""
        is_near = is_presence and op.min_hops == 1
        # Nothing is reached but through a neighbour, so one hop tells whether anything is.
        self.is_direct = op.max_hops == 1 or not is_chaining or is_near
        """The stored adjacency answers as it is."""

    @property
    def neighbours(self) -> Neighbours:
        """The stored adjacency."""
        if self._neighbours is None:
            links = self._run.graph.links(self._op.edge_type)
            chosen = links.distinct if self._op.edge_binding is None else links.by_edge
            self._neighbours = chosen(self._op.direction)
        return self._neighbours

    def parts(self, sources: np.ndarray) -> Iterator[Part]:
        """Where the neighbours of each source are; no source is null."""
        if self.is_void:
            return
        if self.is_direct:
            yield Part(None, self.neighbours, sources)
        elif len(sources) == 1:
            yield Part(None, self._reached(sources), np.zeros(1, np.int64))
        else:
            yield from self._batches(sources)

    def _batches(self, sources: np.ndarray) -> Iterator[Part]:
        """Each distinct source walks once, so many at a time as there are flags for."""
        node_count = self.neighbours.node_count
        distinct = _distinct(sources, node_count)
        size = self._walker().batch_size
        slots = np.empty(node_count, np.int32)
        slots[distinct] = np.arange(len(distinct), dtype=np.int32)
        numbers = slots.take(sources)
        if len(distinct) <= size:
            yield Part(None, self._reached(distinct), numbers)
            return
        order = np.argsort(numbers, kind="stable")
        ordered = numbers.take(order)
        for start in range(0, len(distinct), size):
            low, high = ordered.searchsorted((start, start + size))
            found = self._reached(distinct[start : start + size])
            yield Part(order[low:high], found, ordered[low:high] - start)

    def _reached(self, sources: np.ndarray) -> Neighbours:
        self._run.guard.check()
        return self._walker().of(sources)

    def _walker(self) -> Reach:
        if self._reach is None:
            self._reach = Reach(self.neighbours, self._hops, self._run.guard)
        return self._reach


def _distinct(numbers: np.ndarray, count: int) -> np.ndarray:
    """Each number once, ascending, by whatever is cheaper: sorting them or flagging all."""
    if len(numbers) * _FEW_SHARE < count:
        return distinct_of(numbers)
    flags = np.zeros(count, np.bool_)
    flags[numbers] = True
    return np.flatnonzero(flags)
