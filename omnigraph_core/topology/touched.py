"""Neighbours after a small change: the nodes it touches get their entries anew, others keep theirs.

Entries that are gone and entries that came go in. What they take is measured by the entries of the
nodes they belong to, not by all. The result has the same entries as if it were built anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omnigraph_core.topology.adjacency import Entries, in_order
from omnigraph_core.topology.neighbours import Changed, EntryPool, Neighbours
from omnigraph_core.topology.patches import Patches

_NOTHING: Final = np.zeros(0, np.int64)
_NOBODY: Final = Patches(np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """All entries that some nodes have now: the nodes ascending, the entries in their order."""

    nodes: np.ndarray
    entries: Entries

    def without_parallels(self) -> Lists:
        """Each target of a node once."""
        return replace(self, entries=self.entries.chosen(~self._is_repeated()))

    def has_parallels(self) -> bool:
        return bool(self._is_repeated().any())

    def _is_repeated(self) -> np.ndarray:
        sources, targets = self.entries.sources, self.entries.targets
        is_repeated = np.zeros(len(sources), np.bool_)
        is_repeated[1:] = (sources[1:] == sources[:-1]) & (targets[1:] == targets[:-1])
        return is_repeated


def touched_lists(neighbours: Neighbours, removed: Entries, added: Entries) -> Lists:
    """The entries of the nodes that lose or get some.

    Args:
        removed: entries that are there, in any order; a node has an edge once.
    """
    nodes = np.union1d(removed.sources, added.sources).astype(np.int32, copy=False)
    starts, counts = neighbours.slices(nodes)
    before = np.cumsum(counts) - counts
    places = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    present = Entries(
        np.repeat(nodes, counts), neighbours.targets.take(places), neighbours.edges.take(places)
    )
    is_gone = np.isin(_pairs(present), _pairs(removed))
    left = present.chosen(~is_gone) if is_gone.any() else present
    return Lists(nodes, in_order(left.joined(added)))


def for_nodes(neighbours: Neighbours, node_count: int) -> Neighbours:
    """The same for another number of nodes: those that came have no entries."""
    if node_count == neighbours.node_count:
        return neighbours
    return replace(neighbours, changed=replace(_changed(neighbours), node_count=node_count))


def with_lists(neighbours: Neighbours, lists: Lists) -> Neighbours:
    """The same neighbours but for some nodes, which have other entries now."""
    if not len(lists.nodes):
        return neighbours
    changed = _changed(neighbours)
    entries = lists.entries
    owners = np.searchsorted(lists.nodes, entries.sources)
    counts = np.bincount(owners, minlength=len(lists.nodes))
    pool = changed.pool or EntryPool(neighbours.targets, neighbours.edges)
    first = pool.append(entries.targets, entries.edges)
    nodes, old, new = changed.nodes.joined(lists.nodes)
    starts = first + np.cumsum(counts) - counts
    replaced = int(neighbours.slices(lists.nodes)[1].sum())
    made = Changed(
        pool=pool,
        nodes=nodes,
        starts=_merged(len(nodes.keys), (old, changed.starts), (new, starts)),
        counts=_merged(len(nodes.keys), (old, changed.counts), (new, counts)),
        node_count=changed.node_count,
        entry_count=changed.entry_count + len(entries.edges) - replaced,
    )
    is_simple = neighbours.is_simple and not lists.has_parallels()
    result = Neighbours(neighbours.offsets, *pool.views(), is_simple, made)
    return result.packed() if result.is_worn else result


def _changed(neighbours: Neighbours) -> Changed:
    return neighbours.changed or Changed(
        None, _NOBODY, _NOTHING, _NOTHING, neighbours.node_count, len(neighbours.targets)
    )


def _pairs(entries: Entries) -> np.ndarray:
    pairs: np.ndarray = (entries.sources.astype(np.int64) << 32) | entries.edges
    return pairs


def _merged(length: int, *parts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Items at their places; what comes later counts."""
    merged = np.empty(length, np.int64)
    for places, items in parts:
        merged[places] = items
    return merged
