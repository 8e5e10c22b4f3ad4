"""Export to Parquet: tables of one snapshot come in, a file for each goes out.

`nodes/<Type>.parquet` and `edges/<Edge>.parquet` have a column per property under its own name,
rows by id, and load again as they are. A file appears under its name when it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph_core.errors import ConfigError
from omnigraph_core.ids import new_ulid
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.write.export import BATCH_ROWS, exported_columns, iter_by_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType

_GROUP_ROWS: Final = 131_072
_GROUP_BYTES: Final = 32 * 2**20
_MOMENT: Final = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that was written."""

    table_key: str
    path: Path
    row_count: int
    byte_count: int


def export_parquet(
    selected: Sequence[GraphType],
    open_table: Callable[[str], Table],
    directory: Path,
    *,
    batch_rows: int = BATCH_ROWS,
) -> tuple[ExportedFile, ...]:
    """Write the rows of the types below a directory; files that are there are replaced.

    Args:
        open_table: the table of a table key, always of the same snapshot.
        batch_rows: rows that are read at once at most.

    Raises:
        ConfigError: the directory cannot be written to.
    """
    return tuple(
        _write(type, open_table(type.table_key), directory, batch_rows) for type in selected
    )


def _write(type: GraphType, table: Table, directory: Path, batch_rows: int) -> ExportedFile:
    folder = directory / ("edges" if isinstance(type, EdgeType) else "nodes")
    path = folder / f"{type.name}.parquet"
    unfinished = folder / f".{path.name}.{new_ulid()}"
    batches = iter_by_id(table, exported_columns(type), batch_rows=batch_rows)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            row_count = _write_groups(_groups(batches), _file_schema(type), unfinished)
            byte_count = unfinished.stat().st_size
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as problem:
        raise ConfigError(f"cannot write {path}: {problem.strerror or problem}") from problem
    return ExportedFile(type.table_key, path, row_count, byte_count)


def _write_groups(groups: Iterable[pa.Table], schema: pa.Schema, path: Path) -> int:
    row_count = 0
    with _open_writer(path, schema) as writer:
        for group in groups:
            writer.write_table(group.rename_columns(schema.names).cast(schema))
            row_count += group.num_rows
            del group  # it may be large, and is not to be held while the next is read
    return row_count


def _open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Blobs repeat too rarely and are too large to be kept for a dictionary or for statistics."""
    others = [_path(field) for field in schema if not pa.types.is_large_binary(field.type)]
    return pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=others, write_statistics=others
    )


def _path(field: pa.Field) -> str:
    """What Parquet calls the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_nested(field.type) else str(field.name)


def _groups(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Batches put together until they are worth a row group."""
    waiting: list[pa.Table] = []
    for batch in batches:
        waiting.append(batch)
        del batch
        rows = sum(item.num_rows for item in waiting)
        if rows >= _GROUP_ROWS or sum(item.nbytes for item in waiting) >= _GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _file_schema(type: GraphType) -> pa.Schema:
    stored = table_schema(type)
    names = {column: name for name, column in EDGE_ENDS.items()}
    fields = [stored.field(column) for column in exported_columns(type)]
    return pa.schema(
        [pa.field(names.get(f.name, f.name), _file_type(f.type), f.nullable) for f in fields]
    )


def _file_type(kind: pa.DataType) -> pa.DataType:
    """Parquet would keep the day of our moments and drop the time."""
    if pa.types.is_date64(kind):
        return _MOMENT
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_file_type(kind.value_type)))
    return kind
