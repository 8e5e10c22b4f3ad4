"""Columns of bytes: as they are given comes in, as Lance keeps them goes out, and back.

Whoever writes or reads a table sees plain large binaries. Lance keeps such a column apart from the
others, long values in files of their own, so that a scan passes them by. Null and empty differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from lance.blob import BlobType, blob_field

if TYPE_CHECKING:
    from collections.abc import Iterable

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

PLAIN: Final = pa.large_binary()
"""The type of a column of bytes outside."""

_REFERENCE: Final = (("uri", pa.utf8()), ("position", pa.uint64()), ("size", pa.uint64()))
"""What Lance can hold instead of bytes. It would open the address as it is written: never used."""


def to_stored(schema: pa.Schema) -> pa.Schema:
    """The schema Lance is to keep."""
    return pa.schema([stored_field(field) for field in schema], metadata=schema.metadata)


def stored_field(field: pa.Field) -> pa.Field:
    return blob_field(field.name, nullable=field.nullable) if field.type == PLAIN else field


def to_plain(schema: pa.Schema) -> pa.Schema:
    """The schema seen outside."""
    if not any(is_stored_blob(field) for field in schema):
        return schema
    return pa.schema([_plain_field(field) for field in schema], metadata=schema.metadata)


def is_stored_blob(field: pa.Field) -> bool:
    return isinstance(field.type, BlobType)


def stored_column(
    column: pa.Array | pa.ChunkedArray, field: pa.Field
) -> pa.Array | pa.ChunkedArray:
    """A column as the stored field wants it: bytes in a struct, others as they are."""
    if not is_stored_blob(field):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_stored(chunk) for chunk in column.chunks], field.type)
    return _stored(column)


def plain_rows(rows: _Rows, blobs: Iterable[str]) -> _Rows:
    """Rows read as bytes, without what Lance leaves in the fields of such columns."""
    fields = {field.name: field for field in rows.schema}
    changed = {name: _plain_field(fields[name]) for name in blobs if name in fields}
    if not changed:
        return rows
    schema = pa.schema({**fields, **changed}.values(), metadata=rows.schema.metadata)
    return type(rows).from_arrays(list(rows.columns), schema=schema)


def _plain_field(field: pa.Field) -> pa.Field:
    if is_stored_blob(field) or field.type == PLAIN:
        return pa.field(field.name, PLAIN, nullable=field.nullable)
    return field


def _stored(values: pa.Array) -> pa.Array:
    unused = [pa.nulls(len(values), type) for _, type in _REFERENCE]
    names = ["data", *(name for name, _ in _REFERENCE)]
    storage = pa.StructArray.from_arrays([values, *unused], names=names, mask=values.is_null())
    return pa.ExtensionArray.from_storage(BlobType(), storage)
