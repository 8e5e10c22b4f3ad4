"""Links after a commit, out of those before it: only edges that it touched are looked at.

That is possible while all three tables go on under the numbers they had. Edges that are gone are
taken out; those that are new, and those of nodes whose rows were rewritten, are put in. All else is
shared with the links of the version before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.query.checked import Direction
from omnigraph_core.topology.adjacency import Entries, entries_of
from omnigraph_core.topology.ends import some_ends
from omnigraph_core.topology.following import differing
from omnigraph_core.topology.link_arrays import LinkArrays
from omnigraph_core.topology.touched import for_nodes, touched_lists, with_lists

if TYPE_CHECKING:
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.link_arrays import Tables, TableVersion, Versions
    from omnigraph_core.topology.neighbours import Neighbours
    from omnigraph_core.topology.patches import PatchedArray

_MOST_SHARE: Final = 8
"""One edge of so many: if more are touched, going through all of them costs no more."""

_FEW: Final = 16
"""Nodes whose edges are looked for one by one where no direction tells them."""


def relink(base: LinkArrays, tables: Tables) -> LinkArrays | None:
    """The links of these tables; None if they have other numbers, or much was touched."""
    versions = tables.versions
    pairs = tuple(zip(base.versions.all, versions.all, strict=True))
    if any(old.rows.numbering is not new.rows.numbering for old, new in pairs):
        return None
    edges, sources, targets = (_Change.between(old, new) for old, new in pairs)
    moved = _moved(base, sources, targets, edges.gone)
    touched = len(edges.gone) + len(edges.came) + len(moved)
    if touched * _MOST_SHARE > max(tables.edges.count, _FEW * _MOST_SHARE):
        return None
    before = np.union1d(edges.gone, moved).astype(np.int32)
    removed = entries_of(base.sources.take(before), base.targets.take(before), before)
    now = _resolved(base, tables, edges.came, moved, (sources, targets))
    added = entries_of(now.sources, now.targets, now.edges)
    gone = np.full(len(edges.gone), -1, np.int32)
    keys = np.concatenate((now.edges, edges.gone))
    order = np.argsort(keys)
    extent = versions.edges.rows.extent
    ways, distinct = _directions(base, removed, added, versions)
    return LinkArrays(
        versions=versions,
        sources=_patched(base.sources, keys, np.concatenate((now.sources, gone)), order, extent),
        targets=_patched(base.targets, keys, np.concatenate((now.targets, gone)), order, extent),
        neighbours=ways,
        distinct=distinct,
        drift=base.drift + len(now.edges) + len(edges.gone),
        loose=_loose(base, edges.gone, now),
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """The rows of a table that one of two versions has alone, by number, ascending."""

    gone: np.ndarray
    came: np.ndarray

    @staticmethod
    def between(old: TableVersion, new: TableVersion) -> _Change:
        return _Change(differing(old.rows, new.rows), differing(new.rows, old.rows))

    @property
    def is_any(self) -> bool:
        return len(self.gone) > 0 or len(self.came) > 0


def _moved(base: LinkArrays, sources: _Change, targets: _Change, gone: np.ndarray) -> np.ndarray:
    """Edges that are still there and may have another end now, ascending."""
    found = [
        _edges_of(base.neighbours.get(Direction.OUT), base.sources, sources.gone),
        _edges_of(base.neighbours.get(Direction.IN), base.targets, targets.gone),
    ]
    if sources.is_any or targets.is_any:
        found.append(base.loose_edges())
    moved = np.unique(np.concatenate(found)).astype(np.int32, copy=False)
    return moved[~np.isin(moved, gone)]


def _edges_of(neighbours: Neighbours | None, ends: PatchedArray, nodes: np.ndarray) -> np.ndarray:
    """The edges of some nodes in one direction, in any order."""
    if not len(nodes):
        return np.zeros(0, np.int32)
    if neighbours is not None:
        starts, counts = neighbours.slices(nodes)
        before = np.cumsum(counts) - counts
        places = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
        return neighbours.edges.take(places)
    if len(nodes) <= _FEW:
        return np.concatenate([ends.where(node) for node in nodes.tolist()])
    is_wanted = np.isin(ends.whole(), nodes)
    return np.flatnonzero(is_wanted).astype(np.int32)


def _resolved(
    base: LinkArrays,
    tables: Tables,
    came: np.ndarray,
    moved: np.ndarray,
    changes: tuple[_Change, _Change],
) -> Entries:
    """The ends that new and moved edges have now, -1 where no node has the id; in any order."""
    starts, ends = base.sources.take(moved), base.targets.take(moved)
    heirs = _heirs(tables.sources, changes[0].gone), _heirs(tables.targets, changes[1].gone)
    is_loose = (starts | ends) < 0
    if heirs[0] is None or heirs[1] is None:
        is_loose[:] = True  # ids of nodes that are gone are not in memory: those of edges tell
        kept = Entries(*(np.zeros(0, np.int32) for _ in range(3)))
    else:
        starts = _followed(starts, changes[0].gone, heirs[0])
        ends = _followed(ends, changes[1].gone, heirs[1])
        kept = Entries(starts, ends, moved).chosen(~is_loose)
    pending = np.union1d(came, moved[is_loose]).astype(np.int32)
    numbers, found, led = some_ends(tables.edges, tables.sources, tables.targets, pending)
    return kept.joined(Entries(found, led, numbers))


def _heirs(nodes: DenseTable, gone: np.ndarray) -> np.ndarray | None:
    """The numbers that nodes have now whose rows are gone, -1 if none; None if nobody knows."""
    if not len(gone):
        return gone
    ids = nodes.try_former_ids(gone)
    return None if ids is None else nodes.numbers_of(ids)


def _followed(ends: np.ndarray, gone: np.ndarray, heirs: np.ndarray) -> np.ndarray:
    if not len(gone):
        return ends
    places = np.searchsorted(gone, ends).clip(max=len(gone) - 1)
    return np.where(gone.take(places) == ends, heirs.take(places), ends)


def _patched(
    ends: PatchedArray, keys: np.ndarray, values: np.ndarray, order: np.ndarray, extent: int
) -> PatchedArray:
    return ends.patched(keys[order], values[order], extent)


def _directions(
    base: LinkArrays, removed: Entries, added: Entries, versions: Versions
) -> tuple[dict[Direction, Neighbours], dict[Direction, Neighbours]]:
    """Every direction that is there, and those without parallel edges."""
    ways: dict[Direction, Neighbours] = {}
    distinct: dict[Direction, Neighbours] = {}
    for direction, found in base.neighbours.items():
        side = versions.targets if direction is Direction.IN else versions.sources
        count = side.rows.extent
        before = for_nodes(found, count)
        lists = touched_lists(before, _turned(removed, direction), _turned(added, direction))
        ways[direction] = with_lists(before, lists)
        if direction in base.distinct:
            single = for_nodes(base.distinct[direction], count)
            distinct[direction] = with_lists(single, lists.without_parallels())
    return ways, distinct


def _turned(entries: Entries, direction: Direction) -> Entries:
    if direction is Direction.OUT:
        return entries
    return entries.turned() if direction is Direction.IN else entries.both_ways()


def _loose(base: LinkArrays, gone: np.ndarray, now: Entries) -> np.ndarray:
    """The edges that lack an end, ascending."""
    before = base.loose_edges()
    is_lacking = (now.sources | now.targets) < 0
    if not len(before) and not is_lacking.any():
        return before
    left = before[~np.isin(before, np.concatenate((gone, now.edges)))]
    return np.union1d(left, now.edges[is_lacking]).astype(np.int32)
