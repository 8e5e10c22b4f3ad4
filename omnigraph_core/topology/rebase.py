"""Links of one version out of those of another: what both share is renumbered, the rest resolved.

Older links and the tables as they are now come in. Rows that stayed keep their place in the order;
edges that are new, or one end of which was rewritten, are resolved from their ids. The result
is the same as if everything were read anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import StorageError
from omnigraph_core.query.checked import Direction
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.row_space import is_extension
from omnigraph_core.topology.adjacency import Entries, Renumbering, entries_of, merge, renumber
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.ends import some_ends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.neighbours import Neighbours

LEAST_OVERLAP: Final = 0.5
"""Share of the edges that are to be known already; otherwise everything is built anew."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table as links were made from it."""

    location: str
    version: int
    fragments: tuple[FragmentState, ...]

    @property
    def count(self) -> int:
        return sum(state.rows for state in self.fragments)


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of an edge type's three tables."""

    edges: TableVersion
    sources: TableVersion
    targets: TableVersion


@dataclass(frozen=True, slots=True)
class Tables:
    """An edge type's three tables; those of the nodes may be one and the same."""

    edges: DenseTable
    sources: DenseTable
    targets: DenseTable

    @property
    def versions(self) -> Versions:
        return Versions(_version(self.edges), _version(self.sources), _version(self.targets))


@dataclass(frozen=True, slots=True)
class LinkArrays:
    """What links consist of. Arrays are never written to and may be mapped from a file."""

    versions: Versions
    sources: np.ndarray
    """int32, the source of each edge by its number; -1 if no node has that id."""
    targets: np.ndarray
    neighbours: Mapping[Direction, Neighbours]
    """The directions that are there already."""
    drift: int
    """How many edges have changed since the arrays were kept in a file."""

    @property
    def nbytes(self) -> int:
        directions = sum(found.nbytes for found in self.neighbours.values())
        return int(self.sources.nbytes + self.targets.nbytes) + directions


@dataclass(frozen=True, slots=True)
class _Moves:
    """What became of the rows of the three tables."""

    edges: Renumbering
    sources: Renumbering
    targets: Renumbering


def overlap(versions: Versions, tables: Tables) -> float:
    """The share of the edges that links of these versions know of, roughly."""
    known = {(state.id, state.files): state.rows for state in versions.edges.fragments}
    shared = [
        min(known.get((state.id, state.files), 0), state.rows) for state in tables.edges.fragments
    ]
    return sum(shared) / max(tables.edges.count, 1)


def rebase(base: LinkArrays, tables: Tables, cache: ByteCache) -> LinkArrays | None:
    """The links of these tables; None if too much has changed since the base."""
    is_alike = overlap(base.versions, tables) >= LEAST_OVERLAP
    moves = _find_moves(base.versions, tables, cache) if is_alike else None
    if moves is None:
        return None
    sources = moves.edges.spread(moves.sources.applied(base.sources), otherwise=-1)
    targets = moves.edges.spread(moves.targets.applied(base.targets), otherwise=-1)
    pending = _pending(base, tables, moves, sources | targets)
    if len(pending) > (1 - LEAST_OVERLAP) * tables.edges.count:
        return None
    numbers, starts, ends = some_ends(tables.edges, tables.sources, tables.targets, pending)
    added = entries_of(starts, ends, numbers)
    return LinkArrays(
        versions=tables.versions,
        sources=_replaced(sources, base.sources, numbers, starts),
        targets=_replaced(targets, base.targets, numbers, ends),
        neighbours={
            direction: _followed(direction, found, moves, added)
            for direction, found in base.neighbours.items()
        },
        drift=base.drift + len(pending) + _gone(moves.edges),
    )


def _version(dense: DenseTable) -> TableVersion:
    return TableVersion(dense.table.location, dense.table.physical_version, dense.fragments)


def _find_moves(versions: Versions, tables: Tables, cache: ByteCache) -> _Moves | None:
    try:
        edges = _find_renumbering(versions.edges, tables.edges, cache)
        sources = _find_renumbering(versions.sources, tables.sources, cache)
        if tables.targets.identity == tables.sources.identity:
            targets = sources
        else:
            targets = _find_renumbering(versions.targets, tables.targets, cache)
    except StorageError:
        return None  # the older version is gone: only that would have told
    if edges is None or sources is None or targets is None:
        return None
    return _Moves(edges, sources, targets)


def _find_renumbering(old: TableVersion, new: DenseTable, cache: ByteCache) -> Renumbering | None:
    """Where the rows of a version are now; None if they stand in another order."""
    if old.location != new.table.location:
        return None
    if is_extension(old.fragments, new.fragments):
        return Renumbering(None, new.count)
    now = _by_files(new.fragments)
    numbers = np.full(old.count, -1, np.int32)
    before = None
    start = last = 0
    for state in old.fragments:
        begin, present = now.get((state.id, state.files), (last, None))
        if begin < last:
            return None
        if present == state:
            numbers[start : start + state.rows] = np.arange(begin, begin + state.rows)
        elif present is not None:
            before = before or DenseTable(
                open_table(new.table.store, old.location, old.version), cache
            )
            addresses = before.addresses_of(np.arange(start, start + state.rows))
            numbers[start : start + state.rows] = new.numbers_at(addresses)
        start, last = start + state.rows, begin
    return Renumbering(numbers, new.count)


def _by_files(
    fragments: tuple[FragmentState, ...],
) -> dict[tuple[int, tuple[str, ...]], tuple[int, FragmentState]]:
    """Where the rows of each fragment begin, by what makes it the same fragment."""
    found = {}
    start = 0
    for state in fragments:
        found[state.id, state.files] = (start, state)
        start += state.rows
    return found


def _pending(base: LinkArrays, tables: Tables, moves: _Moves, ends: np.ndarray) -> np.ndarray:
    """Which edges have an end that is to be looked for, ascending."""
    before = (base.versions.sources.fragments, base.versions.targets.fragments)
    if (tables.sources.fragments, tables.targets.fragments) == before:
        is_known = moves.edges.spread(np.ones(len(base.sources), np.bool_))
        return np.flatnonzero(~is_known)  # what led nowhere still does
    return np.flatnonzero(ends < 0)


def _replaced(
    ends: np.ndarray, before: np.ndarray, numbers: np.ndarray, found: np.ndarray
) -> np.ndarray:
    """Ends with those of some edges that were found; what the base has is not written to."""
    if not len(numbers):
        return ends
    result = ends.copy() if ends is before else ends
    result[numbers] = found
    return result


def _followed(
    direction: Direction, neighbours: Neighbours, moves: _Moves, added: Entries
) -> Neighbours:
    """One direction with what has changed."""
    if direction is Direction.IN:
        left = renumber(neighbours, moves.targets, moves.sources, moves.edges)
        return merge(left, added.turned())
    left = renumber(neighbours, moves.sources, moves.targets, moves.edges)
    return merge(left, added if direction is Direction.OUT else added.both_ways())


def _gone(edges: Renumbering) -> int:
    return 0 if edges.numbers is None else int(np.count_nonzero(edges.numbers < 0))
