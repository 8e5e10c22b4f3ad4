"""Links of an edge type by many tasks: from ids to numbers, and from numbers to neighbours.

Five rounds, each of tasks that know a small part of the graph. What one leaves for the next is in
scratch objects, cut into ranges, so that every task reads its own range of each.

    number   some nodes:   their ids and numbers, by bucket of the id
    ends     some edges:   the ids of both ends and the edge's number, by bucket of the id
    resolve  one bucket:   the numbers of both ends, by range of edges
    settle   one range:    the ends of its edges; the edges themselves, by range of nodes
    arrange  one range:    what its nodes are linked to, in order
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.spark.ingest.buckets import bucket_of, put_keys, read_bucket
from omnigraph_core.storage.places import TablePlace, shared_store
from omnigraph_core.storage.row_space import read_fragments
from omnigraph_core.storage.scratch import Scratch
from omnigraph_core.topology.adjacency import Entries, arrange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from omnigraph_core.spark.ingest.buckets import Keys

SOURCE: Final = "src"
TARGET: Final = "dst"
ENDS: Final = (SOURCE, TARGET)
_NUMBERS: Final = pa.int32()


@dataclass(frozen=True, slots=True)
class Plan:
    """How the work on one edge type is cut up; the same for every task."""

    root: str
    job: str
    buckets: int
    edge_count: int
    edge_range: int
    """Edges that are settled together; even, so that parts of arrays are whole words."""
    node_counts: Mapping[str, int]
    """By the end of the edges they are at."""
    node_ranges: Mapping[str, int]

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

    plan: Plan
    place: TablePlace
    fragment_ids: tuple[int, ...]
    first: int


@dataclass(frozen=True, slots=True)
class Gathering:
    """One range of what the tasks of a round have left."""

    plan: Plan
    part: int
    left: tuple[Keys, ...]
    nodes: Mapping[str, tuple[Keys, ...]]
    """For `resolve`: the numbered nodes at each end."""


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


@dataclass(frozen=True, slots=True)
class Settled:
    """The ends of a range of edges, and the edges by range of nodes."""

    ends: tuple[Summed, Summed]
    entries: Keys


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


def number(portion: Portion) -> Keys:
    """The ids of some nodes with their numbers, by bucket."""
    plan = portion.plan
    ids = _columns(portion, ("id",))[0]
    rows = pa.table({"id": ids, "node": _numbers(portion.first, len(ids))})
    buckets = bucket_of(rows.column("id"), plan.buckets)
    return put_keys(plan.scratch, "nodes", {"nodes": (rows, buckets)}, plan.buckets)


def ends(portion: Portion) -> Keys:
    """The ids of both ends of some edges with the numbers of the edges, by bucket."""
    plan = portion.plan
    tables = {}
    for end, ids in zip(ENDS, _columns(portion, ENDS), strict=True):
        rows = pa.table({"id": ids, "edge": _numbers(portion.first, len(ids))})
        tables[end] = (rows, bucket_of(rows.column("id"), plan.buckets))
    return put_keys(plan.scratch, "ends", tables, plan.buckets)


def resolve(work: Gathering) -> Keys:
    """The numbers of the nodes with the ids of one bucket, by range of edges; -1 for none."""
    plan = work.plan
    wanted = read_bucket(plan.scratch, enumerate(work.left), work.part)
    tables = {}
    for end in ENDS:
        edges = _joined(wanted.get(end, ()), "edge")
        known = read_bucket(plan.scratch, enumerate(work.nodes[end]), work.part)
        nodes = _joined(known.get("nodes", ()), "node")
        places = pc.index_in(edges.column("id"), value_set=nodes.column("id").combine_chunks())
        found = nodes.column("node").take(places).fill_null(-1)
        rows = pa.table({"edge": edges.column("edge"), "node": found})
        ranges = edges.column("edge").to_numpy() // plan.edge_range
        tables[end] = (rows, ranges)
    return put_keys(plan.scratch, "resolved", tables, plan.edge_parts)


def settle(work: Gathering) -> Settled:
    """The ends of a range of edges by their numbers, and its edges by ranges of their nodes."""
    plan = work.plan
    first = work.part * plan.edge_range
    count = min(plan.edge_range, plan.edge_count - first)
    resolved = read_bucket(plan.scratch, enumerate(work.left), work.part)
    arrays = {end: np.full(count, -1, np.int32) for end in ENDS}
    for end in ENDS:
        for _, rows in resolved.get(end, ()):
            arrays[end][rows.column("edge").to_numpy() - first] = rows.column("node").to_numpy()
    name = plan.scratch.put("ends-by-edge", b"".join(arrays[end].tobytes() for end in ENDS))
    summed = tuple(
        Summed.of(arrays[end], name, place * count * _NUMBERS.bit_width // 8)
        for place, end in enumerate(ENDS)
    )
    is_whole = (arrays[SOURCE] | arrays[TARGET]) >= 0
    numbers = np.arange(first, first + count, dtype=np.int32)[is_whole]
    both = {end: arrays[end][is_whole] for end in ENDS}
    rows = pa.table({**both, "edge": numbers})
    entries = {end: (rows, both[end] // plan.node_ranges[end]) for end in ENDS}
    parts = max(plan.node_parts(end) for end in ENDS)
    keys = put_keys(plan.scratch, "entries", entries, parts)
    return Settled((summed[0], summed[1]), keys)


def arrange_out(work: Gathering) -> Arranged:
    """Where the edges of a range of sources lead to."""
    return _arranged(work, SOURCE, TARGET)


def arrange_in(work: Gathering) -> Arranged:
    """Where the edges of a range of targets come from."""
    return _arranged(work, TARGET, SOURCE)


def _arranged(work: Gathering, near: str, far: str) -> Arranged:
    plan = work.plan
    first = work.part * plan.node_ranges[near]
    count = min(plan.node_ranges[near], plan.node_counts[near] - first)
    left = read_bucket(plan.scratch, enumerate(work.left), work.part).get(near, ())
    found = {
        name: np.concatenate(
            [np.zeros(0, np.int32), *(rows.column(name).to_numpy() for _, rows in left)]
        )
        for name in (*ENDS, "edge")
    }
    entries = Entries(found[near] - np.int32(first), found[far], found["edge"])
    neighbours = arrange(entries, count)
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


def _columns(portion: Portion, names: tuple[str, ...]) -> list[pa.ChunkedArray]:
    batches = list(read_fragments(portion.place.open(), names, portion.fragment_ids))
    return [
        pa.chunked_array([batch.column(place) for batch in batches], pa.utf8())
        for place in range(len(names))
    ]


def _numbers(first: int, count: int) -> pa.Array:
    return pa.array(np.arange(first, first + count, dtype=np.int32))


def _joined(parts: Sequence[tuple[int, pa.Table]], number: str) -> pa.Table:
    nothing = pa.schema([("id", pa.utf8()), (number, _NUMBERS)]).empty_table()
    return pa.concat_tables([nothing, *(rows for _, rows in parts)]).combine_chunks()
