"""The target's rows as the checks of a merge look at them: in the columns of the merged schema.

Nothing is staged yet when rows are checked, so columns that will have other names, wider types or
values for what is missing are read as they will be. A table that the target lacks is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.version_rows import OwnRows
from omnigraph_core.write.view import CommittedView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType


class MergedView(CommittedView):
    """Looks things up in the target's tables by the keys and columns of the merged schema."""

    def __init__(
        self,
        open_view: Callable[[str], RowView | None],
        types: Mapping[str, GraphType],
    ) -> None:
        super().__init__(self._table_of)
        self._open_view = open_view
        self._types = types

    def rows(
        self,
        table_key: str,
        column: str,
        values: pa.Array | pa.ChunkedArray,
        columns: Sequence[str],
    ) -> pa.Table:
        view = self._view(table_key)
        if view is None:
            return self._nothing(table_key, columns)
        stored = view.stored(column)
        if stored.name is None or stored.fill is not None or _is_wider(view, column):
            return _found_by_scan(view, column, values, columns)
        found = find_rows(view.table, stored.name, values, (), has_addresses=True)
        return view.take(found.column(ADDRESS).combine_chunks(), columns)

    def scan(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        view = self._view(table_key)
        if view is None:
            return self._nothing(table_key, columns)
        portions = [rows.select(list(columns)) for rows in view.iter_own(all_rows(view), columns)]
        return pa.concat_tables([self._nothing(table_key, columns), *portions])

    def count(self, table_key: str) -> int:
        view = self._view(table_key)
        return 0 if view is None else view.table.count_rows()

    def _view(self, table_key: str) -> RowView | None:
        self._read.add(table_key)
        return self._open_view(table_key)

    def _nothing(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        schema = table_schema(self._types[table_key])
        return pa.schema([schema.field(name) for name in columns]).empty_table()

    def _table_of(self, table_key: str) -> Table:
        view = self._open_view(table_key)
        if view is None:
            raise InvariantBroken(f"the target has a table `{table_key}`")
        return view.table


def all_rows(view: RowView) -> OwnRows:
    """Every row of a view, as rows that nobody shares."""
    states = fragment_states(view.table)
    return OwnRows(
        tuple(state.id for state in states),
        np.zeros(0, np.uint64),
        sum(state.rows for state in states),
    )


def _is_wider(view: RowView, column: str) -> bool:
    stored = view.table.schema.field(view.stored(column).name).type
    return bool(stored != view.schema.field(column).type)


def _found_by_scan(
    view: RowView, column: str, values: pa.Array | pa.ChunkedArray, columns: Sequence[str]
) -> pa.Table:
    """Rows found by values that are not stored as they will be: all are looked at."""
    wanted = pc.drop_null(pc.unique(values))
    places = [
        rows.column(ADDRESS).filter(pc.is_in(rows.column(column), value_set=wanted))
        for rows in view.iter_own(all_rows(view), (column,))
    ]
    chunks = [chunk for place in places for chunk in place.chunks]
    return view.take(pa.chunked_array(chunks, pa.uint64()).combine_chunks(), columns)
