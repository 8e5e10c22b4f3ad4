"""The target's rows that those of a source can break rules with: changes come in, rows go out.

Each side keeps the rules by itself. A row that the target has left alone is in the source as well,
unless that has changed it: so what the source brings can clash only with rows that the target has
written, and miss only nodes that it has deleted. This holds where both sides have the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.merge.view import MergedView
from omnigraph_core.schema.catalog import EdgeType
from omnigraph_core.storage.sparse import spread
from omnigraph_core.write.delta import key_columns
from omnigraph_core.write.tuples import comparable, without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from omnigraph_core.compare.touched import TouchedRows
    from omnigraph_core.compare.view import RowView
    from omnigraph_core.write.batches import GraphType
    from omnigraph_core.write.delta import TableDelta

MOST_MET: Final = 65_536
"""Rows that the target has touched, up to which they are read rather than the whole looked up."""


@dataclass(frozen=True)
class OurRows:
    """What the target did to a table since the base."""

    type: GraphType
    touched: TouchedRows | None
    """None: nothing."""
    keep_ids: Callable[[int], bool] = lambda _: False
    """Whether it is known to have deleted nothing; takes the requests that this would save."""
    refused: pa.StringArray = field(default_factory=lambda: pa.array([], pa.utf8()))
    """Ids of the source's rows that the target has not and does not get."""

    @cached_property
    def written(self) -> pa.Table | None:
        """The rows it has written, in key columns; None if there are none."""
        if self.touched is None or not self.touched.written.count:
            return None
        return self.touched.columns(key_columns(self.type))

    @cached_property
    def cost(self) -> int:
        """Requests, about, that it takes to find out which rows were deleted; 0 if none was."""
        cost = 0 if self.touched is None else spread(self.touched.gone_places)
        return 0 if self.keep_ids(cost) else cost

    def has(self, ids: pa.Array) -> pa.BooleanArray:
        """For ids that the source has, whether the target has them, or gets them."""
        is_gone = pc.is_in(ids, value_set=self.refused)
        touched = self.touched
        if touched is not None and self.cost and len(without(ids, touched.ids)):
            is_gone = pc.or_(is_gone, pc.is_in(ids, value_set=touched.deleted_ids))
        return pc.invert(is_gone)


class MeetingView(MergedView):
    """The target as a source meets it: rows that it has touched, and what is looked up in whole."""

    def __init__(
        self,
        open_view: Callable[[str], RowView | None],
        types: Mapping[str, GraphType],
        our_rows: Callable[[str], OurRows | None],
    ) -> None:
        """
        Args:
            our_rows: by table key; None where the whole table is to be looked at.
        """
        super().__init__(open_view, types)
        self._our_rows = our_rows
        self._sought: dict[tuple[str, str], pa.Array] = {}

    def prepare(self, table_key: str, delta: TableDelta, mixed: int) -> None:
        """Say what is brought to a table, before anything is looked up for it.

        Args:
            mixed: how many of its rows, the last ones, have values of both sides.
        """
        type, rows = delta.type, delta.rows
        for column in {column for group in type.unique for column in group} if mixed else ():
            # Values that nobody has had together may be anybody's.
            self._seek(table_key, column, rows.column(column).slice(rows.num_rows - mixed))
        if isinstance(type, EdgeType) and type.cardinality.maximum is not None:
            ours = self._our_rows(table_key)
            written = None if ours is None else ours.written
            if written is not None:
                # Where both have put edges, all of them count.
                both = pc.is_in(rows.column("src"), value_set=written.column("src"))
                self._seek(table_key, "src", rows.column("src").filter(both))

    def _seek(self, table_key: str, column: str, values: pa.ChunkedArray) -> None:
        known = self._sought.get((table_key, column), pa.array([], values.type))
        chunks = [known, *comparable(values).chunks]
        together = pa.chunked_array(chunks, values.type)
        self._sought[table_key, column] = pc.drop_null(pc.unique(together))

    def rows(
        self,
        table_key: str,
        column: str,
        values: pa.Array | pa.ChunkedArray,
        columns: Sequence[str],
    ) -> pa.Table:
        ours = self._our_rows(table_key)
        if ours is None:
            return super().rows(table_key, column, values, columns)
        self._read.add(table_key)
        found = [self._nothing(table_key, columns)]
        sought = self._sought.get((table_key, column))
        if sought is not None:
            everywhere = values.filter(pc.is_in(values, value_set=sought))
            if len(everywhere):
                found.append(super().rows(table_key, column, everywhere, columns))
            values = values.filter(pc.invert(pc.is_in(values, value_set=sought)))
        written = ours.written
        if written is not None and len(values):
            has_value = pc.is_in(comparable(written.column(column)), value_set=pc.drop_null(values))
            found.append(written.filter(has_value).select(list(columns)))
        return pa.concat_tables(found)

    def present(self, table_key: str, ids: pa.Array | pa.ChunkedArray) -> pa.BooleanArray:
        ours = self._our_rows(table_key) if len(ids) else None
        if ours is None:
            return super().present(table_key, ids)
        self._read.add(table_key)
        whole = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        return ours.has(whole)
