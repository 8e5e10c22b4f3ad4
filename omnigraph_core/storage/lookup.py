"""Finding rows of a table: values, a filter or addresses come in, the rows that have them go out.

An address says where a row is in one version of the table, and means nothing in another. Columns
that are wanted are read for the rows that are found, not for those that are passed by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.blob_columns import PLAIN, plain_rows
from omnigraph_core.storage.page_widths import row_widths
from omnigraph_core.storage.row_space import stored_bytes
from omnigraph_core.storage.sparse import are_far_apart
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance.blob import BlobFile

    from omnigraph_core.storage.dataset import Table

ADDRESS: Final = "_rowaddr"
"""The column of addresses: unsigned 64 bits, the fragment above, the row in it below."""

MAX_INDEXED_KEYS: Final = 2_000
"""Keys up to which looking each one up in the key's index beats scanning the column once."""

_MAX_TAKEN_SHARE: Final = 0.25
"""Of the rows of a table: beyond it, reading all of them in order beats picking these out."""

PORTION_BYTES: Final = 32 << 20
"""Of rows that are in memory at a time while they are read one after another, or one row."""

_FIRST_ROWS: Final = 16
_FIRST_SHARE: Final = 16
"""Of a portion: what the first rows take of it at most, by what rows of the table take stored."""
_FEW_ROWS: Final = 64
"""That are picked out at once without asking how wide they are."""
_KEPT_ROWS: Final = 4_096
"""Rows picked out at once, up to which they are kept for whoever asks for them again."""
_MOST_ROWS: Final = 65_536
_GROWTH: Final = 4
"""By which more rows are picked out at once, for as long as they turn out to be small."""

_PIECE_BYTES: Final = 8 << 20
"""Of a blob that are asked for at once when it is read alone."""

_KEY_ROWS: Final = 65_536
"""Rows of a batch while only one column of keys is read."""


def find_rows(
    table: Table,
    column: str,
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[str],
    *,
    has_addresses: bool = False,
) -> pa.Table:
    """The rows whose value in a column is one of those given, in insertion order.

    Few values are looked up in the column's index, if it has one; for many the column is read
    once. A null finds nothing.

    Raises:
        InvariantBroken: the values are not of the column's type.
    """
    expected = table.schema.field(column).type
    if values.type != expected:
        raise InvariantBroken(f"values for `{column}` of `{table.location}` are {expected}")
    wanted = _distinct(values)
    if not len(wanted):
        return _empty(table, columns, has_addresses=has_addresses)
    where = _filter(table, column, wanted) if len(wanted) <= MAX_INDEXED_KEYS else None
    if where is not None:
        return _scan(table, columns, where, has_addresses=has_addresses)
    kept = [ADDRESS, column] if column in columns else [ADDRESS]
    keys = _sought(table, column, wanted, kept)
    return _completed(table, keys, columns, has_addresses=has_addresses)


def find_where(
    table: Table,
    where: str | pa.Expression | None,
    columns: Sequence[str],
    *,
    has_addresses: bool = False,
    fragment_ids: Sequence[int] | None = None,
) -> pa.Table:
    """The rows a filter holds for, in insertion order; all of them without a filter.

    Args:
        where: a filter in Lance's SQL (names in backticks) or an Arrow expression.
        fragment_ids: the only fragments to look at.
    """
    return _scan(table, columns, where, has_addresses=has_addresses, fragment_ids=fragment_ids)


def take_rows(
    table: Table,
    addresses: pa.Array | pa.ChunkedArray,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """The rows at these addresses of this version, in the order given; each must be there."""
    names = list(table.schema.names if columns is None else columns)
    if not len(addresses):
        return _empty(table, names, has_addresses=False)
    known = [pa.table({ADDRESS: addresses})]
    if others := _but_blobs(table, names):
        known.append(_taken(table, addresses, others))
    return _assembled(table, known, names)


def iter_taken(
    table: Table,
    addresses: pa.Array | pa.ChunkedArray,
    columns: Sequence[str] | None = None,
    *,
    portion_bytes: int = PORTION_BYTES,
) -> Iterator[pa.Table]:
    """The rows at these addresses in the order given, as many at a time as fit the bytes, or one.

    How large blobs are is known before they are read; of other columns the rows read so far tell.
    """
    names = list(table.schema.names if columns is None else columns)
    waiting: list[pa.Table] = []
    held = 0
    for rows, byte_count in _described(table, addresses, names, portion_bytes):
        if waiting and held + byte_count > portion_bytes:
            yield _assembled(table, [pa.concat_tables(waiting)], names)
            waiting, held = [], 0
        waiting.append(rows)
        held += byte_count
    if waiting:
        yield _assembled(table, [pa.concat_tables(waiting)], names)


def spans(
    sizes: np.ndarray, byte_count: int, *, most_rows: int = _MOST_ROWS
) -> Iterator[tuple[int, int]]:
    """Where rows of these sizes are to be cut, as starts and ends, for none to be larger.

    >>> list(spans(np.array([3, 3, 3, 9, 0, 1]), 7))
    [(0, 2), (2, 3), (3, 4), (4, 6)]
    """
    ends = np.cumsum(sizes)
    start, passed = 0, 0
    while start < len(ends):
        fitting = int(np.searchsorted(ends, passed + byte_count, side="right"))
        end = max(start + 1, min(fitting, start + most_rows))
        yield start, end
        start, passed = end, int(ends[end - 1])


def iter_rows(
    table: Table, columns: Sequence[str] | None = None, *, batch_rows: int = 8192
) -> Iterator[pa.RecordBatch]:
    """All rows in insertion order, some at a time: fewer where their blobs are large."""
    names = list(table.schema.names if columns is None else columns)
    with translated("reading", table.uri):
        if not table.blobs_of(names):
            yield from table.scanner(names, batch_rows=batch_rows).to_batches()
            return
        described = table.dataset.scanner(
            columns=names, with_row_address=True, batch_size=batch_rows
        )
        for batch in described.to_batches():
            known = pa.Table.from_batches([batch])
            for start, end in spans(_blob_sizes(table, known), PORTION_BYTES):
                rows = _assembled(table, [known.slice(start, end - start)], names)
                yield from rows.combine_chunks().to_batches()


def _described(
    table: Table, addresses: pa.Array | pa.ChunkedArray, columns: Sequence[str], byte_count: int
) -> Iterator[tuple[pa.Table, int]]:
    """The rows without bytes of their blobs, and how large they are with them."""
    start, size = 0, _first_rows(table, byte_count)
    is_sparse = _is_sparse(table, len(addresses))
    while start < len(addresses):
        size = _fitting(table, addresses.slice(start, size), columns, byte_count)
        chosen = addresses.slice(start, size)
        rows = _taken(table, chosen, columns, is_sparse=is_sparse)
        width = rows.nbytes // len(chosen)
        sizes = _blob_sizes(table, rows) + width
        rows = rows.append_column(ADDRESS, chosen)
        for begin, end in spans(sizes, byte_count):
            yield rows.slice(begin, end - begin), int(sizes[begin:end].sum())
        start += size
        size = max(1, min(_MOST_ROWS, size * _GROWTH, byte_count // max(width, 1)))


def _fitting(
    table: Table, addresses: pa.Array | pa.ChunkedArray, columns: Sequence[str], byte_count: int
) -> int:
    """How many of the first of these rows fit the bytes, by what files say: rows read before say
    nothing of others that are wider. Few rows are not worth asking, nor are those in memory."""
    count = len(addresses)
    if table.sparse.count_lacking(np.asarray(addresses), columns) <= _FEW_ROWS:
        return count
    widths = row_widths(table, np.asarray(addresses), _but_blobs(table, columns))
    return max(1, min(count, int(np.searchsorted(np.cumsum(widths), byte_count, side="right"))))


def _first_rows(table: Table, byte_count: int) -> int:
    """How many rows to pick out while nothing is known of them but what all take together."""
    stored = stored_bytes(table)
    if not stored:
        return _FIRST_ROWS
    width = max(1, stored // max(1, table.count_rows()))
    return max(_FIRST_ROWS, min(_MOST_ROWS, byte_count // _FIRST_SHARE // width))


def _blob_sizes(table: Table, rows: pa.Table) -> np.ndarray:
    """How many bytes the blobs of each row have, of rows that have descriptions of them."""
    sizes = np.zeros(rows.num_rows, np.int64)
    for name in table.blobs_of(rows.column_names):
        sizes += pc.struct_field(rows.column(name), "size").fill_null(0).to_numpy().astype(np.int64)
    return sizes


def _distinct(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    distinct = pc.unique(pc.drop_null(values))
    if pa.types.is_floating(distinct.type) and pc.any(pc.equal(distinct, 0)).as_py():
        # Both zeros are one value to whoever asks, and two to an index.
        zeros = pa.array([0.0, -0.0], distinct.type)
        return pc.unique(pa.concat_arrays([distinct, zeros]))
    return distinct


def _empty(table: Table, columns: Sequence[str], *, has_addresses: bool) -> pa.Table:
    return _schema(table, columns, has_addresses=has_addresses).empty_table()


def _schema(table: Table, columns: Sequence[str], *, has_addresses: bool) -> pa.Schema:
    fields = [table.schema.field(name) for name in columns]
    return pa.schema([*fields, pa.field(ADDRESS, pa.uint64())] if has_addresses else fields)


def _filter(table: Table, column: str, wanted: pa.Array) -> str | pa.Expression | None:
    """What finds the values; None where nothing but a pass over the column does.

    A list of what Lance cannot be told of spoils expressions on any column of its table.
    """
    where = _is_one_of(column, wanted)
    if isinstance(where, str) or not any(_is_list_of_untold(item.type) for item in table.schema):
        return where
    if not pa.types.is_string(wanted.type):
        return None
    quoted = ("'" + value.replace("'", "''") + "'" for value in wanted.to_pylist())
    return f"`{column}` IN ({', '.join(quoted)})"


def _is_one_of(column: str, wanted: pa.Array) -> str | pa.Expression:
    """Lance takes typed expressions for all types but those that it cannot tell others of."""
    kind = wanted.type
    if pa.types.is_unsigned_integer(kind):
        return f"`{column}` IN ({', '.join(str(value) for value in wanted.to_pylist())})"
    if pa.types.is_date64(kind):
        moments = wanted.view(pa.int64()).to_pylist()
        listed = ", ".join(f"arrow_cast({moment}, 'Date64')" for moment in moments)
        return f"`{column}` IN ({listed})"
    return pc.field(column).isin(wanted)


def _is_list_of_untold(kind: pa.DataType) -> bool:
    if not pa.types.is_list(kind):
        return False
    member = kind.value_type
    return bool(pa.types.is_unsigned_integer(member) or pa.types.is_date64(member))


def _scan(
    table: Table,
    columns: Sequence[str],
    where: str | pa.Expression | None,
    *,
    has_addresses: bool,
    fragment_ids: Sequence[int] | None = None,
) -> pa.Table:
    with translated("looking up rows", table.uri):
        rows = table.scanner(
            columns, where=where, has_addresses=has_addresses, fragment_ids=fragment_ids
        ).to_table()
    return plain_rows(rows, table.blobs_of(columns))


def _sought(table: Table, column: str, wanted: pa.Array, kept: Sequence[str]) -> pa.Table:
    """The rows with these values, by ascending address: one pass over the column."""
    with translated("looking up rows", table.uri):
        keys = table.scanner([column], has_addresses=True, batch_rows=_KEY_ROWS).to_reader()
        # A join makes its table of the values once; a filter would for every batch.
        join = acero.HashJoinNodeOptions("left semi", [column], [column], left_output=kept)
        read = acero.RecordBatchReaderSourceNodeOptions(keys)
        given = acero.TableSourceNodeOptions(pa.table({column: wanted}))
        sources = [
            acero.Declaration("record_batch_reader_source", read),
            acero.Declaration("table_source", given),
        ]
        return acero.Declaration("hashjoin", join, sources).to_table().sort_by(ADDRESS)


def _completed(
    table: Table, keys: pa.Table, columns: Sequence[str], *, has_addresses: bool
) -> pa.Table:
    """These columns of the rows whose ascending addresses, and maybe a column, are known."""
    if not keys.num_rows:
        return _empty(table, columns, has_addresses=has_addresses)
    known = [keys]
    if missing := [name for name in _but_blobs(table, columns) if name not in keys.column_names]:
        addresses = keys.column(ADDRESS).combine_chunks()
        is_most = len(addresses) > _MAX_TAKEN_SHARE * table.count_rows()
        known.append((_sifted if is_most else _taken)(table, addresses, missing))
    return _assembled(table, known, columns, has_addresses=has_addresses)


def _but_blobs(table: Table, columns: Sequence[str]) -> list[str]:
    blobs = table.blobs_of(columns)
    return [name for name in columns if name not in blobs]


def _is_sparse(table: Table, count: int) -> bool:
    return are_far_apart(count, table.count_rows())


def _taken(
    table: Table,
    addresses: pa.Array | pa.ChunkedArray,
    columns: Sequence[str],
    *,
    is_sparse: bool | None = None,
) -> pa.Table:
    """The rows at these addresses, picked out.

    Args:
        is_sparse: whether these and others that are asked for next lie far apart; None: there are
            no others.
    """
    if is_sparse is None:
        is_sparse = _is_sparse(table, len(addresses))
    wanted, names = addresses.to_pylist(), list(columns)
    with translated("reading rows", table.uri):
        if is_sparse or len(wanted) <= _KEPT_ROWS:
            rows = table.sparse.take(wanted, names, is_sparse=is_sparse)
        else:
            rows = table.dataset._take_rows(wanted, columns=names)
    if rows.num_rows != len(addresses):
        raise InvariantBroken(f"`{table.location}` has a row at every address that is read")
    return rows


def _sifted(table: Table, addresses: pa.Array, columns: Sequence[str]) -> pa.Table:
    """The rows at ascending addresses, out of a pass over all."""
    wanted = addresses.to_numpy()
    kept = []
    with translated("looking up rows", table.uri):
        for batch in table.scanner(columns, has_addresses=True).to_batches():
            here = batch.column(ADDRESS).to_numpy()
            places = np.searchsorted(wanted, here).clip(max=len(wanted) - 1)
            kept.append(batch.filter(pa.array(wanted[places] == here)))
    return pa.Table.from_batches(kept)


def _assembled(
    table: Table, known: Sequence[pa.Table], columns: Sequence[str], *, has_addresses: bool = False
) -> pa.Table:
    """One table of columns of the same rows, the first of which have addresses; reads blobs."""
    values = {name: rows.column(name) for rows in known for name in rows.column_names}
    for name in table.blobs_of(columns):
        values[name] = _blobs_at(table, name, values[ADDRESS])
    schema = _schema(table, columns, has_addresses=has_addresses)
    return pa.Table.from_arrays([values[name] for name in schema.names], schema=schema)


def _blobs_at(table: Table, column: str, addresses: pa.Array | pa.ChunkedArray) -> pa.Array:
    wanted = addresses.to_pylist()
    with translated("reading blobs", table.uri):
        if len(wanted) == 1:
            (file,) = table.dataset.take_blobs(column, addresses=wanted)
            return pa.nulls(1, PLAIN) if file is None else _blob_in(file)
        read = table.dataset.read_blobs(column, addresses=wanted, preserve_order=True)
    return pa.array([content for _, content in read], PLAIN)


def _blob_in(file: BlobFile) -> pa.Array:
    """One blob, which may be large: read piece by piece, it is in memory once and not thrice."""
    size = file.size()
    content = pa.allocate_buffer(size)
    view = memoryview(content).cast("B")
    for start in range(0, size, _PIECE_BYTES):
        end = min(start + _PIECE_BYTES, size)
        view[start:end] = file.read_range(start, end - start)
    offsets = pa.array([0, size], pa.int64()).buffers()[1]
    return pa.Array.from_buffers(PLAIN, 1, [None, offsets, content])
