"""Columns come and go without rewriting data: a table comes in, the changed table goes out.

Adding an empty column, renaming and dropping edit the schema alone and write no data file. Data
files find their columns by field id, so an id is never given to another column while any file of
the version still holds values under it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance.dataset import LanceOperation
from lance.schema import LanceSchema

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.blob_columns import PLAIN, stored_field
from omnigraph_core.storage.detached import stage
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.proto import NO_PARENT, FieldRecord
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.detached import Operation

_FILL_ROWS: Final = 65_536
"""Rows of a batch of a filled column."""


def add_null_column(table: Table, field: pa.Field) -> Table:
    """Add a column that is null in every row; into a table without rows it may be required.

    Raises:
        InvariantBroken: the name is taken, or the column may not be null and there are rows.
    """
    _check_new(table, field.name)
    if not field.nullable and table.count_fragments():
        raise InvariantBroken(f"`{field.name}` added as null to `{table.location}` is nullable")
    return stage(table, "adding a column", lambda: _added(table, field))


def add_filled_column(table: Table, field: pa.Field, value: pa.Scalar) -> Table:
    """Add a column that holds one value in every row: one small file per fragment.

    Raises:
        InvariantBroken: the name is taken, or the value is not one of the column's.
    """
    _check_new(table, field.name)
    is_wrong = value.type != field.type or (not value.is_valid and not field.nullable)
    if is_wrong or field.type == PLAIN:  # a blob has no default
        raise InvariantBroken(f"`{field.name}` of type {field.type} can hold its default {value}")
    fragments = table.dataset.get_fragments()
    if not fragments:
        return add_null_column(table, field)

    def prepare() -> Operation:
        with translated("filling a column", table.uri):
            # Live rows are asked for: Lance fills the places of deleted ones itself.
            filled = [
                fragment.merge_columns(_constant(field, value, fragment.count_rows()))
                for fragment in fragments
            ]
        schema = filled[-1][1]
        return LanceOperation.Merge([fragment for fragment, _ in filled], schema)

    return stage(table, "adding a column", prepare)


def rename_column(table: Table, old: str, new: str) -> Table:
    """Give a column another name; its values and indexes stay.

    Raises:
        InvariantBroken: there is no such column, or the new name is taken.
    """
    _check_known(table, old)
    _check_new(table, new)
    column = _column_id(table, old)
    records = [
        record.renamed(new) if record.id == column else record for record in field_records(table)
    ]
    return stage(table, "renaming a column", lambda: _projected(table, records))


def drop_column(table: Table, name: str) -> Table:
    """Take a column out, with its indexes; its values stay in the files until these are rewritten.

    Raises:
        InvariantBroken: there is no such column, or it is the only one.
    """
    _check_known(table, name)
    if len(table.schema) == 1:
        raise InvariantBroken(f"`{table.location}` keeps a column when `{name}` is dropped")
    gone = {_column_id(table, name)}
    kept = []
    for record in field_records(table):
        if record.id in gone or record.parent_id in gone:
            gone.add(record.id)
        else:
            kept.append(record)
    return stage(table, "dropping a column", lambda: _projected(table, kept))


def _check_new(table: Table, name: str) -> None:
    if name in table.schema.names:
        raise InvariantBroken(f"`{name}` is new to `{table.location}`")


def _check_known(table: Table, name: str) -> None:
    if name not in table.schema.names:
        raise InvariantBroken(f"`{table.location}` has a column `{name}`")


def field_records(table: Table) -> list[FieldRecord]:
    return split_schema(table.dataset.lance_schema)[1]


def split_schema(schema: LanceSchema) -> tuple[str, list[FieldRecord]]:
    """How Lance pickles a schema: its metadata and one message per field."""
    reduced: Any = schema.__reduce__()
    metadata, *records = reduced[1]
    return metadata, [FieldRecord(record) for record in records]


def schema_of(table: Table, records: Sequence[FieldRecord]) -> LanceSchema:
    metadata, _ = split_schema(table.dataset.lance_schema)
    return LanceSchema._from_protos(metadata, *(record.content for record in records))


def _column_id(table: Table, name: str) -> int:
    return next(
        record.id
        for record in field_records(table)
        if record.parent_id == NO_PARENT and record.name == name
    )


def _projected(table: Table, records: Sequence[FieldRecord]) -> Operation:
    with translated("changing the schema", table.uri):
        return LanceOperation.Project(schema_of(table, records), preserves_nullability=True)


def _added(table: Table, field: pa.Field) -> Operation:
    with translated("changing the schema", table.uri):
        _, new = split_schema(LanceSchema.from_pyarrow(pa.schema([stored_field(field)])))
        # Counts the ids of data files too: a dropped column's values must not come back.
        first = table.dataset.max_field_id + 1
        ids = {record.id: first + place for place, record in enumerate(new)}
        ids[NO_PARENT] = NO_PARENT
        numbered = [record.renumbered(ids[record.id], ids[record.parent_id]) for record in new]
        schema = schema_of(table, [*field_records(table), *numbered])
        return LanceOperation.Merge(
            current_fragments(table), schema, preserves_nullability=field.nullable
        )


def _constant(field: pa.Field, value: pa.Scalar, count: int) -> pa.RecordBatchReader:
    schema = pa.schema([field])
    sizes = (min(_FILL_ROWS, count - start) for start in range(0, count, _FILL_ROWS))
    batches = (pa.record_batch([pa.repeat(value, size)], schema=schema) for size in sizes)
    return pa.RecordBatchReader.from_batches(schema, batches)
