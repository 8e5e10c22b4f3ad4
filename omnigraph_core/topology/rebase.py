"""Links of one version out of those of another: what both share is renumbered, the rest resolved.

Older links and the tables as they are now come in. Rows that stayed keep their place in the order;
edges that are new, or one end of which was rewritten, are resolved from their ids. The result
is the same as if everything were read anew. Every entry is gone through: where tables go on under
the same numbers, `relink` does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.query.checked import Direction
from omnigraph_core.topology.adjacency import Entries, Renumbering, entries_of, merge, renumber
from omnigraph_core.topology.ends import some_ends
from omnigraph_core.topology.following import follow_rows
from omnigraph_core.topology.link_arrays import LinkArrays
from omnigraph_core.topology.patches import PatchedArray

if TYPE_CHECKING:
    from omnigraph_core.topology.link_arrays import Tables, Versions
    from omnigraph_core.topology.neighbours import Neighbours

LEAST_OVERLAP: Final = 0.5
"""Share of the edges that are to be known already; otherwise everything is built anew."""


@dataclass(frozen=True, slots=True)
class _Moves:
    """What became of the rows of the three tables."""

    edges: Renumbering
    sources: Renumbering
    targets: Renumbering


def overlap(versions: Versions, tables: Tables) -> float:
    """The share of the edges that links of these versions know of, roughly."""
    known = {(state.id, state.files): state.rows for state in versions.edges.rows.states}
    shared = [
        min(known.get((state.id, state.files), 0), state.rows) for state in tables.edges.fragments
    ]
    return sum(shared) / max(tables.edges.count, 1)


def rebase(base: LinkArrays, tables: Tables) -> LinkArrays | None:
    """The links of these tables; None if too much has changed since the base."""
    is_alike = overlap(base.versions, tables) >= LEAST_OVERLAP
    moves = _find_moves(base.versions, tables) if is_alike else None
    if moves is None:
        return None
    before = base.sources.whole(), base.targets.whole()
    sources = moves.edges.spread(moves.sources.applied(before[0]), otherwise=-1)
    targets = moves.edges.spread(moves.targets.applied(before[1]), otherwise=-1)
    pending = _pending(base, tables, moves, sources | targets)
    if len(pending) > (1 - LEAST_OVERLAP) * tables.edges.count:
        return None
    numbers, starts, ends = some_ends(tables.edges, tables.sources, tables.targets, pending)
    added = entries_of(starts, ends, numbers)
    sources = _replaced(sources, before[0], numbers, starts)
    targets = _replaced(targets, before[1], numbers, ends)
    return LinkArrays(
        versions=tables.versions,
        sources=PatchedArray.of(sources),
        targets=PatchedArray.of(targets),
        neighbours={
            direction: _followed(direction, found.packed(), moves, added)
            for direction, found in base.neighbours.items()
        },
        drift=base.drift + len(pending) + _gone(base, moves.edges),
    )


def _find_moves(versions: Versions, tables: Tables) -> _Moves | None:
    if any(
        old.location != new.location
        for old, new in zip(versions.all, tables.versions.all, strict=True)
    ):
        return None
    edges = follow_rows(versions.edges.rows, tables.edges.rows)
    sources = follow_rows(versions.sources.rows, tables.sources.rows)
    targets = sources
    if tables.targets.identity != tables.sources.identity:
        targets = follow_rows(versions.targets.rows, tables.targets.rows)
    if edges is None or sources is None or targets is None:
        return None
    return _Moves(edges, sources, targets)


def _pending(base: LinkArrays, tables: Tables, moves: _Moves, ends: np.ndarray) -> np.ndarray:
    """Which edges have an end that is to be looked for, ascending."""
    before = (base.versions.sources.rows.states, base.versions.targets.rows.states)
    if (tables.sources.fragments, tables.targets.fragments) == before:
        is_known = moves.edges.spread(np.ones(base.sources.length, np.bool_))
        unknown = np.flatnonzero(~is_known)  # what led nowhere still does
    else:
        unknown = np.flatnonzero(ends < 0)
    pending: np.ndarray = unknown[tables.edges.rows.which_live(unknown)]
    return pending


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


def _gone(base: LinkArrays, edges: Renumbering) -> int:
    if edges.numbers is None:
        return 0
    return int(np.count_nonzero(edges.numbers < 0)) - len(base.versions.edges.rows.gaps)
