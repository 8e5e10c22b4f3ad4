"""One bucket: which rows of the input may break a rule about several rows, and which committed rows
they replace.

All rows that share a value are in one bucket. Whoever is suspected here is looked at again by the
checks of every write, so a suspicion may be wrong; what is not suspected keeps every rule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EdgeType, NodeType
from omnigraph_core.spark.ingest.buckets import read_bucket
from omnigraph_core.spark.ingest.committed import LookedUp, ReadWhole
from omnigraph_core.spark.ingest.keys import (
    CLAIMED,
    OWN,
    PLACE,
    ROW,
    end_name,
    id_name,
    limits_sources,
    needs_sources,
    unique_name,
)
from omnigraph_core.spark.ingest.orphans import Orphans, find_orphans
from omnigraph_core.spark.ingest.read_table import graph_type
from omnigraph_core.spark.ingest.removed import Removed, put_removed
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.violations import Rule
from omnigraph_core.write.load_model import LoadMode
from omnigraph_core.write.tuples import TupleCodes, comparable, distinct, first_rows, positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.spark.ingest.committed import Committed
    from omnigraph_core.spark.ingest.model import Job, Keys
    from omnigraph_core.write.batches import GraphType

PART: Final = "#part"


@dataclass(frozen=True, slots=True)
class Bucket:
    """What one task looks at."""

    number: int
    given: tuple[tuple[int, Keys], ...]
    """The keys of the input, by part."""
    committed: tuple[Keys, ...]
    """The keys of whole tables."""
    versions: Mapping[str, tuple[str, int]]
    """The tables as they are now: location and physical version."""
    types: tuple[str, ...]
    """The keys of the tables the input has rows for."""
    left_out: Mapping[str, Mapping[int, frozenset[int]]]
    """Rows that the load goes on without: by table key and part, their numbers."""
    is_looked_up: bool


@dataclass(slots=True)
class Inspected:
    """What was found in a bucket; rows are `(part, row, place)`."""

    suspects: dict[tuple[str, Rule], list[pa.Table]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By table key and the rule that may be broken."""
    replaced: dict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))
    """Rows that a later row of the same id replaces."""
    removed: dict[str, Removed] = field(default_factory=dict)
    """Committed rows that the input replaces."""
    lost_sources: dict[str, pa.Array] = field(default_factory=dict)
    """By edge table, sources that need edges and have none in the input."""
    orphans: tuple[Orphans, ...] = ()


def inspect_bucket(job: Job, bucket: Bucket) -> Inspected:
    """Look at a bucket."""
    return _Inspection(job, bucket).run()


class _Inspection:
    def __init__(self, job: Job, bucket: Bucket) -> None:
        self._job = job
        self._bucket = bucket
        self._types = {key: graph_type(job, key) for key in bucket.types}
        self._given = _Given(job, bucket)
        self._whole = _whole_tables(job, bucket)
        self._committed: Committed = ReadWhole(self._whole)
        if bucket.is_looked_up:
            self._committed = LookedUp(lambda key: job.open_at(*bucket.versions[key]))
        self._found = Inspected()
        self._addresses: dict[str, pa.ChunkedArray] = {}

    def run(self) -> Inspected:
        for key, type in self._types.items():
            self._look_at_ids(key, type)
            if isinstance(type, EdgeType):
                self._look_at_ends(key, type)
            if limits_sources(type):
                self._look_at_sources(key, type)
            for number, group in enumerate(type.unique):
                self._look_at_tuples(key, number, group)
        if self._is_overwrite:
            self._found.orphans = tuple(self._orphans())
        self._found.removed = put_removed(self._job.scratch, self._addresses)
        return self._found

    @property
    def _is_overwrite(self) -> bool:
        return self._job.mode is LoadMode.OVERWRITE

    def _suspect(self, key: str, rule: Rule, rows: pa.Table, mask: np.ndarray) -> None:
        if mask.any():
            chosen = rows.filter(pa.array(mask)).select([PART, ROW])
            self._found.suspects[key, rule].append(chosen)

    def _look_at_ids(self, key: str, type: GraphType) -> None:
        rows = self._given.ids(key)
        rows = rows.filter(pc.not_equal(rows.column(ROW), CLAIMED))
        if not rows.num_rows:
            return
        codes = TupleCodes([rows.column("id")])
        is_repeated = np.bincount(codes.codes, minlength=codes.count)[codes.codes] > 1
        has_key = isinstance(type, NodeType) and type.key is not None
        if self._job.mode is LoadMode.MERGE and not has_key:
            rows = self._without_replaced(key, rows, codes.codes, is_repeated)
        else:
            self._suspect(key, Rule.KEY, rows, is_repeated)
        if self._is_overwrite:
            return
        columns = ("src",) if needs_sources(type) else ()
        there = self._committed.with_ids(key, distinct(rows.column("id")), columns)
        if not there.num_rows:
            return
        if self._job.mode is LoadMode.APPEND:
            taken = _is_in(rows.column("id"), there.column("id"))
            self._suspect(key, Rule.KEY, rows, taken)
            return
        self._addresses[key] = there.column(ADDRESS)
        if columns:
            self._suspect(key, Rule.CARDINALITY, rows, _has_moved(rows, there))

    def _without_replaced(
        self, key: str, rows: pa.Table, codes: np.ndarray, is_repeated: np.ndarray
    ) -> pa.Table:
        """Of rows with one id the last one of the input counts."""
        if not is_repeated.any():
            return rows
        order = np.lexsort((rows.column(ROW).to_numpy(), rows.column(PART).to_numpy()))
        last = np.full(int(codes.max()) + 1, -1)
        last[codes[order]] = order  # of several, the last one assigned stays
        is_last = last[codes] == np.arange(len(codes))
        self._found.replaced[key].append(rows.filter(pa.array(~is_last)).select([PART, ROW, PLACE]))
        return rows.filter(pa.array(is_last))

    def _look_at_ends(self, key: str, edge: EdgeType) -> None:
        for side, node in (("src", edge.source), ("dst", edge.target)):
            rows = self._given.ends(key, side)
            if not rows.num_rows:
                continue
            node_key = self._job.catalog.nodes[node].table_key
            has_node = np.zeros(rows.num_rows, dtype=bool)
            if node_key in self._types:
                has_node = _is_in(rows.column("id"), self._given.ids(node_key).column("id"))
            if not (self._is_overwrite and node_key in self._types) and not has_node.all():
                sought = distinct(rows.column("id").filter(pa.array(~has_node)))
                there = self._committed.with_ids(node_key, sought, ()).column("id")
                has_node |= _is_in(rows.column("id"), there)
            self._suspect(key, Rule.ENDPOINT, rows, ~has_node)

    def _look_at_sources(self, key: str, edge: GraphType) -> None:
        assert isinstance(edge, EdgeType)  # only edges have sources
        rows = self._given.ends(key, "src")
        if self._is_overwrite and edge.cardinality.minimum:
            self._note_lost_sources(key, edge, rows)
        if not rows.num_rows:
            return
        sources = distinct(rows.column("id"))
        source_of = positions(rows.column("id"), sources)
        total = np.bincount(source_of, minlength=len(sources))
        if not self._is_overwrite:
            there = self._committed.with_ends(key, "src", sources)
            if there.num_rows:
                stays = ~_is_in(there.column(OWN), rows.column(OWN))
                kept = positions(there.column("id").filter(pa.array(stays)), sources)
                total = total + np.bincount(kept, minlength=len(sources))
        limits = edge.cardinality
        wrong = total < limits.minimum
        if limits.maximum is not None:
            wrong |= total > limits.maximum
        self._suspect(key, Rule.CARDINALITY, rows, wrong[source_of])

    def _note_lost_sources(self, key: str, edge: EdgeType, rows: pa.Table) -> None:
        there = self._whole.get(end_name(key, "src"))
        if there is None:
            return
        lost = there.column("id").filter(pa.array(~_is_in(there.column("id"), rows.column("id"))))
        node_key = self._job.catalog.nodes[edge.source].table_key
        if node_key in self._types:
            stays = _is_in(lost, self._given.ids(node_key).column("id"))
            lost = lost.filter(pa.array(stays))
        if len(lost):
            self._found.lost_sources[key] = pc.unique(lost)

    def _look_at_tuples(self, key: str, number: int, group: Sequence[str]) -> None:
        rows = self._given.tuples(key, number)
        if not rows.num_rows:
            return
        columns = [rows.column(name) for name in group]
        tuples = TupleCodes(columns)
        is_wrong = np.bincount(tuples.codes, minlength=tuples.count)[tuples.codes] > 1
        if not self._is_overwrite:
            probe = max(range(len(group)), key=lambda place: len(tuples.values[place]))
            there = self._committed.with_tuples(
                key, number, group, group[probe], tuples.values[probe]
            )
            if there.num_rows:
                is_wrong |= _is_held(rows, tuples, columns, there, group)
        self._suspect(key, Rule.UNIQUE, rows, is_wrong)

    def _orphans(self) -> Iterator[Orphans]:
        for key, type in self._types.items():
            if isinstance(type, NodeType):
                yield from find_orphans(
                    self._job, type, set(self._types), self._given.ids(key), self._whole
                )


class _Given:
    """The rows of the input in a bucket, without those that are left out."""

    def __init__(self, job: Job, bucket: Bucket) -> None:
        self._rows = read_bucket(job.scratch, bucket.given, bucket.number)
        self._left_out = bucket.left_out

    def ids(self, table_key: str) -> pa.Table:
        return self._all(id_name(table_key), table_key, ("id", ROW, PLACE))

    def ends(self, edge_key: str, side: str) -> pa.Table:
        return self._all(end_name(edge_key, side), edge_key, ("id", ROW, OWN))

    def tuples(self, table_key: str, number: int) -> pa.Table:
        return self._all(unique_name(table_key, number), table_key, (ROW, OWN))

    def _all(self, name: str, table_key: str, columns: Sequence[str]) -> pa.Table:
        parts = self._rows.get(name, ())
        left_out = self._left_out.get(table_key, {})
        tables = [_in_part(rows, part, left_out.get(part)) for part, rows in parts]
        if not tables:
            kinds = {ROW: pa.int64(), PLACE: pa.int64()}
            empty = {column: pa.array([], kinds.get(column, pa.utf8())) for column in columns}
            return pa.table({**empty, PART: pa.array([], pa.int32())})
        return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _in_part(rows: pa.Table, part: int, left_out: frozenset[int] | None) -> pa.Table:
    if left_out:
        is_out = pc.is_in(rows.column(ROW), value_set=pa.array(sorted(left_out), pa.int64()))
        rows = rows.filter(pc.invert(is_out))
    return rows.append_column(PART, pa.array(np.full(rows.num_rows, part, np.int32)))


def _whole_tables(job: Job, bucket: Bucket) -> dict[str, pa.Table]:
    read = read_bucket(job.scratch, enumerate(bucket.committed), bucket.number)
    return {name: pa.concat_tables([rows for _, rows in parts]) for name, parts in read.items()}


def _is_in(values: pa.ChunkedArray | pa.Array, among: pa.ChunkedArray | pa.Array) -> np.ndarray:
    if not len(among):
        return np.zeros(len(values), dtype=bool)
    found = pc.is_in(values, value_set=among, skip_nulls=True)
    return np.asarray(found)


def _has_moved(rows: pa.Table, there: pa.Table) -> np.ndarray:
    """Which edges start elsewhere than the committed ones of their ids."""
    at = positions(rows.column("id"), there.column("id").combine_chunks())
    before = there.column("src").take(pa.array(np.maximum(at, 0)))
    differs = pc.not_equal(rows.column("src"), before).to_numpy()
    moved: np.ndarray = (at >= 0) & differs
    return moved


def _is_held(
    rows: pa.Table,
    tuples: TupleCodes,
    columns: Sequence[pa.ChunkedArray],
    there: pa.Table,
    group: Sequence[str],
) -> np.ndarray:
    """Which rows want a tuple that a committed row of another id has."""
    same = zip(group, columns, strict=True)
    committed = [comparable(there.column(name).cast(column.type)) for name, column in same]
    held = first_rows(tuples.codes_of(committed), tuples.count)
    holder = held[tuples.codes]
    owners = there.column(OWN).take(pa.array(np.maximum(holder, 0)))
    is_own = pc.fill_null(pc.equal(rows.column(OWN), owners), fill_value=False).to_numpy()
    is_held: np.ndarray = (holder >= 0) & ~is_own
    return is_held
