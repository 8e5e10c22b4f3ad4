"""Committed rows held in memory: what checks of a write look at, and what they asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.write.batches import FRESH, PLACE_FIELDS, Batch, batch_schema
from omnigraph_core.write.integrity import TableDelta, key_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.batches import GraphType

Row = dict[str, Any]


class MemoryView:
    """Stands for `CommittedView` over plain tables; `asked` has a line per lookup."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables
        self.asked: list[str] = []

    @property
    def read(self) -> frozenset[str]:
        return frozenset(line.split(".")[0] for line in self.asked)

    def rows(
        self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]
    ) -> pa.Table:
        self.asked.append(f"{table_key}.{column} in {len(values)}")
        table = self._tables[table_key]
        assert table.schema.field(column).type == values.type
        found = table.filter(pc.is_in(table.column(column), value_set=pc.drop_null(values)))
        return found.select(columns)

    def present(self, table_key: str, ids: pa.Array) -> pa.BooleanArray:
        if not len(ids):
            return pa.array([], pa.bool_())
        found = pc.is_in(ids, value_set=self.rows(table_key, "id", ids, ("id",)).column("id"))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def scan(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        self.asked.append(f"{table_key}.*")
        return self._tables[table_key].select(columns)

    def count(self, table_key: str) -> int:
        self.asked.append(f"{table_key}.count")
        return self._tables[table_key].num_rows


def graph_type(catalog: Catalog, name: str) -> GraphType:
    return catalog.nodes[name] if name in catalog.nodes else catalog.edges[name]


def stored_rows(type: GraphType, rows: Iterable[Row]) -> pa.Table:
    """Rows as a type's table stores them; what is not given is null."""
    return _table(table_schema(type), rows)


def memory_view(catalog: Catalog, rows: Mapping[str, Sequence[Row]] | None = None) -> MemoryView:
    """A view of rows by type name; types without rows have empty tables."""
    given = rows or {}
    types = [*catalog.nodes.values(), *catalog.edges.values()]
    return MemoryView({t.table_key: stored_rows(t, given.get(t.name, ())) for t in types})


def batch(type: GraphType, rows: Sequence[Row]) -> Batch:
    """Rows of a source, one per line."""
    placed = [{"#source": 0, "#line": line, **row} for line, row in enumerate(rows, start=1)]
    return Batch(type, _table(batch_schema(type), placed))


def delta(
    type: GraphType,
    rows: Sequence[Row] = (),
    *,
    deleted: Sequence[str] = (),
    claimed: Sequence[str] = (),
    chunk_rows: int | None = None,
    **modes: bool,
) -> TableDelta:
    """Key rows of a source, one per line; an id beginning with `new` is fresh."""
    placed = [
        {"#source": 0, "#line": line, FRESH: (row["id"] or "").startswith("new"), **row}
        for line, row in enumerate(rows, start=1)
    ]
    stored = table_schema(type)
    fields = [stored.field(name).with_nullable(True) for name in key_columns(type)]
    table = _table(pa.schema([*fields, *PLACE_FIELDS, pa.field(FRESH, pa.bool_())]), placed)
    if chunk_rows is not None:
        table = pa.Table.from_batches(table.to_batches(chunk_rows), table.schema)
    gone, refused = pa.array(deleted, pa.utf8()), pa.array(claimed, pa.utf8())
    return TableDelta(type, table, gone, claimed=refused, **modes)


def _table(schema: pa.Schema, rows: Iterable[Row]) -> pa.Table:
    listed = list(rows)
    columns = [pa.array([row.get(f.name) for row in listed], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)
