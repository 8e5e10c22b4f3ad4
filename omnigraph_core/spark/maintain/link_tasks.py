"""Links of an edge type by many tasks: from ids to numbers, and from numbers to neighbours.

Three exchanges, each between tasks that know a small part of the graph:

    ids      some nodes or edges:  ids and the numbers of rows, by hash of the id
    resolve  some hashes:          the numbers of the nodes that edges begin and end at
    ends     what one resolved:    numbers of edges and of their ends, by range of edges
    settle   one range:            the ends of its edges
    entries  what one settled:     its edges, by range of nodes
    arrange  one range:            what its nodes are linked to, in order

What one exchange leaves for the next is in scratch objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.spark.blocks import Blocks
from omnigraph_core.spark.rows import received_rows, spread_rows
from omnigraph_core.storage.places import TablePlace, shared_store
from omnigraph_core.storage.row_space import read_fragments
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.topology.adjacency import Entries, arrange, entries_of
from omnigraph_core.topology.text_hash import hash_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.spark.blocks import Received

SOURCE: Final = "src"
TARGET: Final = "dst"
ENDS: Final = {SOURCE: 0, TARGET: 1}
"""By column the section of what is known of it."""

_IDS: Final = pa.schema([("id", pa.utf8()), ("number", pa.int32())])
_RESOLVED: Final = pa.schema([("edge", pa.int32()), ("node", pa.int32())])
_ENTRIES: Final = pa.schema([("near", pa.int32()), ("far", pa.int32()), ("edge", pa.int32())])
_NUMBER: Final = np.dtype("<i4")
_ENTRY, _RANGE = 0, 1
"""Sections: edges of nodes, and ranges of nodes whether or not they have any."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the work on one edge type is cut up; the same for every task."""

    root: str
    job: str
    id_parts: int
    """Partitions that ids are spread over by hash."""
    edge_count: int
    edge_range: int
    """Edges that are settled together; even, so that parts of arrays are whole words."""
    node_counts: Mapping[str, int]
    """By the end of the edges they are at."""
    node_ranges: Mapping[str, int]
    node_sections: Mapping[str, int]
    """Which ids are those of the nodes at an end: one table may be at both."""

    @property
    def scratch(self) -> Scratch:
        return Scratch(shared_store(self.root), self.job)

    @property
    def edge_parts(self) -> int:
        return _parts(self.edge_count, self.edge_range)

    def node_parts(self, end: str) -> int:
        return _parts(self.node_counts[end], self.node_ranges[end])


def _parts(count: int, each: int) -> int:
    return max(1, -(-count // each))


@dataclass(frozen=True, slots=True)
class Portion:
    """Some fragments of a table, the first of whose rows has this number."""

    place: TablePlace
    columns: Mapping[str, int]
    """Those with ids, and the section of each."""
    fragment_ids: tuple[int, ...]
    first: int


@dataclass(frozen=True, slots=True)
class Summed:
    """A part of an array of 32-bit numbers: where its bytes are, and what the file's sum needs."""

    name: str
    start: int
    length: int
    even: int
    """The sum of the numbers at even places."""
    odd: int
    last: int

    @classmethod
    def of(cls, array: np.ndarray, name: str, start: int) -> Summed:
        words = array.astype(np.int32, copy=False).view(np.uint32).astype(np.uint64)
        last = int(words[-1]) if len(words) else 0
        even, odd = (int(words[place::2].sum(dtype=np.uint64)) for place in (0, 1))
        return cls(name, start, len(words), even, odd, last)

    def read(self, scratch: Scratch) -> memoryview:
        return scratch.read(self.name, self.start, self.start + _NUMBER.itemsize * self.length)


@dataclass(frozen=True, slots=True)
class Settled:
    """The ends of a range of edges."""

    first: int
    """The number of the first edge."""
    ends: tuple[Summed, Summed]


@dataclass(frozen=True, slots=True)
class Arranged:
    """The neighbours of a range of nodes in one direction."""

    name: str
    node_count: int
    entry_count: int
    offset_sum: int
    """Of where the entries of each node begin, counted from the first of this part."""
    targets: Summed
    edges: Summed
    is_simple: bool


def emit_ids(plan: Plan, portion: Portion) -> Iterator[Blocks]:
    """The ids of some rows with the numbers of the rows, by hash."""
    names = tuple(portion.columns)
    batches = list(read_fragments(portion.place.open(), names, portion.fragment_ids))
    for place, section in enumerate(portion.columns.values()):
        ids = pa.chunked_array([batch.column(place) for batch in batches], pa.utf8())
        numbers = np.arange(portion.first, portion.first + len(ids), dtype=np.int32)
        rows = pa.table([ids, numbers], schema=_IDS)
        yield spread_rows(section, rows, partition_of(ids, plan.id_parts), plan.id_parts)


def partition_of(ids: pa.ChunkedArray, partitions: int) -> np.ndarray:
    """Where each id meets its equals."""
    hashes = np.concatenate([np.zeros(0, np.uint64), *map(hash_texts, ids.chunks)])
    return hashes % np.uint64(partitions)


def resolve(plan: Plan, _partition: int, received: Received) -> str | None:
    """Keep the numbers of the nodes at the ends of edges, -1 for none; None without edges."""
    tables = {}
    for end, section in ENDS.items():
        edges = received_rows(received, section, _IDS)
        nodes = received_rows(received, plan.node_sections[end], _IDS)
        places = pc.index_in(edges.column("id"), value_set=nodes.column("id").combine_chunks())
        found = nodes.column("number").take(places).fill_null(-1)
        tables[end] = pa.table([edges.column("number"), found], schema=_RESOLVED)
    has_edges = any(rows.num_rows for rows in tables.values())
    return plan.scratch.put_tables("resolved", tables) if has_edges else None


def emit_ends(plan: Plan, name: str) -> Iterator[Blocks]:
    """What was resolved, by range of edges."""
    tables = plan.scratch.read_tables(name)
    for end, section in ENDS.items():
        if end in tables:
            at = tables[end].column("edge").to_numpy() // plan.edge_range
            yield spread_rows(section, tables[end], at, plan.edge_parts)


def settle(plan: Plan, part: int, received: Received) -> Settled:
    """Keep the ends of a range of edges by their numbers."""
    first = part * plan.edge_range
    count = min(plan.edge_range, plan.edge_count - first)
    arrays = np.full((len(ENDS), count), -1, np.int32)
    for section, array in enumerate(arrays):
        rows = received_rows(received, section, _RESOLVED)
        array[rows.column("edge").to_numpy() - first] = rows.column("node").to_numpy()
    name = plan.scratch.put("ends-by-edge", arrays.tobytes())
    sources, targets = arrays
    return Settled(first, (Summed.of(sources, name, 0), Summed.of(targets, name, sources.nbytes)))


def emit_entries(plan: Plan, near: str, settled: Settled) -> Iterator[Blocks]:
    """Edges with both ends, by range of the nodes at one end."""
    sources, targets = (np.frombuffer(end.read(plan.scratch), _NUMBER) for end in settled.ends)
    numbers = np.arange(settled.first, settled.first + len(sources), dtype=np.int32)
    entries = entries_of(sources, targets, numbers)
    if near == TARGET:
        entries = entries.turned()
    rows = pa.table([entries.sources, entries.targets, entries.edges], schema=_ENTRIES)
    parts = plan.node_parts(near)
    yield spread_rows(_ENTRY, rows, entries.sources // plan.node_ranges[near], parts)
    if not settled.first:  # one task is enough to have all ranges arranged
        yield Blocks(_RANGE, np.arange(parts + 1), bytes(parts))


def arrange_range(plan: Plan, near: str, part: int, received: Received) -> Arranged:
    """Keep what a range of nodes is linked to by edges that they are at one end of."""
    first = part * plan.node_ranges[near]
    count = min(plan.node_ranges[near], plan.node_counts[near] - first)
    rows = received_rows(received, _ENTRY, _ENTRIES)
    sources, targets, edges = (column.to_numpy() for column in rows.columns)
    neighbours = arrange(Entries(sources - np.int32(first), targets, edges), count)
    offsets, targets, edges = neighbours.offsets[:-1], neighbours.targets, neighbours.edges
    pieces = (offsets.astype(np.int64), targets, edges)
    name = plan.scratch.put("neighbours", b"".join(piece.tobytes() for piece in pieces))
    begin = pieces[0].nbytes
    return Arranged(
        name=name,
        node_count=count,
        entry_count=len(targets),
        offset_sum=int(pieces[0].view(np.uint64).sum(dtype=np.uint64)),
        targets=Summed.of(targets, name, begin),
        edges=Summed.of(edges, name, begin + targets.nbytes),
        is_simple=neighbours.is_simple,
    )
