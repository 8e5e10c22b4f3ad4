"""Export: tables of one snapshot come in, JSONL that loads them again goes out in chunks.

Rows come by id in code point order, so two exports of one snapshot are equal byte for byte. Memory
is bounded by the ids of one table and a few megabytes of its rows, or one row if it is larger.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ConfigError, DataError
from omnigraph_core.exec.json_rows import is_printable, row_lines
from omnigraph_core.schema.arrow import uri_column
from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, EdgeType
from omnigraph_core.storage.lookup import ADDRESS, find_where, iter_rows, iter_taken
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType

BATCH_ROWS: Final = 8192
_BATCH_BYTES: Final = 8 * 2**20
_WINDOW_BYTES: Final = 32 * 2**20
"""Rows that were not written by id are picked from all over the table: the fewer times the better.
"""

_CHUNK_BYTES: Final = 256 * 2**10
_FIRST_ROWS: Final = 1024
"""Rows that are read before all others, for the first chunk to come early."""

_DATES: Final = frozenset({Scalar.DATE, Scalar.DATETIME})
_LIMITED: Final = _DATES | {Scalar.F32, Scalar.F64, Scalar.VECTOR}
"""Types that can hold what JSON has no form for."""


def select_tables(
    catalog: Catalog, *, types: Sequence[str] = (), table_keys: Sequence[str] = ()
) -> tuple[GraphType, ...]:
    """The types that names or table keys select, by table key; all of them if neither is given.

    A name selects the node type and the edge type that have it.

    Raises:
        ConfigError: names or keys that nothing has, all in one message.
    """
    known: tuple[GraphType, ...] = (*catalog.nodes.values(), *catalog.edges.values())
    by_key = {type.table_key: type for type in known}
    names = {type.name for type in known}
    _refuse_unknown([("type", types, names), ("table key", table_keys, set(by_key))])
    is_everything = not types and not table_keys
    return tuple(
        type
        for key, type in sorted(by_key.items())
        if is_everything or key in table_keys or type.name in types
    )


def export_jsonl(
    selected: Sequence[GraphType],
    open_table: Callable[[str], Table],
    *,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[bytes]:
    """The rows of the types, one after the other, as chunks of whole lines.

    A chunk is of some 256 KiB at most, or one line.

    Args:
        open_table: the table of a table key, always of the same snapshot.
        batch_rows: rows that a chunk holds at most.

    Raises:
        DataError: a table holds a value JSON has no form for; none of its rows was given.
    """
    for type in selected:
        table = open_table(type.table_key)
        _refuse_unprintable(type, table, batch_rows)
        columns = exported_columns(type)
        batches = iter_by_id(table, columns, batch_rows=batch_rows, first_rows=_FIRST_ROWS)
        for lines in map(partial(row_lines, type), batches):
            yield from _pieces(lines)
            del lines  # they may be large, and are not to be held while the next are made


def exported_columns(type: GraphType) -> tuple[str, ...]:
    """The columns of a type's table that an export reads, properties in declaration order.

    The addresses of blobs are among them; what vectors were made from is not.
    """
    names = list(EDGE_IMPLICIT if isinstance(type, EdgeType) else NODE_IMPLICIT)
    for name, item in type.properties.items():
        names += [name, uri_column(name)] if item.type.is_blob else [name]
    return tuple(names)


def iter_by_id(
    table: Table, columns: Sequence[str], *, batch_rows: int = BATCH_ROWS, first_rows: int = 0
) -> Iterator[pa.Table]:
    """All rows by id, as many at a time as fit a few megabytes, `batch_rows` at most.

    A row whose blobs are larger than that comes alone.

    Args:
        first_rows: so many are read before the rest, to have some early.
    """
    addresses = _addresses_by_id(table)
    for portion in (addresses.slice(0, first_rows), addresses.slice(first_rows)):
        yield from _iter_at(table, portion, columns, batch_rows)


def _iter_at(
    table: Table, addresses: pa.Array, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.Table]:
    # One small blob says nothing about the next: rows that have any cannot be cut by the average.
    window = _BATCH_BYTES if table.blobs_of(columns) else _WINDOW_BYTES
    for rows in iter_taken(table, addresses, columns, portion_bytes=window):
        size = min(batch_rows, _fitting(rows, _BATCH_BYTES))
        for start in range(0, rows.num_rows, size):
            yield rows.slice(start, size)
        del rows  # they may be large, and are not to be held while the next are read


def _pieces(lines: bytes) -> Iterator[bytes]:
    """Lines cut into chunks of whole ones. Line ends within a record are escaped."""
    start = 0
    while len(lines) - start > _CHUNK_BYTES:
        end = lines.rfind(b"\n", start, start + _CHUNK_BYTES) + 1
        if end == 0:  # a line that is larger comes alone
            end = lines.index(b"\n", start) + 1
        yield lines[start:end]
        start = end
    if start < len(lines):
        yield lines[start:] if start else lines


def _refuse_unknown(asked: Iterable[tuple[str, Sequence[str], set[str]]]) -> None:
    problems = []
    for what, words, known in asked:
        for word in dict.fromkeys(words):
            if word not in known:
                hint = did_you_mean(word, known)
                problems.append(f"no {what} `{word}`" + (f" ({hint})" if hint else ""))
    if problems:
        raise ConfigError(f"cannot export: {', '.join(problems)}")


def _refuse_unprintable(type: GraphType, table: Table, batch_rows: int) -> None:
    names = [name for name, item in type.properties.items() if item.type.scalar in _LIMITED]
    if not names:
        return
    width = sum(4 * (type.properties[name].type.dimension or 2) for name in names)
    fitting = max(1, min(batch_rows, _BATCH_BYTES // width))
    for batch in iter_rows(table, ["id", *names], batch_rows=fitting):
        for name in names:
            if not is_printable(batch.column(name)):
                raise _unprintable(type, name, batch)


def _unprintable(type: GraphType, name: str, batch: pa.RecordBatch) -> DataError:
    column = batch.column(name)
    row = next(at for at in range(len(column)) if not is_printable(column.slice(at, 1)))
    is_date = type.properties[name].type.scalar in _DATES
    what = "is outside the years 1 to 9999" if is_date else "is not finite"
    return DataError(
        f"cannot export {type.table_key} as JSON: `{name}` of `{batch.column('id')[row]}` {what}",
        hint="correct the value, or export to Parquet",
        table=type.name,
        property=name,
    )


def _addresses_by_id(table: Table) -> pa.Array:
    found = find_where(table, None, ["id"], has_addresses=True)
    # Strings are compared byte by byte, and UTF-8 sorts as its code points do.
    ordered = pc.take(found.column(ADDRESS), pc.sort_indices(found.column("id")))
    return ordered.combine_chunks()


def _fitting(rows: pa.Table, byte_count: int) -> int:
    """How many rows like these fit."""
    return max(1, int(rows.num_rows) * byte_count // max(int(rows.nbytes), 1))
