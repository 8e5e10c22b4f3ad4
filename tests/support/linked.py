"""Nodes and edges in tables of their own, changed at will, and their links by dicts and loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.query.checked import Direction
from omnigraph_core.storage.dataset import create_table, open_table
from omnigraph_core.storage.derived import DerivedFiles
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.links import links_of
from omnigraph_core.topology.memory import ByteCache
from tests.support.parts import present
from tests.support.table_writes import stage_delete_keys, stage_upsert

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.link_arrays import TableVersion
    from omnigraph_core.topology.links import Links
    from omnigraph_core.topology.neighbours import Neighbours

PEOPLE = "nodes/people"
FIRMS = "nodes/firms"
KNOWS = "edges/knows"
WORKS = "edges/works"

_TEXT = pa.field("id", pa.utf8(), nullable=False)
NODE = pa.schema([_TEXT, pa.field("age", pa.int64())])
EDGE = pa.schema([_TEXT, _TEXT.with_name("src"), _TEXT.with_name("dst")])

Edge = tuple[str, str, str]
"""Id, source, target."""


@dataclass
class World:
    """Tables as they are now; every change makes a new version of one of them."""

    root: str
    tables: dict[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        store = open_store(self.root)
        store.create_root()
        for location, schema in ((PEOPLE, NODE), (FIRMS, NODE), (KNOWS, EDGE), (WORKS, EDGE)):
            self.tables[location] = create_table(store, location, schema)

    def add_nodes(self, location: str, ids: Iterable[str]) -> None:
        self.tables[location] = present(stage_append(self.tables[location], _nodes(ids)))

    def rewrite_nodes(self, location: str, ids: Iterable[str]) -> None:
        """The same nodes with other values: their rows move."""
        self.tables[location] = present(stage_upsert(self.tables[location], _nodes(ids)))

    def add_edges(self, location: str, edges: Iterable[Edge]) -> None:
        self.tables[location] = present(stage_append(self.tables[location], _edges(edges)))

    def delete(self, location: str, ids: Sequence[str]) -> None:
        keys = pa.array(ids, pa.utf8())
        self.tables[location] = present(stage_delete_keys(self.tables[location], keys))

    def pinned(self) -> dict[str, int]:
        return {location: table.physical_version for location, table in self.tables.items()}


def _nodes(ids: Iterable[str]) -> pa.Table:
    rows = [{"id": id, "age": len(id)} for id in ids]
    return pa.Table.from_pylist(rows, NODE)


def _edges(edges: Iterable[Edge]) -> pa.Table:
    rows = [{"id": id, "src": src, "dst": dst} for id, src, dst in edges]
    return pa.Table.from_pylist(rows, EDGE)


def links(
    tables: dict[str, Table],
    cache: ByteCache | None = None,
    *,
    edge: str = KNOWS,
    has_files: bool = False,
) -> Links:
    """The links of one edge type, by default with nothing to begin from."""
    cache = ByteCache(2**28) if cache is None else cache
    sources = DenseTable(tables[PEOPLE], cache)
    targets = sources if edge == KNOWS else DenseTable(tables[FIRMS], cache)
    edges = DenseTable(tables[edge], cache)
    derived = DerivedFiles(tables[edge].store) if has_files else None
    return links_of(edges, sources, targets, cache, derived)


def reopened(root: str, pinned: dict[str, int]) -> dict[str, Table]:
    """The same versions to a process that knows nothing of them."""
    store = open_store(root)
    return {location: open_table(store, location, pinned[location]) for location in pinned}


def directions(edge: str) -> tuple[Direction, ...]:
    return tuple(Direction) if edge == KNOWS else (Direction.OUT, Direction.IN)


def check(found: Links, tables: dict[str, Table], edge: str = KNOWS) -> None:
    """Every direction is what loops over the rows of the tables find."""
    versions = found.versions
    starts = _numbered(tables[PEOPLE], versions.sources)
    ends = starts if edge == KNOWS else _numbered(tables[FIRMS], versions.targets)
    rows = tables[edge].read(["src", "dst"]).to_pylist()
    numbers = versions.edges.rows.live_numbers()
    pairs = [(starts.get(row["src"], -1), ends.get(row["dst"], -1)) for row in rows]
    for array, side in ((found.sources, 0), (found.targets, 1)):
        assert array[numbers].tolist() == [pair[side] for pair in pairs]
        assert len(array) == versions.edges.rows.extent
        assert (array[versions.edges.rows.gaps] == -1).all()
    edges = zip(numbers.tolist(), pairs, strict=True)
    out = [(s, t, e) for e, (s, t) in edges if s >= 0 and t >= 0]
    into = [(t, s, e) for s, t, e in out]
    both = out + [(t, s, e) for t, s, e in into if t != s]
    looped = {Direction.OUT: out, Direction.IN: into, Direction.BOTH: both}
    for direction in directions(edge):
        side = versions.targets if direction is Direction.IN else versions.sources
        neighbours = found.by_edge(direction)
        assert _triples(neighbours) == sorted(looped[direction])
        assert neighbours.node_count == side.rows.extent
        assert neighbours.entry_count == len(looped[direction])
        ends_of = [(s, t) for s, t, _ in looped[direction]]
        is_simple = len(set(ends_of)) == len(ends_of)
        assert is_simple or not neighbours.is_simple
        assert neighbours.is_simple or not is_simple or neighbours.changed is not None
        distinct = found.distinct(direction)
        assert [(s, t) for s, t, _ in _triples(distinct)] == sorted(set(ends_of))
        assert {*_triples(distinct)} <= {*looped[direction]}


def _numbered(table: Table, version: TableVersion) -> dict[str, int]:
    """The numbers of the rows of a table, by id: in scan order they ascend."""
    ids = table.read(["id"])["id"].to_pylist()
    return dict(zip(ids, version.rows.live_numbers().tolist(), strict=True))


def _triples(neighbours: Neighbours) -> list[tuple[int, int, int]]:
    neighbours = neighbours.packed()
    entries = zip(neighbours.targets.tolist(), neighbours.edges.tolist(), strict=True)
    sources = [n for n, degree in enumerate(neighbours.degrees().tolist()) for _ in range(degree)]
    return [(source, *entry) for source, entry in zip(sources, entries, strict=True)]
