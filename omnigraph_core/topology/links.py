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
from omnigraph_core.topology.link_arrays import LinkArrays, Tables, bytes_beside
from omnigraph_core.topology.link_files import load_links, load_similar, save_links
from omnigraph_core.topology.patches import PatchedArray
from omnigraph_core.topology.rebase import overlap, rebase
from omnigraph_core.topology.relink import relink

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import numpy as np

    from omnigraph_core.storage.derived import DerivedFiles
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.topology.link_arrays import Versions
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.neighbours import Neighbours

_REMEMBERED: Final = 4
"""Versions of an edge type that may serve as a base: branches take turns."""

_KEY_BYTES: Final = 500


class Links:
    """One edge type at one version of its tables. Immutable to callers, safe for threads."""

    __slots__ = ("_arrays", "_cache", "_key", "_source_is_target")

    def __init__(self, arrays: LinkArrays, key: Hashable, cache: ByteCache) -> None:
        versions = arrays.versions
        self._arrays = arrays
        self._key = key
        self._cache = cache
        self._source_is_target = versions.sources.name == versions.targets.name

    @property
    def versions(self) -> Versions:
        """The versions of the tables they were made from."""
        return self._arrays.versions

    @property
    def sources(self) -> np.ndarray:
        """The source of each edge by the edge's number, int32; -1 if no node has that id."""
        return self._arrays.sources.whole()

    @property
    def targets(self) -> np.ndarray:
        """The target of each edge by the edge's number, int32; -1 if no node has that id."""
        return self._arrays.targets.whole()

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
        given = self._arrays.distinct.get(direction)
        if given is not None:
            return given
        key = (self._key, direction, "distinct")
        return self._kept(key, lambda: without_parallels(neighbours))

    def made(self) -> LinkArrays:
        """The arrays with every direction that is in memory."""
        ways = {d: self._cache.peek((self._key, d)) for d in Direction}
        distinct = {d: self._cache.peek((self._key, d, "distinct")) for d in Direction}
        return replace(
            self._arrays,
            neighbours={**self._arrays.neighbours, **_present(ways)},
            distinct={**self._arrays.distinct, **_present(distinct)},
        )

    def shed(self, newer: LinkArrays) -> None:
        """Count no longer what newer links share with these: it is counted with them."""
        theirs = newer.arrays
        for direction in Direction:
            for key in ((self._key, direction), (self._key, direction, "distinct")):
                found = cast("Neighbours | None", self._cache.glance(key))
                if found is not None:
                    self._cache.supersede(key, _KEY_BYTES + bytes_beside(found.arrays, theirs))
        own = bytes_beside(self._arrays.arrays, theirs)
        self._cache.supersede(self._key, _KEY_BYTES + self.versions.nbytes + own)

    def _kept(self, key: Hashable, build: Callable[[], Neighbours]) -> Neighbours:
        return self._cache.get(key, build, lambda neighbours: neighbours.nbytes)

    def _built(self, direction: Direction) -> Neighbours:
        if direction is Direction.BOTH and not self._source_is_target:
            raise InvariantBroken("only an edge between nodes of one type is followed both ways")
        return _direction(self._arrays, direction)


def _present(found: Mapping[Direction, object | None]) -> dict[Direction, Neighbours]:
    return {d: cast("Neighbours", item) for d, item in found.items() if item is not None}


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


def keep_links(
    edges: DenseTable,
    sources: DenseTable,
    targets: DenseTable,
    cache: ByteCache,
    files: DerivedFiles,
) -> None:
    """Keep the links of exactly these tables as a file, also where a similar one would do."""
    tables = Tables(edges, sources, targets)
    links = links_of(edges, sources, targets, cache, files)
    if load_links(files, tables) is None:
        _saved(files, links.made(), tables)


def _made(tables: Tables, key: Hashable, cache: ByteCache, derived: DerivedFiles | None) -> Links:
    files = derived if tables.edges.count >= DERIVED_MIN_ROWS.value else None
    arrays = _from_memory(tables, cache)
    if arrays is None and files is not None:
        arrays = _from_files(files, tables)
    if arrays is None:
        arrays = _read(tables)
    if files is not None and arrays.drift >= DERIVED_GROWTH.value * tables.edges.count:
        arrays = _saved(files, arrays, tables)
    _remember(tables, key, cache)
    return Links(arrays, key, cache)


def _from_memory(tables: Tables, cache: ByteCache) -> LinkArrays | None:
    base = _remembered(tables, cache)
    if base is None:
        return None
    arrays = relink(base.made(), tables)
    if arrays is None:
        return rebase(base.made(), tables)
    base.shed(arrays)
    return arrays


def _from_files(files: DerivedFiles, tables: Tables) -> LinkArrays | None:
    exact = load_links(files, tables)
    versions = tables.versions
    if exact is not None and not versions.has_gaps():
        return replace(exact, versions=versions)
    base = exact or load_similar(files, tables)
    return None if base is None else rebase(base, tables)


def _read(tables: Tables) -> LinkArrays:
    """Links from the ids of all edges."""
    sources, targets = all_ends(tables.edges, tables.sources, tables.targets)
    ends = PatchedArray.of(sources), PatchedArray.of(targets)
    return LinkArrays(tables.versions, *ends, {}, drift=len(sources))


def _saved(files: DerivedFiles, arrays: LinkArrays, tables: Tables) -> LinkArrays:
    """The same with both directions, which the file has."""
    ways = dict(arrays.neighbours)
    for direction in (Direction.OUT, Direction.IN):
        if direction not in ways:
            ways[direction] = _direction(arrays, direction)
    whole = replace(arrays, neighbours=ways, drift=0)
    save_links(files, whole.without_gaps(), tables)
    return whole


def _direction(arrays: LinkArrays, direction: Direction) -> Neighbours:
    """A direction from the ends of all edges."""
    sources, targets = arrays.sources.whole(), arrays.targets.whole()
    versions = arrays.versions
    if direction is Direction.OUT:
        return build_neighbours(sources, targets, versions.sources.rows.extent)
    if direction is Direction.IN:
        return build_neighbours(targets, sources, versions.targets.rows.extent)
    both = entries_of(sources, targets).both_ways()
    return arrange(both, versions.sources.rows.extent)


def _remembered(tables: Tables, cache: ByteCache) -> Links | None:
    """The links in memory that share the most edges with these tables."""
    keys = cast("tuple[Hashable, ...]", cache.peek(_newest(tables)) or ())
    kept = [links for key in keys if (links := cast("Links | None", cache.peek(key))) is not None]
    return max(kept, key=lambda links: overlap(links.versions, tables), default=None)


def _remember(tables: Tables, key: Hashable, cache: ByteCache) -> None:
    older = cast("tuple[Hashable, ...]", cache.peek(_newest(tables)) or ())
    others = tuple(item for item in older if item != key)
    cache.put(_newest(tables), (key, *others)[:_REMEMBERED], _REMEMBERED * _KEY_BYTES)


def _newest(tables: Tables) -> Hashable:
    places = (item.identity[:2] for item in (tables.edges, tables.sources, tables.targets))
    return ("newest links", *places)
