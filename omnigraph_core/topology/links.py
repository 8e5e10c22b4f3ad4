"""Who is linked to whom by an edge type: three tables come in, neighbours in each direction go out.

Links are kept in the cache under the versions of their tables. Those of a newer version are made
from older ones, in the cache or in a file, and only what has changed is read; where there are
none they are built from the ids of all edges. Which way was taken never shows in the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from omnigraph_core.constants import DERIVED_GROWTH, DERIVED_MIN_ROWS
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.query.checked import Direction
from omnigraph_core.topology.adjacency import (
    arrange,
    build_neighbours,
    entries_of,
    without_parallels,
)
from omnigraph_core.topology.ends import all_ends
from omnigraph_core.topology.link_files import load_links, load_similar, save_links
from omnigraph_core.topology.rebase import LinkArrays, Tables, overlap, rebase

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy as np

    from omnigraph_core.storage.derived import DerivedFiles
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.neighbours import Neighbours
    from omnigraph_core.topology.rebase import Versions

_REMEMBERED: Final = 4
"""Versions of an edge type that may serve as a base: branches take turns."""

_KEY_BYTES: Final = 500


class Links:
    """One edge type at one version of its tables. Immutable to callers, safe for threads."""

    __slots__ = ("_arrays", "_cache", "_key", "_node_counts", "_source_is_target")

    def __init__(self, arrays: LinkArrays, key: Hashable, cache: ByteCache) -> None:
        versions = arrays.versions
        self._arrays = arrays
        self._key = key
        self._cache = cache
        self._node_counts = (versions.sources.count, versions.targets.count)
        self._source_is_target = versions.sources == versions.targets

    @property
    def versions(self) -> Versions:
        """The versions of the tables they were made from."""
        return self._arrays.versions

    @property
    def sources(self) -> np.ndarray:
        """The source of each edge by the edge's number, int32; -1 if no node has that id."""
        return self._arrays.sources

    @property
    def targets(self) -> np.ndarray:
        """The target of each edge by the edge's number, int32; -1 if no node has that id."""
        return self._arrays.targets

    @property
    def nbytes(self) -> int:
        """Without directions made later: the cache counts those by themselves."""
        return self._arrays.nbytes + _KEY_BYTES

    def out(self) -> Neighbours:
        """The targets of each source."""
        return self.by_edge(Direction.OUT)

    def into(self) -> Neighbours:
        """The sources of each target."""
        return self.by_edge(Direction.IN)

    def both(self) -> Neighbours:
        """Sources and targets of each node; an edge from a node to itself counts once.

        Raises:
            InvariantBroken: sources and targets are of different types.
        """
        return self.by_edge(Direction.BOTH)

    def by_edge(self, direction: Direction) -> Neighbours:
        """The neighbours in a direction, once per edge."""
        given = self._arrays.neighbours.get(direction)
        if given is not None:
            return given
        return self._kept((self._key, direction), lambda: self._built(direction))

    def distinct(self, direction: Direction) -> Neighbours:
        """The neighbours in a direction, each once however many edges lead there."""
        neighbours = self.by_edge(direction)
        if neighbours.is_simple:
            return neighbours
        key = (self._key, direction, "distinct")
        return self._kept(key, lambda: without_parallels(neighbours))

    def made(self) -> LinkArrays:
        """The arrays with every direction that is in memory."""
        found = {
            direction: self._cache.peek((self._key, direction))
            for direction in Direction
            if direction not in self._arrays.neighbours
        }
        present = {d: cast("Neighbours", item) for d, item in found.items() if item is not None}
        return replace(self._arrays, neighbours={**self._arrays.neighbours, **present})

    def _kept(self, key: Hashable, build: Callable[[], Neighbours]) -> Neighbours:
        return self._cache.get(key, build, lambda neighbours: neighbours.nbytes)

    def _built(self, direction: Direction) -> Neighbours:
        if direction is Direction.OUT:
            return build_neighbours(self.sources, self.targets, self._node_counts[0])
        if direction is Direction.IN:
            return build_neighbours(self.targets, self.sources, self._node_counts[1])
        if not self._source_is_target:
            raise InvariantBroken("only an edge between nodes of one type is followed both ways")
        entries = entries_of(self.sources, self.targets)
        return arrange(entries.both_ways(), self._node_counts[0])


def links_of(
    edges: DenseTable,
    sources: DenseTable,
    targets: DenseTable,
    cache: ByteCache,
    derived: DerivedFiles | None,
) -> Links:
    """The links of an edge type, from whatever is cheapest."""
    key = ("links", edges.identity, sources.identity, targets.identity)
    tables = Tables(edges, sources, targets)
    return cache.get(key, lambda: _made(tables, key, cache, derived), lambda links: links.nbytes)


def _made(tables: Tables, key: Hashable, cache: ByteCache, derived: DerivedFiles | None) -> Links:
    files = derived if tables.edges.count >= DERIVED_MIN_ROWS.value else None
    arrays = _rebased(_remembered(tables, cache), tables, cache)
    if arrays is None and files is not None:
        arrays = load_links(files, tables)
        if arrays is None:
            arrays = _rebased(load_similar(files, tables), tables, cache)
    if arrays is None:
        arrays = _read(tables)
    if files is not None and arrays.drift >= DERIVED_GROWTH.value * tables.edges.count:
        arrays = _saved(files, arrays, tables)
    _remember(tables, key, cache)
    return Links(arrays, key, cache)


def _rebased(base: LinkArrays | None, tables: Tables, cache: ByteCache) -> LinkArrays | None:
    return None if base is None else rebase(base, tables, cache)


def _read(tables: Tables) -> LinkArrays:
    """Links from the ids of all edges."""
    sources, targets = all_ends(tables.edges, tables.sources, tables.targets)
    return LinkArrays(tables.versions, sources, targets, {}, drift=len(sources))


def _saved(files: DerivedFiles, arrays: LinkArrays, tables: Tables) -> LinkArrays:
    """The same with both directions, which the file has."""
    ways = dict(arrays.neighbours)
    if Direction.OUT not in ways:
        count = tables.sources.count
        ways[Direction.OUT] = build_neighbours(arrays.sources, arrays.targets, count)
    if Direction.IN not in ways:
        count = tables.targets.count
        ways[Direction.IN] = build_neighbours(arrays.targets, arrays.sources, count)
    whole = replace(arrays, neighbours=ways, drift=0)
    save_links(files, whole, tables)
    return whole


def _remembered(tables: Tables, cache: ByteCache) -> LinkArrays | None:
    """The links in memory that share the most edges with these tables."""
    keys = cast("tuple[Hashable, ...]", cache.peek(_newest(tables)) or ())
    kept = [links for key in keys if (links := cast("Links | None", cache.peek(key))) is not None]
    if not kept:
        return None
    return max(kept, key=lambda links: overlap(links.versions, tables)).made()


def _remember(tables: Tables, key: Hashable, cache: ByteCache) -> None:
    older = cast("tuple[Hashable, ...]", cache.peek(_newest(tables)) or ())
    others = tuple(item for item in older if item != key)
    cache.put(_newest(tables), (key, *others)[:_REMEMBERED], _REMEMBERED * _KEY_BYTES)


def _newest(tables: Tables) -> Hashable:
    places = (item.identity[:2] for item in (tables.edges, tables.sources, tables.targets))
    return ("newest links", *places)
