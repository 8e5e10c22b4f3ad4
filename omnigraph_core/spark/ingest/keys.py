"""What of rows goes to the buckets: key columns come in, rows named by what they are looked at for.

Every name begins with what it is: `id` of a table, `end` of an edge at a side, `unique` group of a
table. Rows of the input carry their number (`row`) and where they are in the files (`place`), those
of committed tables their address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.spark.ingest.buckets import bucket_of, bucket_of_tuples, without_nulls
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.write.batches import FRESH
from omnigraph_core.write.collect import NUMBER
from omnigraph_core.write.identity import canonical_texts
from omnigraph_core.write.tuples import comparable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.collect import Collected

Bucketed: TypeAlias = tuple[pa.Table, np.ndarray]

ROW: Final = "#row"
PLACE: Final = "#place"
OWN: Final = "#own"
"""The id of the edge whose end, or of the row whose tuple, stands beside; null if it is fresh."""
CLAIMED: Final = -1
"""The number of a record that could not be read whole: only its id counts."""
SIDES: Final = ("src", "dst")


def id_name(table_key: str) -> str:
    return f"id {table_key}"


def end_name(edge_key: str, side: str) -> str:
    return f"end {edge_key} {side}"


def unique_name(table_key: str, group: int) -> str:
    return f"unique {table_key} {group}"


def limits_sources(type: GraphType) -> bool:
    """Whether edges of a type are counted by source."""
    return isinstance(type, EdgeType) and (
        bool(type.cardinality.minimum) or type.cardinality.maximum is not None
    )


def needs_sources(type: GraphType) -> bool:
    """Whether it matters that a source loses an edge."""
    return isinstance(type, EdgeType) and bool(type.cardinality.minimum)


def keys_of_part(collected: Collected, count: int) -> dict[str, Bucketed]:
    """The keys of the rows that one part of the input has."""
    found: dict[str, Bucketed] = {}
    for key, type in collected.types.items():
        rows = collected.keys[key]
        rows = rows.append_column(PLACE, pa.array(np.arange(rows.num_rows)))
        known = rows.filter(pc.invert(rows.column(FRESH)))
        claimed = pa.chunked_array(collected.claimed.get(key, []), pa.utf8())
        found[id_name(key)] = _by_id(_ids(known, claimed, type), count)
        own = pc.if_else(rows.column(FRESH), pa.scalar(None, pa.utf8()), rows.column("id"))
        working = {ROW: rows.column(NUMBER), OWN: own}
        if isinstance(type, EdgeType):
            for side in SIDES:
                ends = pa.table({"id": rows.column(side), **working})
                found[end_name(key, side)] = _by_id(ends, count)
        found.update(_unique(key, type, rows, working, count))
    return found


def _ids(known: pa.Table, claimed: pa.ChunkedArray, type: GraphType) -> pa.Table:
    columns = {"id": known.column("id"), ROW: known.column(NUMBER), PLACE: known.column(PLACE)}
    if needs_sources(type):
        columns["src"] = known.column("src")
    table = pa.table(columns)
    if not len(claimed):
        return table
    none = pa.array(np.full(len(claimed), CLAIMED))
    return pa.concat_tables(
        [table, pa.table({"id": claimed, ROW: none, PLACE: none})], promote_options="default"
    )


def keys_of_table(
    rows: pa.Table, table_key: str, type: GraphType, wanted: Sequence[str], count: int
) -> dict[str, Bucketed]:
    """The wanted keys of committed rows, which have the columns of `columns_for` and addresses."""
    found: dict[str, Bucketed] = {}
    if id_name(table_key) in wanted:
        names = ["id", ADDRESS, *(["src"] if needs_sources(type) else [])]
        found[id_name(table_key)] = _by_id(rows.select(names), count)
    for side in SIDES:
        if end_name(table_key, side) in wanted:
            ends = {"id": rows.column(side), OWN: rows.column("id"), ADDRESS: rows.column(ADDRESS)}
            found[end_name(table_key, side)] = _by_id(pa.table(ends), count)
    tuples = dict(_unique(table_key, type, rows, {OWN: rows.column("id")}, count))
    return found | {name: value for name, value in tuples.items() if name in wanted}


def columns_for(table_key: str, type: GraphType, wanted: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table to read for its wanted keys."""
    columns = ["id"]
    if id_name(table_key) in wanted and needs_sources(type):
        columns.append("src")
    columns += [side for side in SIDES if end_name(table_key, side) in wanted]
    for number, group in enumerate(type.unique):
        if unique_name(table_key, number) in wanted:
            columns += group
    return tuple(dict.fromkeys(columns))


def _by_id(rows: pa.Table, count: int) -> Bucketed:
    rows = rows.combine_chunks()
    return rows, bucket_of(rows.column("id"), count)


def _unique(
    table_key: str,
    type: GraphType,
    rows: pa.Table,
    working: dict[str, pa.ChunkedArray],
    count: int,
) -> Iterator[tuple[str, Bucketed]]:
    for number, group in enumerate(type.unique):
        if not set(group) <= set(rows.column_names):
            continue
        values = {name: comparable(rows.column(name)) for name in group}
        # A tuple with a null in it equals nothing.
        whole = without_nulls(pa.table({**values, **working}), group).combine_chunks()
        texts = [_texts(whole.column(name)) for name in group]
        yield unique_name(table_key, number), (whole, bucket_of_tuples(texts, count))


def _texts(column: pa.ChunkedArray) -> pa.StringArray:
    plain = column.combine_chunks()
    chunk = plain if isinstance(plain, pa.Array) else plain.chunk(0)
    return canonical_texts(chunk)
