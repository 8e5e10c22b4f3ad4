"""What a mutation has done so far and nobody else can see: the next statement reads through it.

Rows are kept in memory, whole, one per id; those read from the table remember their address there.
A mutation either writes or deletes, so rows and deletions of a table never meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.write.batches import FRESH, LINE, SOURCE, batch_schema

if TYPE_CHECKING:
    from omnigraph_core.write.batches import GraphType

ASKS: Final = "#asks"
"""Working column: the mutation made the row or changed a text, so its vectors are asked for."""
DELETED_FIELDS: Final = (pa.field("id", pa.utf8()), pa.field(ADDRESS, pa.uint64()))


def pending_schema(type: GraphType) -> pa.Schema:
    """The columns of a batch, and what else is known of a row: its address, if it was read."""
    flags = (pa.field(FRESH, pa.bool_()), pa.field(ASKS, pa.bool_()))
    working = (*flags, pa.field(ADDRESS, pa.uint64()))
    return pa.schema([*batch_schema(type), *working])


class PendingRows:
    """The rows of one type that a mutation has made, the newest of each id."""

    def __init__(self, type: GraphType) -> None:
        self.type = type
        self.needs_set_rules = False
        """Whether rows were added, or changed in a way that rules about several rows see."""
        self._rows = pending_schema(type).empty_table()
        self._newer: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Put rows in, in place of those with the same ids.

        Working columns that are missing are taken to be unknown; a row without an id, which a rule
        will refuse, is in nobody's place.
        """
        schema = pending_schema(self.type)
        columns = [
            rows.column(field.name)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        self._newer.append(pa.Table.from_arrays(columns, schema=schema))

    @property
    def rows(self) -> pa.Table:
        if self._newer:
            self._rows = _newest(pa.concat_tables([self._rows, *self._newer]))
            self._newer = []
        return self._rows

    def shadows(self, committed: pa.Table) -> pa.Table:
        """Those of the committed rows that this mutation has not replaced."""
        if not committed.num_rows or not self.rows.num_rows:
            return committed
        replaced = pc.is_in(committed.column("id"), value_set=self.rows.column("id"))
        return committed.filter(pc.invert(replaced))


def committed_rows(type: GraphType, rows: pa.Table) -> pa.Table:
    """Rows of the table, with their addresses, as pending rows of no statement yet."""
    count = rows.num_rows
    working = {
        SOURCE: pa.array(np.zeros(count, np.int32)),
        LINE: pa.array(np.zeros(count, np.int64)),
        FRESH: pa.array(np.zeros(count, np.bool_)),
        ASKS: pa.array(np.zeros(count, np.bool_)),
    }
    schema = pending_schema(type)
    columns = [working[name] if name in working else rows.column(name) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


class MutationStaging:
    """Everything a mutation has done, by table key."""

    def __init__(self) -> None:
        self._pending: dict[str, PendingRows] = {}
        self._deleted: dict[str, tuple[GraphType, pa.Table]] = {}

    @property
    def pending(self) -> tuple[PendingRows, ...]:
        return tuple(self._pending.values())

    def rows_of(self, type: GraphType) -> PendingRows:
        """What is pending of a type; kept, so that rows can be added."""
        return self._pending.setdefault(type.table_key, PendingRows(type))

    @property
    def deletions(self) -> tuple[tuple[GraphType, pa.Table], ...]:
        """Types with the ids and addresses of the rows that go, where there are any."""
        return tuple(self._deleted.values())

    def delete(self, type: GraphType, found: pa.Table) -> None:
        """Have committed rows go, each once, given with their ids and addresses."""
        schema = pa.schema(DELETED_FIELDS)
        rows = pa.Table.from_arrays([found.column(name) for name in schema.names], schema=schema)
        if not rows.num_rows:
            return
        if type.table_key in self._deleted:
            rows = pa.concat_tables([self._deleted[type.table_key][1], rows])
        self._deleted[type.table_key] = (type, _each_once(rows))


def _newest(rows: pa.Table) -> pa.Table:
    """The last row of each id, in the order they were made; all rows without an id."""
    ids = rows.column("id").combine_chunks().dictionary_encode()
    codes = ids.indices.fill_null(-1).to_numpy()
    if len(ids.dictionary) + ids.null_count == len(codes):
        return rows
    last = np.empty(len(ids.dictionary), np.int64)
    last[codes[codes >= 0]] = np.flatnonzero(codes >= 0)  # of repeated places the last is kept
    kept = np.sort(np.concatenate([last, np.flatnonzero(codes < 0)]))
    return rows.take(pa.array(kept))


def _each_once(rows: pa.Table) -> pa.Table:
    addresses = rows.column(ADDRESS).to_numpy()
    _, first = np.unique(addresses, return_index=True)
    return rows if len(first) == len(addresses) else rows.take(pa.array(first))
