"""A version of a table seen as rows of a type: addresses come in, rows of that type go out.

The type may be of another schema than the table is stored in: columns have other names then, a
wider type, or a value where there is none. Nothing is written; a view reads what it is asked for.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.equality import equal_values
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.storage.lookup import ADDRESS, iter_taken, take_rows
from omnigraph_core.storage.row_space import iter_addresses, read_fragments, stored_bytes
from omnigraph_core.storage.together import read_together
from omnigraph_core.values import epoch_days, epoch_milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from omnigraph_core.schema.catalog import EdgeType, NodeType
    from omnigraph_core.schema.reshape import ColumnSource
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.version_rows import OwnRows
    from omnigraph_core.values import Value

PORTION_BYTES: Final = 4 << 20
"""Of rows of one version that are in memory at a time, or one row.

Whoever compares holds portions of two or three versions, and reading takes several times of one.
"""

_READ_AHEAD: Final = 65_536
"""Rows that are read at once where they are read in the order in which they are stored."""
_NARROW: Final = 256
"""Bytes of a row, on average, with which many times as many rows are little."""

_COUNTED: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
}
"""How moments are stored: as numbers of days, or of milliseconds."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Where a column of the view comes from: from a stored one, and from what stands for null."""

    name: str | None
    """None: no row has a value of its own."""
    fill: pa.Scalar | None
    """None: null stays null."""

    def is_filled_like(self, other: StoredColumn) -> bool:
        """Whether the same stands for null."""
        if self.fill is None or other.fill is None:
            return self.fill is other.fill
        return bool(equal_values(pa.repeat(self.fill, 1), pa.repeat(other.fill, 1)).all())


class RowView:
    """Rows of a table version in the columns of a type. Immutable and safe to share."""

    __slots__ = ("_sources", "columns", "schema", "table", "type")

    def __init__(
        self,
        table: Table,
        type: NodeType | EdgeType,
        schema: pa.Schema,
        sources: Mapping[str, StoredColumn],
    ) -> None:
        self.table = table
        self.type = type
        self.schema = schema
        self.columns: tuple[str, ...] = tuple(schema.names)
        self._sources = sources

    @classmethod
    def of(
        cls,
        table: Table,
        type: NodeType | EdgeType,
        sources: Mapping[str, ColumnSource] | None = None,
    ) -> RowView:
        """The rows of a table as those of a type.

        Args:
            sources: where each column comes from; None: the table is stored in this type's shape.

        Raises:
            InvariantBroken: a column has no source, or one that the table does not have.
        """
        schema = table_schema(type)
        found = {field.name: _stored(table, field, sources) for field in schema}
        return cls(table, type, schema, found)

    def stored(self, column: str) -> StoredColumn:
        return self._sources[column]

    def take(
        self, addresses: np.ndarray | pa.Array, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows at these addresses, in the order given."""
        names = self.columns if columns is None else tuple(columns)
        stored = self._stored_names(names)
        if not stored:
            return self._shaped(None, names, len(addresses))
        return self._shaped(take_rows(self.table, _arrow(addresses), stored), names, len(addresses))

    def iter_taken(
        self, addresses: np.ndarray | pa.Array, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """The same, as many rows at a time as fit into a bounded number of bytes, or one."""
        names = self.columns if columns is None else tuple(columns)
        stored = self._stored_names(names)
        if not stored and len(addresses):
            yield self._shaped(None, names, len(addresses))
            return
        for rows in iter_taken(self.table, _arrow(addresses), stored, portion_bytes=PORTION_BYTES):
            yield self._shaped(rows, names, rows.num_rows)

    def iter_own(self, own: OwnRows, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of rows that another version does not share, ADDRESS last, in portions."""
        names = tuple(columns)
        stored = self._stored_names(names)
        # How many bytes rows have is not known before they are read unless they are picked out.
        is_picked = bool(self.table.blobs_of(stored)) or self._is_wide(own, names)
        for batch in read_fragments(
            self.table, () if is_picked else stored, own.fragments, has_addresses=True
        ):
            if is_picked:
                yield from self._iter_addressed(batch.column(ADDRESS), names)
            else:
                rows = pa.Table.from_batches([batch])
                shaped = self._shaped(rows, names, rows.num_rows)
                yield shaped.append_column(ADDRESS, rows.column(ADDRESS))
        yield from self._iter_addressed(pa.array(own.addresses), names)

    def iter_lacking(self, columns: Sequence[str]) -> Iterator[tuple[RowView, np.ndarray]]:
        """Where the rows are that have no value in any of these columns: no value is read.

        Portions of addresses, each with the view in which they are.
        """
        sources = [self._sources[name] for name in columns]
        if any(source.fill is not None for source in sources):
            return
        stored = [source.name for source in sources if source.name is not None]
        where = " AND ".join(f"`{name}` IS NULL" for name in stored)
        for addresses in iter_addresses(self.table, where or None):
            yield self, addresses

    def _is_wide(self, own: OwnRows, names: Sequence[str]) -> bool:
        """Whether so many rows may be too much to be read ahead: ids never are."""
        if own.count <= _READ_AHEAD or set(names) <= {"id"}:
            return False
        size, count = stored_bytes(self.table), self.table.count_rows()
        return size is None or size > count * _NARROW

    def _iter_addressed(self, addresses: pa.Array, names: Sequence[str]) -> Iterator[pa.Table]:
        if not len(addresses):
            return
        start = 0
        for rows in self.iter_taken(addresses, names):
            here = addresses.slice(start, rows.num_rows)
            yield rows.append_column(ADDRESS, here)
            start += rows.num_rows

    def _stored_names(self, names: Sequence[str]) -> list[str]:
        found = (self._sources[name].name for name in names)
        return list(dict.fromkeys(name for name in found if name is not None))

    def read_ahead(
        self,
        addresses: np.ndarray,
        other: RowView,
        other_addresses: np.ndarray,
        columns: Sequence[str] | None = None,
    ) -> None:
        """Read rows of this and another version that are asked for next, if that is cheaper."""
        names = self._stored_names(self.columns if columns is None else columns)
        others = frozenset(other._stored_names(other.columns if columns is None else columns))
        common = [name for name in names if name in others]
        read_together(self.table, addresses, other.table, other_addresses, common)

    def _shaped(self, rows: pa.Table | None, names: Sequence[str], count: int) -> pa.Table:
        """Stored columns as those of the view."""
        schema = pa.schema([self.schema.field(name) for name in names])
        columns = []
        for field in schema:
            source = self._sources[field.name]
            given = None if rows is None or source.name is None else rows.column(source.name)
            columns.append(_column(given, source.fill, field.type, count))
        return pa.Table.from_arrays(columns, schema=schema)


def _stored(
    table: Table, field: pa.Field, sources: Mapping[str, ColumnSource] | None
) -> StoredColumn:
    source = None if sources is None else sources.get(field.name)
    if sources is not None and source is None:
        raise InvariantBroken(f"`{field.name}` of `{table.location}` has a source")
    column = field.name if source is None else source.column
    if column is not None and column not in table.schema.names:
        raise InvariantBroken(f"`{table.location}` has a column `{column}`")
    if column is not None and (source is None or not source.is_cast):
        stored = table.schema.field(column).type
        if stored != field.type:
            raise InvariantBroken(f"`{column}` of `{table.location}` is {field.type}: {stored}")
    fill = None if source is None or source.fill is None else _scalar(source.fill, field.type)
    return StoredColumn(column, fill)


def _scalar(value: Value, type: pa.DataType) -> pa.Scalar:
    """A single value as a column holds it."""
    if pa.types.is_list(type) and type.value_type in _COUNTED:
        numbers = pa.array([_counted(value)], pa.list_(_COUNTED[type.value_type]))
        return numbers.cast(type)[0]
    if type in _COUNTED:
        return pa.array([_counted(value)], _COUNTED[type]).view(type)[0]
    return pa.array([value], type)[0]


def _counted(value: Value) -> object:
    if isinstance(value, tuple):
        return [_counted(item) for item in value]
    if isinstance(value, dt.datetime):
        return epoch_milliseconds(value)
    return epoch_days(value) if isinstance(value, dt.date) else value


def _column(
    given: pa.ChunkedArray | None, fill: pa.Scalar | None, type: pa.DataType, count: int
) -> pa.Array | pa.ChunkedArray:
    if given is None:
        is_null = fill is None or not count
        return pa.nulls(count, type) if is_null else pa.repeat(fill, count)
    column = given if given.type == type else given.cast(type)
    return column if fill is None or not column.null_count else pc.coalesce(column, fill)


def _arrow(addresses: np.ndarray | pa.Array) -> pa.Array:
    return pa.array(addresses, pa.uint64()) if isinstance(addresses, np.ndarray) else addresses
