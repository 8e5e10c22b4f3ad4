"""The neighbours of every node in one direction of an edge type, as arrays.

Nodes and edges are numbers. The targets of a node stand side by side, ascending, each beside the
edge that leads there. As long as nothing has changed they follow each other in the order of the
nodes. Those of nodes that have changed since stand behind all others, and where is noted: what
others have is shared with the neighbours of other versions.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.topology.growing import GrowingArray

if TYPE_CHECKING:
    from omnigraph_core.topology.patches import Patches

_LEAST_WASTE: Final = 4_096
_WASTE_SHARE: Final = 4
"""Of the entries: what nobody needs any more, beyond which all are put in order again."""


class EntryPool:
    """Targets, and edges beside them, to which more are added. Safe for threads."""

    __slots__ = ("_edges", "_lock", "_targets")

    def __init__(self, targets: np.ndarray, edges: np.ndarray) -> None:
        self._lock = threading.Lock()
        self._targets = GrowingArray(targets)
        self._edges = GrowingArray(edges)

    def append(self, targets: np.ndarray, edges: np.ndarray) -> int:
        """Put entries behind all others; the place of the first of them."""
        with self._lock:  # so that both are at the same place
            self._edges.append(edges)
            return self._targets.append(targets)

    def views(self) -> tuple[np.ndarray, np.ndarray]:
        with self._lock:
            return self._targets.view(), self._edges.view()


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """Nodes whose entries are not where the offsets say."""

    pool: EntryPool | None
    """What has all entries, once some were added."""
    nodes: Patches
    starts: np.ndarray
    """int64, beside the nodes."""
    counts: np.ndarray
    node_count: int
    entry_count: int
    """Of all nodes together."""

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.counts.nbytes) + self.nodes.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """One direction of an edge type; the arrays are never written to and may be mapped from a file.

    `is_simple` says that no node has a target twice: parallel edges make it false. Of neighbours
    that have changed it may stay false longer than they do.
    """

    offsets: np.ndarray
    """int64, one more than there are nodes on this side; those that have changed are elsewhere."""
    targets: np.ndarray
    """int32 numbers of nodes on the other side; some may be of no node's any more."""
    edges: np.ndarray
    """int32 numbers of edges, beside `targets`."""
    is_simple: bool
    changed: Changed | None = None

    @property
    def node_count(self) -> int:
        return len(self.offsets) - 1 if self.changed is None else self.changed.node_count

    @property
    def entry_count(self) -> int:
        """How many targets all nodes have together."""
        return len(self.targets) if self.changed is None else self.changed.entry_count

    @property
    def nbytes(self) -> int:
        changed = 0 if self.changed is None else self.changed.nbytes
        return int(self.offsets.nbytes + self.targets.nbytes + self.edges.nbytes) + changed

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        whole = self.offsets, self.targets, self.edges
        changed = self.changed
        if changed is None:
            return whole
        return *whole, changed.starts, changed.counts, *changed.nodes.arrays

    @property
    def is_worn(self) -> bool:
        """Whether so much has changed that `packed` pays."""
        changed = self.changed
        if changed is None:
            return False
        waste = len(self.targets) - changed.entry_count
        most = max(_LEAST_WASTE, changed.entry_count // _WASTE_SHARE)
        return waste > most or changed.nodes.are_many(changed.node_count)

    def slices(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the entries of each of these nodes start, and how many there are."""
        if self.changed is None:
            starts = self.offsets.take(numbers)
            return starts, self.offsets[1:].take(numbers) - starts
        # A node that came later is beyond the last offset: it starts and ends there.
        starts = self.offsets.take(numbers, mode="clip")
        counts = self.offsets.take(numbers + 1, mode="clip") - starts
        places, found = self.changed.nodes.find(numbers)
        starts[places] = self.changed.starts[found]
        counts[places] = self.changed.counts[found]
        return starts, counts

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the entries of every node start and end."""
        if self.changed is None:
            return self.offsets[:-1], self.offsets[1:]
        starts, counts = self.slices(np.arange(self.changed.node_count))
        return starts, starts + counts

    def degrees(self, numbers: np.ndarray | None = None) -> np.ndarray:
        """How many edges each of these nodes has here, or each of all nodes."""
        if numbers is not None:
            return self.slices(numbers)[1]
        starts, ends = self.bounds()
        degrees: np.ndarray = ends - starts
        return degrees

    def packed(self) -> Neighbours:
        """The same entries in the order of the nodes, with nothing between them."""
        if self.changed is None:
            return self
        starts, ends = self.bounds()
        counts = ends - starts
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        places = np.repeat(starts - offsets[:-1], counts)
        places += np.arange(offsets[-1])
        targets, edges = self.targets.take(places), self.edges.take(places)
        is_simple = self.is_simple or bool(is_first(offsets, targets).all())
        return Neighbours(offsets, targets, edges, is_simple)


def is_first(offsets: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Which entries are the first of their node with their target."""
    found = np.empty(len(targets), np.bool_)
    np.not_equal(targets[1:], targets[:-1], out=found[1:])
    starts = offsets[:-1]
    found[starts[starts < offsets[1:]]] = True
    return found
