"""Building neighbours: ends of edges come in as numbers, one direction of the edge type goes out.

Entries stand by source, then target, then edge. What a change of tables leaves of older neighbours
is renumbered and the rest put in between, so a small change never sorts everything again; the
result is the same as if it were built anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np

from omnigraph_core.interruption import pause
from omnigraph_core.topology.neighbours import Neighbours, is_first

_KEY_BITS: Final = 63
_MOST_CUTS: Final = 500
"""Runs of entries that are copied one by one, which is faster as long as they are few."""


def build_neighbours(sources: np.ndarray, targets: np.ndarray, node_count: int) -> Neighbours:
    """The neighbours of so many nodes along edges with these ends.

    Args:
        sources: int32, the source of each edge by its number; -1 leaves the edge out.
        targets: the same for the other end.
    """
    return arrange(entries_of(sources, targets), node_count)


@dataclass(frozen=True, slots=True)
class Entries:
    """Edges as they are followed: where from, where to, and which, all int32. In any order."""

    sources: np.ndarray
    targets: np.ndarray
    edges: np.ndarray

    def turned(self) -> Entries:
        """The same edges followed the other way."""
        return Entries(self.targets, self.sources, self.edges)

    def both_ways(self) -> Entries:
        """The same edges followed both ways; an edge from a node to itself is one way only."""
        is_loop = self.sources == self.targets
        return self.joined(self.turned().chosen(~is_loop) if is_loop.any() else self.turned())

    def chosen(self, places: np.ndarray) -> Entries:
        return Entries(self.sources[places], self.targets[places], self.edges[places])

    def joined(self, other: Entries) -> Entries:
        return Entries(
            np.concatenate([self.sources, other.sources]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.edges, other.edges]),
        )


def entries_of(
    sources: np.ndarray, targets: np.ndarray, numbers: np.ndarray | None = None
) -> Entries:
    """The edges that have both ends.

    Args:
        numbers: of the edges; by default they are numbered from 0.
    """
    if numbers is None:
        numbers = np.arange(len(sources), dtype=np.int32)
    entries = Entries(sources, targets, numbers)
    is_whole = (sources | targets) >= 0  # the sign survives `or`
    return entries if is_whole.all() else entries.chosen(is_whole)


def arrange(entries: Entries, node_count: int) -> Neighbours:
    """Entries in their order, with where each node's begin."""
    pause()
    placed = in_order(entries)
    is_repeated = (placed.targets[1:] == placed.targets[:-1]) & (
        placed.sources[1:] == placed.sources[:-1]
    )
    return Neighbours(
        offsets=_offsets(np.bincount(entries.sources, minlength=node_count)),
        targets=placed.targets,
        edges=placed.edges,
        is_simple=not is_repeated.any(),
    )


def without_parallels(neighbours: Neighbours) -> Neighbours:
    """Each target of a node once, beside one of the edges that lead there."""
    if neighbours.is_simple:
        return neighbours
    neighbours = neighbours.packed()
    chosen = is_first(neighbours.offsets, neighbours.targets)
    return Neighbours(
        offsets=_offsets(chosen).take(neighbours.offsets),
        targets=neighbours.targets[chosen],
        edges=neighbours.edges[chosen],
        is_simple=True,
    )


@dataclass(frozen=True, slots=True)
class Renumbering:
    """What became of the rows of a table between two versions of it.

    `numbers` has the new number of each old row, -1 if it is gone; those that are left stand in
    the order they stood in. None: every row is where it was. `count` is of the newer version.
    """

    numbers: np.ndarray | None
    count: int

    def applied(self, old: np.ndarray) -> np.ndarray:
        """The new numbers of rows; -1 stays what it is."""
        if self.numbers is None:
            return old
        # -1 picks the last item: the one that is put there for it.
        new: np.ndarray = np.append(self.numbers, np.int32(-1)).take(old)
        return new

    def spread(self, items: np.ndarray, *, otherwise: int = 0) -> np.ndarray:
        """Something that each old row has, as each new row has it, or what rows have otherwise."""
        if self.numbers is None and self.count == len(items):
            return items
        result = np.full(self.count, otherwise, items.dtype)
        if self.numbers is None:
            result[: len(items)] = items
        else:
            is_left = self.numbers >= 0
            result[self.numbers[is_left]] = items[is_left]
        return result


def renumber(
    neighbours: Neighbours, sources: Renumbering, targets: Renumbering, edges: Renumbering
) -> Neighbours:
    """What is left of packed neighbours, under the numbers that nodes and edges have now."""
    if sources.numbers is None and targets.numbers is None and edges.numbers is None:
        return _with_room(neighbours, sources.count)
    found = targets.applied(neighbours.targets)
    ways = edges.applied(neighbours.edges)
    is_left = (found | ways) >= 0
    if sources.numbers is not None:
        is_left &= np.repeat(sources.numbers >= 0, neighbours.degrees())
    counts = neighbours.degrees()
    is_simple = neighbours.is_simple
    if not is_left.all():
        found, ways = found[is_left], ways[is_left]
        counts = np.diff(_offsets(is_left).take(neighbours.offsets))
    moved = Neighbours(_offsets(sources.spread(counts)), found, ways, is_simple)
    return moved if is_simple or len(found) == len(is_left) else _rated(moved)


def merge(neighbours: Neighbours, added: Entries) -> Neighbours:
    """Packed neighbours with more entries put in where they belong."""
    if not len(added.edges):
        return neighbours
    added = in_order(added)
    places = _places(neighbours, added)
    counts = np.bincount(added.sources, minlength=neighbours.node_count)
    return Neighbours(
        offsets=neighbours.offsets + _offsets(counts),
        targets=_interleaved(neighbours.targets, added.targets, places),
        edges=_interleaved(neighbours.edges, added.edges, places),
        is_simple=neighbours.is_simple and not _has_parallels(neighbours, added, places),
    )


def in_order(entries: Entries) -> Entries:
    """By source, target and edge: packed into one key each if they fit, which sorts far faster."""
    if not len(entries.edges):
        return entries
    edge_bits = int(entries.edges.max()).bit_length()
    target_bits = int(entries.targets.max()).bit_length()
    source_bits = int(entries.sources.max()).bit_length()
    if edge_bits + target_bits + source_bits > _KEY_BITS:
        return entries.chosen(np.lexsort((entries.edges, entries.targets, entries.sources)))
    keys = entries.sources.astype(np.int64)
    keys <<= target_bits
    keys |= entries.targets
    keys <<= edge_bits
    keys |= entries.edges
    keys.sort()
    edges = (keys & ((1 << edge_bits) - 1)).astype(np.int32)
    keys >>= edge_bits
    targets = (keys & ((1 << target_bits) - 1)).astype(np.int32)
    keys >>= target_bits
    return Entries(keys.astype(np.int32), targets, edges)


def _offsets(counts: np.ndarray) -> np.ndarray:
    """Where each begins, and where the last one ends."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _with_room(neighbours: Neighbours, node_count: int) -> Neighbours:
    """The same with nodes at the end that have no neighbours."""
    missing = node_count - neighbours.node_count
    if not missing:
        return neighbours
    last = neighbours.offsets[-1]
    return replace(neighbours, offsets=np.append(neighbours.offsets, np.full(missing, last)))


def _rated(neighbours: Neighbours) -> Neighbours:
    """The same, simple if it has become so."""
    is_simple = bool(is_first(neighbours.offsets, neighbours.targets).all())
    return replace(neighbours, is_simple=is_simple)


def _places(neighbours: Neighbours, added: Entries) -> np.ndarray:
    """Before which of the present entries each added one belongs: all are bisected at once."""
    low = neighbours.offsets.take(added.sources)
    high = neighbours.offsets.take(added.sources + 1)
    wanted = _pairs(added.targets, added.edges)
    while len(open := np.flatnonzero(low < high)):
        middle = (low[open] + high[open]) >> 1
        present = _pairs(neighbours.targets.take(middle), neighbours.edges.take(middle))
        is_after = wanted[open] > present
        low[open[is_after]] = middle[is_after] + 1
        high[open[~is_after]] = middle[~is_after]
    return low


def _pairs(targets: np.ndarray, edges: np.ndarray) -> np.ndarray:
    pairs: np.ndarray = (targets.astype(np.int64) << 32) | edges
    return pairs


def _interleaved(present: np.ndarray, added: np.ndarray, places: np.ndarray) -> np.ndarray:
    """What is present with each added item before its ascending place."""
    if len(places) <= _MOST_CUTS:
        runs = np.split(present, places)
        items = np.split(added, len(added))
        return np.concatenate([*chain.from_iterable(zip(runs, items, strict=False)), runs[-1]])
    is_added = np.zeros(len(present) + len(added), np.bool_)
    is_added[places + np.arange(len(places))] = True
    merged = np.empty(len(is_added), np.int32)
    merged[~is_added] = present
    merged[is_added] = added
    return merged


def _has_parallels(neighbours: Neighbours, added: Entries, places: np.ndarray) -> bool:
    """Whether an added entry has the ends of another one, present or added."""
    targets, offsets = neighbours.targets, neighbours.offsets
    is_twin = (added.sources[1:] == added.sources[:-1]) & (added.targets[1:] == added.targets[:-1])
    if is_twin.any():
        return True
    if not len(targets):
        return False
    before = (places > offsets.take(added.sources)) & (
        targets.take(places - 1, mode="clip") == added.targets
    )
    after = (places < offsets.take(added.sources + 1)) & (
        targets.take(places, mode="clip") == added.targets
    )
    return bool((before | after).any())
