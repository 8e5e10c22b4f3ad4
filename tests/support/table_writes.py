"""Changes of single tables, composed as loads, mutations and schema changes compose them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.storage.lookup import ADDRESS, find_rows, find_where
from omnigraph_core.storage.rearrange import WantedColumn, rearrange
from omnigraph_core.storage.staged import stage_delete_addresses
from omnigraph_core.write.staging import stage_rows
from tests.support.parts import present

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph_core.storage.dataset import Table


def stage_upsert(table: Table, data: pa.Table) -> Table | None:
    """Replace the rows whose id is in the table and add the others; None when there are no rows."""
    staged = stage_rows(table, data, data.column("id").combine_chunks())
    return None if staged is None else staged[0]


def stage_delete_keys(
    table: Table, keys: pa.Array | pa.ChunkedArray, *, key: str = "id"
) -> Table | None:
    """Remove the rows with these keys; None when the table has none of them."""
    found = find_rows(table, key, keys, [], has_addresses=True)
    return stage_delete_addresses(table, found.column(ADDRESS))


def stage_delete_where(table: Table, predicate: str | pa.Expression) -> Table | None:
    """Remove the rows that satisfy a filter; None when there are none."""
    found = find_where(table, predicate, [], has_addresses=True)
    return stage_delete_addresses(table, found.column(ADDRESS))


def add_null_column(table: Table, field: pa.Field) -> Table:
    """Add a column that is null in every row."""
    return _rearranged(table, [*_columns(table), WantedColumn(field, None)])


def add_filled_column(table: Table, field: pa.Field, value: pa.Scalar) -> Table:
    """Add a column that has one value in every row."""
    return _rearranged(table, [*_columns(table), WantedColumn(field, None, value)])


def rename_column(table: Table, old: str, new: str) -> Table:
    """Rename a column; its values stay, its indexes are dropped."""
    wanted = [
        WantedColumn(item.field.with_name(new), old) if item.source == old else item
        for item in _columns(table)
    ]
    return _rearranged(table, wanted)


def drop_column(table: Table, name: str) -> Table:
    """Remove a column from the schema; its values stay in the data files."""
    return _rearranged(table, [item for item in _columns(table) if item.source != name])


def _columns(table: Table) -> list[WantedColumn]:
    return [WantedColumn(field, field.name) for field in table.schema]


def _rearranged(table: Table, wanted: list[WantedColumn]) -> Table:
    return present(rearrange(table, wanted))
