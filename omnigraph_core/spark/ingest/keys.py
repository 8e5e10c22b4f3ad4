"""What of rows goes through the shuffle: key columns come in, hashed keys by partition go out.

A section is named after what its keys are looked at for. Those of the input:

    id <table>          ids that somebody gave, of each row
    claimed <table>     ids of records that could not be read whole
    start <edges>       ids of edges and where they start, if sources need edges
    end <edges> <side>  each end once per part, with the number of its edges: a hub is one key
    owner <edges>       sources and ids of edges, if sources are counted
    loose <edges>       sources and how many edges count without a look at their ids
    unique <table> <n>  tuples of a unique group and the ids of their rows

Keys of committed rows have names that begin with `committed`. All bytes depend on the rows alone:
a task that is done again emits the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.blocks import Blocks
from omnigraph_core.spark.ingest.hashing import Hasher
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.portions import fragment_portions, read_fragments
from omnigraph_core.write.batches import FRESH
from omnigraph_core.write.collect import NUMBER
from omnigraph_core.write.identity import canonical_texts
from omnigraph_core.write.tuples import comparable, distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.spark.ingest.hashing import Hashes
    from omnigraph_core.spark.ingest.model import Job
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.collect import Collected

SIDES: Final = ("src", "dst")
PLACE: Final = "#place"
"""Where a row is in the files of its part."""

_HASH: Final = [("h1", "<u8"), ("h2", "<u8")]
_OTHER: Final = [("o1", "<u8"), ("o2", "<u8")]
HASH: Final = np.dtype(_HASH)
_ROW: Final = [("row", "<u4"), ("place", "<u4")]
_DTYPES: Final = {
    "id": np.dtype([*_HASH, *_ROW]),
    "claimed": HASH,
    "start": np.dtype([*_HASH, *_OTHER, ("row", "<u8")]),
    "end": np.dtype([*_HASH, ("count", "<u8")]),
    "owner": np.dtype([*_HASH, *_OTHER]),
    "loose": np.dtype([*_HASH, ("count", "<u8")]),
    "unique": np.dtype([*_HASH, *_OTHER, ("row", "<u8")]),
    "committed id": np.dtype([*_HASH, ("address", "<u8")]),
    "committed start": np.dtype([*_HASH, *_OTHER]),
    "committed end": np.dtype([*_HASH, *_OTHER, ("address", "<u8")]),
    "committed unique": np.dtype([*_HASH, *_OTHER]),
}
_TABLE_ROWS: Final = 4_000_000
"""Committed rows of a task: their keys fit well into memory."""


def id_name(table_key: str) -> str:
    return f"id {table_key}"


def claimed_name(table_key: str) -> str:
    return f"claimed {table_key}"


def start_name(edge_key: str) -> str:
    return f"start {edge_key}"


def end_name(edge_key: str, side: str) -> str:
    return f"end {edge_key} {side}"


def owner_name(edge_key: str) -> str:
    return f"owner {edge_key}"


def loose_name(edge_key: str) -> str:
    return f"loose {edge_key}"


def unique_name(table_key: str, group: int) -> str:
    return f"unique {table_key} {group}"


def committed(name: str) -> str:
    return f"committed {name}"


def section_names(catalog: Catalog) -> tuple[str, ...]:
    """All sections of a schema; the number of one is its place here."""
    names: list[str] = []
    types: list[GraphType] = [*catalog.nodes.values(), *catalog.edges.values()]
    for type in types:
        key = type.table_key
        names += [id_name(key), claimed_name(key)]
        names += [unique_name(key, number) for number in range(len(type.unique))]
        if isinstance(type, EdgeType):
            names += [start_name(key), owner_name(key), loose_name(key)]
            names += [end_name(key, side) for side in SIDES]
    return (*names, *map(committed, names))


def dtype_of(name: str) -> np.dtype[Any]:
    """How keys of a section lie in its blocks."""
    words = name.split(" ")
    return _DTYPES[" ".join(words[: 2 if words[0] == "committed" else 1])]


def limits_sources(type: GraphType) -> bool:
    """Whether edges of a type are counted by source."""
    return isinstance(type, EdgeType) and (
        bool(type.cardinality.minimum) or type.cardinality.maximum is not None
    )


def needs_sources(type: GraphType) -> bool:
    """Whether it matters that a source loses an edge."""
    return isinstance(type, EdgeType) and bool(type.cardinality.minimum)


def key_tables(collected: Collected) -> dict[str, pa.Table]:
    """The key columns of a part of the input, to be kept beside the graph."""
    tables = {}
    for key, rows in collected.keys.items():
        tables[key] = rows.append_column(PLACE, pa.array(np.arange(rows.num_rows)))
    for key, chunks in collected.claimed.items():
        tables[claimed_name(key)] = pa.table({"id": pa.chunked_array(chunks, pa.utf8())})
    return tables


@dataclass(frozen=True, slots=True)
class PartKeys:
    """The keys of a part of the input."""

    part: int
    name: str
    """Of the object that has them."""
    left_out: Mapping[str, np.ndarray]
    """By table key the numbers of rows that the load goes on without."""

    def read(self, job: Job) -> dict[str, pa.Table]:
        """The key columns by table key, and ids of records that could not be read whole."""
        tables = job.scratch.read_tables(self.name)
        for key, numbers in self.left_out.items():
            if key in tables:
                rows = tables[key]
                is_out = pc.is_in(rows.column(NUMBER), value_set=pa.array(numbers, pa.int64()))
                tables[key] = rows.filter(pc.invert(is_out))
        return tables


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The wanted keys of some fragments of a committed table."""

    table_key: str
    fragments: tuple[int, ...]
    wanted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Emission:
    """What all tasks that emit keys work by."""

    job: Job
    partitions: int
    versions: Mapping[str, tuple[str, int]]
    """The committed tables: location and physical version."""
    looked_up: Mapping[str, tuple[str, ...]]
    """By table key the keys of committed rows that every part asks for by value."""
    chosen: tuple[str, ...]
    """The keys of the tables whose rows are looked at."""
    ends: frozenset[str]
    """Those of the tables of nodes that such rows may end at."""

    def blocks(self, task: PartKeys | TableKeys) -> Iterator[Blocks]:
        """The keys of a task, for all partitions."""
        numbers = {name: at for at, name in enumerate(section_names(self.job.catalog))}
        emitted = _table_keys(self, task) if isinstance(task, TableKeys) else _part_keys(self, task)
        for name, keys in emitted:
            if len(keys):
                yield _blocks(numbers[name], keys, self.partitions)

    def open(self, table_key: str) -> Table:
        return self.job.open_at(*self.versions[table_key])


def table_tasks(table_key: str, table: Table, wanted: Sequence[str]) -> Iterator[TableKeys]:
    """A committed table in portions of a good size."""
    for fragments in fragment_portions(table, _TABLE_ROWS):
        yield TableKeys(table_key, fragments, tuple(wanted))


def _blocks(section: int, keys: np.ndarray, partitions: int) -> Blocks:
    """Keys by hash; a partition has those of a range of hashes."""
    ordered = keys[np.argsort(keys["h1"], kind="stable")]
    firsts = np.array([at * 2**64 // partitions for at in range(1, partitions)], np.uint64)
    ends = np.concatenate([[0], np.searchsorted(ordered["h1"], firsts), [len(ordered)]])
    return Blocks(section, ends.astype(np.int64) * ordered.itemsize, ordered.view(np.uint8))


# The input


def _part_keys(emission: Emission, task: PartKeys) -> Iterator[tuple[str, np.ndarray]]:
    job, hasher = emission.job, Hasher(emission.job.seed)
    given: dict[str, pa.Table] = {}
    for key, rows in task.read(job).items():
        is_chosen = key.removeprefix("claimed ") in emission.chosen
        if not is_chosen and key.removeprefix("claimed ") not in emission.ends:
            continue
        if key.startswith("claimed "):
            yield key, _keys(key, hasher.texts(rows.column("id")))
            continue
        given |= {key: rows} if is_chosen else {}
        yield from _given_keys(hasher, key, graph_type(job, key), rows, is_chosen=is_chosen)
    for key, names in emission.looked_up.items():
        yield from _found_keys(emission, hasher, key, names, given)


def _given_keys(
    hasher: Hasher, key: str, type: GraphType, rows: pa.Table, *, is_chosen: bool = True
) -> Iterator[tuple[str, np.ndarray]]:
    """The keys of rows; of those that are not looked at themselves, the ids."""
    is_known = pc.invert(rows.column(FRESH)).to_numpy()
    known = rows.filter(pa.array(is_known))
    ids = hasher.texts(known.column("id"))
    numbers = {"row": known.column(NUMBER), "place": known.column(PLACE)}
    yield id_name(key), _keys(id_name(key), ids, **numbers)
    if not is_chosen:
        return
    own = _spread(ids, is_known)
    if isinstance(type, EdgeType):
        ends = {side: _without_nulls(rows, [side]) for side in SIDES}
        for side, there in ends.items():
            hashes = hasher.texts(there.column(side))
            yield end_name(key, side), _combined(end_name(key, side), hashes)
        if needs_sources(type):
            starts = _without_nulls(known, ["src"])
            there, at = hasher.texts(starts.column("src")), hasher.texts(starts.column("id"))
            yield start_name(key), _keys(start_name(key), at, there, row=starts.column(NUMBER))
        if limits_sources(type):
            yield from _counted(hasher, key, type, rows, own)
    for number, group in enumerate(type.unique):
        name = unique_name(key, number)
        hashes, kept = _tuples(hasher, rows, group)
        others = own[0][kept], own[1][kept]
        yield name, _keys(name, hashes, others, row=rows.column(NUMBER).to_numpy()[kept])


def _counted(
    hasher: Hasher, key: str, edge: EdgeType, rows: pa.Table, own: Hashes
) -> Iterator[tuple[str, np.ndarray]]:
    """How many edges sources have; the ids of edges where they may matter.

    A source with more edges than any limit in this part alone is decided by their number.
    """
    valid = rows.column("src").is_valid().to_numpy()
    s1, s2 = hasher.texts(rows.column("src").filter(pa.array(valid)))
    o1, o2 = own[0][valid], own[1][valid]
    order = np.lexsort((o2, o1, s2, s1))
    s1, s2, o1, o2 = s1[order], s2[order], o1[order], o2[order]
    is_fresh = (o1 == 0) & (o2 == 0)
    is_next = _differs(s1, s2)
    # An edge that is given twice is one edge.
    is_counted = is_next | _differs(o1, o2) | is_fresh
    source = np.cumsum(is_next) - 1
    limits = edge.cardinality
    most = max(limits.minimum, limits.maximum or 0)
    is_many = np.bincount(source[is_counted]) > most if len(source) else np.zeros(0, np.bool_)
    is_loose = is_counted & (is_fresh | is_many[source])
    owned = is_counted & ~is_loose
    yield owner_name(key), _keys(owner_name(key), (s1[owned], s2[owned]), (o1[owned], o2[owned]))
    starts = np.flatnonzero(is_next)
    count = np.bincount(source[is_loose], minlength=len(starts))
    has = count > 0
    sources = s1[starts][has], s2[starts][has]
    yield loose_name(key), _keys(loose_name(key), sources, count=count[has])


def _combined(name: str, hashes: Hashes) -> np.ndarray:
    """Each hash once, with the number of its rows."""
    order = np.argsort(hashes[0], kind="stable")
    h1, h2 = hashes[0][order], hashes[1][order]
    starts = np.flatnonzero(_differs(h1, h2))
    counts = np.diff(starts, append=len(order))
    return _keys(name, (h1[starts], h2[starts]), count=counts)


def _differs(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Where values differ from those before them."""
    differs = np.ones(len(one), np.bool_)
    differs[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    return differs


def _spread(hashes: Hashes, is_known: np.ndarray) -> Hashes:
    """Hashes of known ids among all rows; zeros for the others, whose ids nobody has yet."""
    found = []
    for given in hashes:
        spread = np.zeros(len(is_known), np.uint64)
        spread[is_known] = given
        found.append(spread)
    return found[0], found[1]


def _tuples(hasher: Hasher, rows: pa.Table, group: Sequence[str]) -> tuple[Hashes, np.ndarray]:
    """Hashes of tuples, and which rows have one: a tuple with a null in it equals nothing."""
    columns = [comparable(rows.column(name)) for name in group]
    kept = np.ones(rows.num_rows, np.bool_)
    for column in columns:
        kept &= column.is_valid().to_numpy()
    texts = [_texts(column.filter(pa.array(kept))) for column in columns]
    return hasher.tuples(texts), kept


def _texts(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    chunks = [canonical_texts(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.utf8())


def _without_nulls(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        if rows.column(name).null_count:
            rows = rows.filter(pc.is_valid(rows.column(name)))
    return rows


def _keys(
    name: str,
    hashes: Hashes,
    others: Hashes | None = None,
    **columns: np.ndarray | pa.ChunkedArray,
) -> np.ndarray:
    keys = np.zeros(len(hashes[0]), dtype_of(name))
    keys["h1"], keys["h2"] = hashes
    if others is not None:
        keys["o1"], keys["o2"] = others
    for column, values in columns.items():
        keys[column] = values
    return keys


# Committed rows


def _table_keys(emission: Emission, task: TableKeys) -> Iterator[tuple[str, np.ndarray]]:
    key, hasher = task.table_key, Hasher(emission.job.seed)
    type = graph_type(emission.job, key)
    columns = _columns_for(key, type, task.wanted)
    rows = read_fragments(emission.open(key), task.fragments, columns, has_addresses=True)
    yield from _committed_keys(hasher, key, type, task.wanted, rows)


def _columns_for(table_key: str, type: GraphType, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table to read for its wanted keys."""
    columns = ["id"]
    if id_name(table_key) in wanted and needs_sources(type):
        columns.append("src")
    columns += [side for side in SIDES if end_name(table_key, side) in wanted]
    for number, group in enumerate(type.unique):
        if unique_name(table_key, number) in wanted:
            columns += group
    return tuple(dict.fromkeys(columns))


def _committed_keys(
    hasher: Hasher, key: str, type: GraphType, wanted: Sequence[str], rows: pa.Table
) -> Iterator[tuple[str, np.ndarray]]:
    """The wanted keys of rows that have the columns for them, and addresses."""
    ids = hasher.texts(rows.column("id"))
    addresses = rows.column(ADDRESS)
    if id_name(key) in wanted:
        name = committed(id_name(key))
        yield name, _keys(name, ids, address=addresses)
        if needs_sources(type):
            name = committed(start_name(key))
            yield name, _keys(name, ids, hasher.texts(rows.column("src")))
    for side in SIDES:
        if end_name(key, side) in wanted:
            name = committed(end_name(key, side))
            ends = hasher.texts(rows.column(side))
            yield name, _keys(name, ends, ids, address=addresses)
    for number, group in enumerate(type.unique):
        if unique_name(key, number) in wanted:
            name = committed(unique_name(key, number))
            hashes, kept = _tuples(hasher, rows, group)
            yield name, _keys(name, hashes, (ids[0][kept], ids[1][kept]))


def _found_keys(
    emission: Emission,
    hasher: Hasher,
    key: str,
    wanted: Sequence[str],
    given: Mapping[str, pa.Table],
) -> Iterator[tuple[str, np.ndarray]]:
    """The wanted keys of committed rows that share a value with the rows of a part.

    Several parts may find one row: the inspection of a partition counts it once.
    """
    table, type = emission.open(key), graph_type(emission.job, key)
    for name in wanted:
        for column, values in _sought(emission.job, key, type, name, given):
            columns = _columns_for(key, type, (name,))
            rows = find_rows(table, column, values, columns, has_addresses=True)
            yield from _committed_keys(hasher, key, type, (name,), rows)


def _sought(
    job: Job, key: str, type: GraphType, name: str, given: Mapping[str, pa.Table]
) -> Iterator[tuple[str, pa.Array]]:
    """The column and the values by which committed rows are looked up for a section."""
    rows = given.get(key)
    if name == id_name(key):
        chunks = [] if rows is None else rows.filter(pc.invert(rows.column(FRESH)))["id"].chunks
        for edge in job.catalog.edges.values():
            for side, node in (("src", edge.source), ("dst", edge.target)):
                edges = given.get(edge.table_key)
                if edges is not None and job.catalog.nodes[node].table_key == key:
                    chunks = [*chunks, *edges.column(side).chunks]
        found = [("id", distinct(pa.chunked_array(chunks, pa.utf8())))]
    elif rows is None:
        found = []
    elif name == end_name(key, "src"):
        found = [("src", distinct(rows.column("src")))]
    else:
        group = next(g for n, g in enumerate(type.unique) if name == unique_name(key, n))
        columns = [(one, distinct(comparable(rows.column(one)))) for one in group]
        found = [max(columns, key=lambda one: len(one[1]))]
    yield from ((column, values) for column, values in found if len(values))


def graph_type(job: Job, table_key: str) -> GraphType:
    kind, _, name = table_key.partition(":")
    return job.catalog.nodes[name] if kind == "node" else job.catalog.edges[name]
