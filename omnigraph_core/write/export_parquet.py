"""Export to Parquet: tables of one snapshot come in, a file for each goes out.

`nodes/<Type>.parquet` and `edges/<Edge>.parquet` have a column per property under its own name,
rows by id, and load again as they are. No file appears under its name before all are complete.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph_core.errors import ConfigError
from omnigraph_core.ids import new_ulid
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.write.export import BATCH_ROWS, exported_columns, iter_by_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

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
    rows = (_named_rows(type, open_table(type.table_key), batch_rows) for type in selected)
    return write_parquet(selected, chain.from_iterable(rows), directory)


def write_parquet(
    selected: Sequence[GraphType], rows: Iterable[tuple[GraphType, pa.Table]], directory: Path
) -> tuple[ExportedFile, ...]:
    """Write rows, each batch of one of the types, below a directory; a file for every type.

    Files that are there are replaced when all rows are written. Those of one type had better follow
    each other: what is written of a type before another one's turn is a row group of its own.

    Raises:
        ConfigError: the directory cannot be written to.
    """
    try:
        with ExitStack() as unfinished:
            files = {
                type.table_key: unfinished.enter_context(_File(type, directory))
                for type in selected
            }
            _fill(files, rows)
            return tuple(file.finish() for file in files.values())
    except OSError as problem:
        name = problem.filename or directory
        raise ConfigError(f"cannot write {name}: {problem.strerror or problem}") from problem


def _named_rows(
    type: GraphType, table: Table, batch_rows: int
) -> Iterator[tuple[GraphType, pa.Table]]:
    # Not by a loop, which would hold each batch while the next is read: they may be large.
    batches = iter_by_id(table, exported_columns(type), batch_rows=batch_rows)
    return map(partial(_named, type), batches)


def _named(type: GraphType, rows: pa.Table) -> tuple[GraphType, pa.Table]:
    return type, rows


def _fill(files: Mapping[str, _File], rows: Iterable[tuple[GraphType, pa.Table]]) -> None:
    last: _File | None = None
    for type, batch in rows:
        file = files[type.table_key]
        if last is not None and last is not file:
            last.flush()
        file.write(batch)
        last = file
        del batch  # it may be large, and is not to be held while the next is read


class _File:
    """A file on its way; it appears under its name when it is finished."""

    def __init__(self, type: GraphType, directory: Path) -> None:
        folder = directory / ("edges" if isinstance(type, EdgeType) else "nodes")
        folder.mkdir(parents=True, exist_ok=True)
        self._type = type
        self._path = folder / f"{type.name}.parquet"
        self._unfinished = folder / f".{self._path.name}.{new_ulid()}"
        self._schema = _file_schema(type)
        self._writer = _open_writer(self._unfinished, self._schema)
        self._waiting: list[pa.Table] = []
        self._row_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._unfinished.unlink(missing_ok=True)

    def write(self, rows: pa.Table) -> None:
        """Take rows, and write those that wait when they are worth a row group."""
        self._waiting.append(rows.select(exported_columns(self._type)))
        count = sum(item.num_rows for item in self._waiting)
        if count >= _GROUP_ROWS or sum(item.nbytes for item in self._waiting) >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            group = pa.concat_tables(self._waiting)
            self._waiting.clear()
            self._writer.write_table(group.rename_columns(self._schema.names).cast(self._schema))
            self._row_count += group.num_rows

    def finish(self) -> ExportedFile:
        self.flush()
        self._writer.close()
        byte_count = self._unfinished.stat().st_size
        self._unfinished.replace(self._path)
        return ExportedFile(self._type.table_key, self._path, self._row_count, byte_count)


def _open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Blobs repeat too rarely and are too large to be kept for a dictionary or for statistics."""
    others = [_path(field) for field in schema if not pa.types.is_large_binary(field.type)]
    return pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=others, write_statistics=others
    )


def _path(field: pa.Field) -> str:
    """What Parquet calls the values of a column."""
    return f"{field.name}.list.element" if pa.types.is_nested(field.type) else str(field.name)


def _file_schema(type: GraphType) -> pa.Schema:
    stored = table_schema(type)
    names = {column: name for name, column in EDGE_ENDS.items()}
    fields = [stored.field(column) for column in exported_columns(type)]
    return pa.schema(
        [pa.field(names.get(f.name, f.name), portable_type(f.type), f.nullable) for f in fields]
    )


def portable_type(kind: pa.DataType) -> pa.DataType:
    """The type by which others know a column: they keep the day of our moments, not the time."""
    if pa.types.is_date64(kind):
        return _MOMENT
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(portable_type(kind.value_type)))
    return kind
