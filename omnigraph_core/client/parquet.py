"""Parquet files of a graph behind a server: its export comes in, a file per type goes out.

The files have the columns, types and names that an export of a graph at hand writes. A file appears
under its name when it is complete, and none does before all rows have arrived.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import new_ulid
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.catalog import EDGE_ENDS, EdgeType
from omnigraph_core.violations import Violations
from omnigraph_core.write.batches import Places
from omnigraph_core.write.export import exported_columns, select_tables
from omnigraph_core.write.export_parquet import ExportedFile
from omnigraph_core.write.intake import Intake
from omnigraph_core.write.jsonl import read_jsonl
from omnigraph_core.write.sources import Format, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.write.batches import Batch, GraphType

_MOMENT: Final = pa.timestamp("ms", "UTC")


def write_parquet(
    lines: Iterable[bytes],
    schema: AcceptedSchema,
    directory: Path,
    *,
    types: Sequence[str],
    table_keys: Sequence[str],
) -> tuple[ExportedFile, ...]:
    """Write exported lines as one file per type.

    Raises:
        ConfigError: no such type or table, or the directory cannot be written.
    """
    catalog = accepted_catalog(schema)
    selected = select_tables(catalog, types=types, table_keys=table_keys)
    try:
        with ExitStack() as open_files, tempfile.TemporaryDirectory(prefix="omnigraph-") as spool:
            path = Path(spool) / "export.jsonl"
            with path.open("wb") as file:
                file.writelines(lines)
            files = {
                type.table_key: open_files.enter_context(_File(type, directory))
                for type in selected
            }
            for batch in _batches(path, catalog):
                files[batch.type.table_key].write(batch.rows)
            return tuple(file.finish() for file in files.values())
    except OSError as problem:
        name = problem.filename or directory
        raise ConfigError(f"cannot write {name}: {problem.strerror or problem}") from problem


def _batches(path: Path, catalog: Catalog) -> Iterator[Batch]:
    problems = Violations()
    intake = Intake(0, Source(path, Format.JSONL), catalog, Places(), problems)
    yield from read_jsonl(intake)
    if problems.total:
        first = problems.listed[0].render()
        raise StorageError(f"the export of the server cannot be read: {first}")


class _File:
    """One Parquet file on its way."""

    def __init__(self, type: GraphType, directory: Path) -> None:
        folder = directory / ("edges" if isinstance(type, EdgeType) else "nodes")
        folder.mkdir(parents=True, exist_ok=True)
        self._type = type
        self._path = folder / f"{type.name}.parquet"
        self._unfinished = folder / f".{self._path.name}.{new_ulid()}"
        self._schema = _file_schema(type)
        self._writer = _open_writer(self._unfinished, self._schema)
        self._rows = 0

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._unfinished.unlink(missing_ok=True)

    def write(self, rows: pa.Table) -> None:
        chosen = rows.select(exported_columns(self._type))
        self._writer.write_table(chosen.rename_columns(self._schema.names).cast(self._schema))
        self._rows += rows.num_rows

    def finish(self) -> ExportedFile:
        self._writer.close()
        size = self._unfinished.stat().st_size
        self._unfinished.replace(self._path)
        return ExportedFile(self._type.table_key, self._path, self._rows, size)


def _open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Blobs repeat too rarely and are too large to be kept for a dictionary or for statistics."""
    others = [
        f"{field.name}.list.element" if pa.types.is_nested(field.type) else str(field.name)
        for field in schema
        if not pa.types.is_large_binary(field.type)
    ]
    return pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=others, write_statistics=others
    )


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
