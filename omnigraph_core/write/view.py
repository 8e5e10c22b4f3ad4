"""The committed rows a write is checked against: tables of one snapshot, opened when looked at.

Remembers which tables were looked at, because the commit has to require that they did not move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.storage.lookup import find_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.storage.dataset import Table


class CommittedView:
    """Looks things up in the tables of one snapshot; keeps no rows."""

    def __init__(self, open_table: Callable[[str], Table]) -> None:
        self._open_table = open_table
        self._read: set[str] = set()

    def open(self, table_key: str) -> Table:
        """A table of the snapshot, which counts as looked at."""
        return self._table(table_key)

    @property
    def read(self) -> frozenset[str]:
        """The keys of the tables looked at so far."""
        return frozenset(self._read)

    def rows(
        self,
        table_key: str,
        column: str,
        values: pa.Array | pa.ChunkedArray,
        columns: Sequence[str],
    ) -> pa.Table:
        """These columns of the rows in which one column has one of the values."""
        return find_rows(self._table(table_key), column, values, columns)

    def present(self, table_key: str, ids: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        """For each id, whether it is committed. Without ids nothing is looked at."""
        if not len(ids):
            return pa.array([], pa.bool_())
        found = self.rows(table_key, "id", ids, ("id",)).column("id")
        present = pc.is_in(ids, value_set=found)
        return present.combine_chunks() if isinstance(present, pa.ChunkedArray) else present

    def scan(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """These columns of every row."""
        return self._table(table_key).read(columns)

    def count(self, table_key: str) -> int:
        """The number of rows: reads no data."""
        return self._table(table_key).count_rows()

    def _table(self, table_key: str) -> Table:
        self._read.add(table_key)
        return self._open_table(table_key)
