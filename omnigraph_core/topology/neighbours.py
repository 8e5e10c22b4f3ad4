"""The neighbours of every node in one direction of an edge type, as arrays.

Nodes and edges are dense numbers: positions in the scan order of their table's version. The
targets of node `n` are `targets[offsets[n]:offsets[n + 1]]`, ascending, each beside the edge that
leads there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Neighbours:
    """One direction of an edge type; the arrays are never written to and may be mapped from a file.

    `is_simple` says that no node has a target twice: parallel edges make it false.
    """

    offsets: np.ndarray
    """int64, one more than there are nodes on this side."""
    targets: np.ndarray
    """int32 numbers of nodes on the other side."""
    edges: np.ndarray
    """int32 numbers of edges, beside `targets`."""
    is_simple: bool

    @property
    def node_count(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.targets.nbytes + self.edges.nbytes)

    def degrees(self, numbers: np.ndarray | None = None) -> np.ndarray:
        """How many edges each of these nodes has here, or each of all nodes."""
        if numbers is None:
            return np.diff(self.offsets)
        degrees: np.ndarray = self.offsets[numbers + 1] - self.offsets[numbers]
        return degrees
