"""Committed rows with the values that a bucket asks for: from what was read of whole tables, or
looked up one by one where the load is small beside the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.spark.ingest.keys import OWN, end_name, id_name, unique_name
from omnigraph_core.storage.lookup import ADDRESS, find_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from omnigraph_core.storage.dataset import Table


class Committed(Protocol):
    """What is committed, as far as one bucket is concerned."""

    def with_ids(self, table_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows with these ids: `id`, the columns and the address."""

    def with_ends(self, edge_key: str, side: str, ids: pa.Array) -> pa.Table:
        """Edges with these ends: the end as `id`, the edge's own id and its address."""

    def with_tuples(
        self, table_key: str, number: int, group: Sequence[str], probe: str, values: pa.Array
    ) -> pa.Table:
        """Rows with these values in one column of a unique group: the group and the own id."""


class ReadWhole:
    """Rows of this bucket out of all rows of the tables."""

    def __init__(self, rows: Mapping[str, pa.Table]) -> None:
        self._rows = rows

    def with_ids(self, table_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        return self._where(id_name(table_key), "id", ids, ("id", *columns, ADDRESS))

    def with_ends(self, edge_key: str, side: str, ids: pa.Array) -> pa.Table:
        return self._where(end_name(edge_key, side), "id", ids, ("id", OWN, ADDRESS))

    def with_tuples(
        self, table_key: str, number: int, group: Sequence[str], probe: str, values: pa.Array
    ) -> pa.Table:
        return self._where(unique_name(table_key, number), probe, values, (*group, OWN))

    def _where(self, name: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        rows = self._rows.get(name)
        if rows is None:  # nothing is committed there
            return pa.table({column: pa.array([], pa.utf8()) for column in columns})
        found = rows.filter(pc.is_in(rows.column(column), value_set=values))
        return found.select(list(columns))


class LookedUp:
    """The same from the tables themselves, by their indexes."""

    def __init__(self, open_table: Callable[[str], Table]) -> None:
        self._open = open_table

    def with_ids(self, table_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        return self._find(table_key, "id", ids, ("id", *columns))

    def with_ends(self, edge_key: str, side: str, ids: pa.Array) -> pa.Table:
        found = self._find(edge_key, side, ids, (side, "id"))
        return found.rename_columns(["id", OWN, ADDRESS])

    def with_tuples(
        self, table_key: str, number: int, group: Sequence[str], probe: str, values: pa.Array
    ) -> pa.Table:
        found = self._find(table_key, probe, values, (*group, "id"))
        return found.select([*group, "id"]).rename_columns([*group, OWN])

    def _find(
        self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]
    ) -> pa.Table:
        table = self._open(table_key)
        return find_rows(table, column, values, tuple(dict.fromkeys(columns)), has_addresses=True)
