"""Rows on their way into a table: given columns come in, the table's own columns go out.

What leaves here has every column, each of the exact type, in the table's order, and no null where
none may be; so a writer cannot leave half-typed files behind. Bytes leave in Lance's own form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from omnigraph_core.errors import OmnigraphError, RecordError
from omnigraph_core.storage.blob_columns import stored_column
from omnigraph_core.storage.translate import LIBRARY_ERRORS, storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.storage.dataset import Table

Rows: TypeAlias = "pa.Table | pa.RecordBatchReader"


def align_rows(table: Table, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    """The rows with the table's columns in the table's order, as Lance is to keep them.

    Raises:
        RecordError: a column is missing, unknown, of another type, or null where none may be.
    """
    check_columns(table, rows)
    stored = table.stored_schema
    columns = [stored_column(rows.column(field.name), field) for field in stored]
    return type(rows).from_arrays(columns, schema=stored)


def check_columns(table: Table, rows: pa.Table | pa.RecordBatch) -> None:
    """Refuse rows that do not fit the table.

    Raises:
        RecordError: a column is missing, unknown, of another type, or null where none may be.
    """
    _check_names(table, rows.schema.names)
    for field in table.schema:
        _check_column(table, field, rows.column(field.name))


class AlignedReader:
    """A reader's batches, aligned one by one; remembers what went wrong inside.

    A library that pulls batches reports a failing source by text alone: `failure` keeps the error
    itself, so that whoever called the library can raise it unchanged.
    """

    def __init__(self, table: Table, source: pa.RecordBatchReader) -> None:
        self._table = table
        self._source = source
        self._problem: Exception | None = None
        self.reader = pa.RecordBatchReader.from_batches(table.stored_schema, self._batches())

    def failure(self, library: Exception, doing: str) -> OmnigraphError:
        """The error to raise after the library failed: the source's own, if that was the cause."""
        if isinstance(self._problem, OmnigraphError):
            return self._problem
        return storage_error(self._problem or library, doing, self._table.uri)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._source:
                yield align_rows(self._table, batch)
        except (OmnigraphError, *LIBRARY_ERRORS) as problem:
            self._problem = problem
            raise


def _check_names(table: Table, given: list[str]) -> None:
    wanted = table.schema.names
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    if missing:
        raise _record_error(table, missing[0], f"the rows have no {_list(missing)}")
    if unknown:
        raise _record_error(table, unknown[0], f"the table has no {_list(unknown)}")
    if len(given) != len(wanted):
        raise _record_error(table, None, f"a column is given twice: {_list(given)}")


def _check_column(table: Table, field: pa.Field, column: pa.ChunkedArray | pa.Array) -> None:
    if column.type != field.type:
        message = f"`{field.name}` is {column.type}, expected {field.type}"
        raise _record_error(table, field.name, message)
    if column.null_count and not field.nullable:
        message = f"`{field.name}` is null in {column.null_count} rows and may not be"
        raise _record_error(table, field.name, message)


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _record_error(table: Table, column: str | None, message: str) -> RecordError:
    return RecordError(
        f"{message} (table `{table.location}`)", table=table.location, property=column
    )
