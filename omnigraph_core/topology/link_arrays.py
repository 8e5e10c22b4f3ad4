"""What links of an edge type consist of, and the versions of its tables they were made from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.query.checked import Direction
from omnigraph_core.topology.adjacency import (
    Renumbering,
    renumber,
)
from omnigraph_core.topology.patches import PatchedArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.neighbours import Neighbours
    from omnigraph_core.topology.row_numbers import RowNumbers


@dataclass(frozen=True, slots=True, eq=False)
class TableVersion:
    """A table as links were made from it."""

    location: str
    version: int
    rows: RowNumbers

    @property
    def name(self) -> tuple[str, int, tuple[FragmentState, ...]]:
        """What tells it from other versions of other tables."""
        return self.location, self.version, self.rows.states


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """The versions of an edge type's three tables."""

    edges: TableVersion
    sources: TableVersion
    targets: TableVersion

    @property
    def all(self) -> tuple[TableVersion, TableVersion, TableVersion]:
        return self.edges, self.sources, self.targets

    @property
    def names(self) -> tuple[tuple[str, int, tuple[FragmentState, ...]], ...]:
        return tuple(item.name for item in self.all)

    @property
    def nbytes(self) -> int:
        """Of the rows by number, those of one table once."""
        return sum(rows.nbytes for rows in {id(item.rows): item.rows for item in self.all}.values())

    def has_gaps(self) -> bool:
        """Whether a number of some table has no row: else numbers are places in scan order."""
        return any(len(item.rows.gaps) for item in self.all)


@dataclass(frozen=True, slots=True)
class Tables:
    """An edge type's three tables; those of the nodes may be one and the same."""

    edges: DenseTable
    sources: DenseTable
    targets: DenseTable

    @property
    def versions(self) -> Versions:
        return Versions(_version(self.edges), _version(self.sources), _version(self.targets))


@dataclass(frozen=True, slots=True, eq=False)
class LinkArrays:
    """What links consist of. Arrays are never written to and may be mapped from a file."""

    versions: Versions
    sources: PatchedArray
    """The source of each edge by its number; -1 if no node has that id, or there is no edge."""
    targets: PatchedArray
    neighbours: Mapping[Direction, Neighbours]
    """The directions that are there already."""
    drift: int
    """How many edges have changed since the arrays were kept in a file."""
    distinct: Mapping[Direction, Neighbours] = field(default_factory=dict)
    """Directions without parallel edges, where there are such and somebody has asked."""
    loose: np.ndarray | None = None
    """Edges that lack an end, ascending; None: nobody has looked."""

    @property
    def nbytes(self) -> int:
        directions = [*self.neighbours.values(), *self.distinct.values()]
        ends = self.sources.nbytes + self.targets.nbytes
        return ends + sum(found.nbytes for found in directions)

    @property
    def arrays(self) -> list[np.ndarray]:
        """All there are but those of rows."""
        directions = [*self.neighbours.values(), *self.distinct.values()]
        ends = [*self.sources.arrays, *self.targets.arrays]
        return [*ends, *(array for found in directions for array in found.arrays)]

    def loose_edges(self) -> np.ndarray:
        """The edges that lack an end: int32, ascending."""
        if self.loose is not None:
            return self.loose
        ends = self.sources.whole() | self.targets.whole()  # the sign survives `or`
        lacking = np.flatnonzero(ends < 0)
        loose: np.ndarray = lacking[self.versions.edges.rows.which_live(lacking)]
        return loose.astype(np.int32)

    def without_gaps(self) -> LinkArrays:
        """The same with places in scan order for numbers."""
        if not self.versions.has_gaps():
            ways = {direction: found.packed() for direction, found in self.neighbours.items()}
            return replace(self, neighbours=ways)
        edges, sources, targets = (_ranks(item.rows) for item in self.versions.all)
        starts = edges.spread(sources.applied(self.sources.whole()), otherwise=-1)
        ends = edges.spread(targets.applied(self.targets.whole()), otherwise=-1)
        ways = {
            direction: renumber(
                found.packed(),
                *((targets, sources) if direction is Direction.IN else (sources, targets)),
                edges,
            )
            for direction, found in self.neighbours.items()
        }
        return replace(
            self,
            sources=PatchedArray.of(starts),
            targets=PatchedArray.of(ends),
            neighbours=ways,
        )


def bytes_beside(arrays: Iterable[np.ndarray], others: Iterable[np.ndarray]) -> int:
    """Bytes of the arrays that are not, in whole or in part, the memory of others."""
    shared = {id(_memory(array)) for array in others}
    return sum(int(array.nbytes) for array in arrays if id(_memory(array)) not in shared)


def _memory(array: np.ndarray) -> object:
    """What an array is a view of; itself if of nothing."""
    return array if array.base is None else array.base


def _version(dense: DenseTable) -> TableVersion:
    return TableVersion(dense.table.location, dense.table.physical_version, dense.rows)


def _ranks(rows: RowNumbers) -> Renumbering:
    """From numbers to places in scan order."""
    if not len(rows.gaps):
        return Renumbering(None, rows.count)
    numbers = np.full(rows.extent, -1, np.int32)
    numbers[rows.live_numbers()] = np.arange(rows.count, dtype=np.int32)
    return Renumbering(numbers, rows.count)
