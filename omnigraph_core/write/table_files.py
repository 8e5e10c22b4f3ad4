"""Tabular sources as they are: record batches of a bounded size out, each row with its number.

Parquet and Arrow rows are counted from 1, CSV rows by line. Nothing is converted yet.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from omnigraph_core.errors import RecordError
from omnigraph_core.write.csv_rows import read_csv
from omnigraph_core.write.slices import RowGroups
from omnigraph_core.write.sources import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.write.csv_rows import OnBadRow
    from omnigraph_core.write.sources import Source

_BATCH_BYTES: Final = 16 << 20
_MAX_ROWS: Final = 1 << 16
_FILE_MAGIC: Final = b"ARROW1"
_Numbered: TypeAlias = tuple[pa.RecordBatch, np.ndarray]


@dataclass(frozen=True, slots=True)
class TableFile:
    """The columns of a source, and its rows with their numbers."""

    schema: pa.Schema
    batches: Iterator[_Numbered]


@contextmanager
def open_table_file(source: Source, on_bad_row: OnBadRow) -> Iterator[TableFile]:
    """The rows of a tabular source; they can be read while the context is open.

    Raises:
        RecordError: it is not of its format, also while rows are read.
    """
    with ExitStack() as opened:
        with _translated(source.format):
            file = _open(source, on_bad_row, opened)
        yield TableFile(file.schema, _guarded(file.batches, source.format))


@contextmanager
def _translated(format: Format) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as problem:
        raise RecordError(f"cannot be read as {format}: {_said(problem)}") from problem


def _said(problem: Exception) -> str:
    """What a reader says, on one line: some repeat bytes that they could not make sense of."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(problem)).split())


def _guarded(batches: Iterator[_Numbered], format: Format) -> Iterator[_Numbered]:
    while True:
        with _translated(format):
            found = next(batches, None)
        if found is None:
            return
        yield found


def _open(source: Source, on_bad_row: OnBadRow, opened: ExitStack) -> TableFile:
    if isinstance(source.data, pa.Table):
        return TableFile(source.data.schema, _slices(source.data.to_batches()))
    if source.format is Format.CSV:
        names, rows_of_text = read_csv(opened.enter_context(source.open()), on_bad_row)
        return TableFile(pa.schema([(name, pa.binary()) for name in names]), rows_of_text)
    file = opened.enter_context(_arrow_file(source))
    if source.format is Format.PARQUET:
        rows = opened.enter_context(parquet.ParquetFile(file))
        all_groups = range(rows.metadata.num_row_groups)
        groups = source.data.groups if isinstance(source.data, RowGroups) else all_groups
        return TableFile(rows.schema_arrow, _slices(_parquet_batches(rows, groups)))
    schema, batches = _ipc_batches(file)
    return TableFile(schema, _slices(batches))


def _arrow_file(source: Source) -> pa.NativeFile:
    file = source.data.file if isinstance(source.data, RowGroups) else source.data
    if isinstance(file, Path):
        return pa.memory_map(str(file))
    return pa.PythonFile(source.open(), "r")


def _parquet_batches(rows: parquet.ParquetFile, groups: Iterable[int]) -> Iterator[pa.RecordBatch]:
    """The rows of row groups, up to what cannot be read, whichever groups are read with it."""
    size = _parquet_rows(rows)
    for together in _groups_within(rows.metadata, groups, size):
        if len(together) == 1:
            yield from rows.iter_batches(size, row_groups=together)
            continue
        try:
            batches = list(rows.iter_batches(size, row_groups=together))
        except (pa.ArrowException, OSError):
            for group in together:  # those before the damaged one can be read alone
                yield from rows.iter_batches(size, row_groups=[group])
            raise
        yield from batches


def _groups_within(
    metadata: parquet.FileMetaData, groups: Iterable[int], size: int
) -> Iterator[list[int]]:
    """Small groups by the batch, and each larger one alone."""
    together: list[int] = []
    count = 0
    for group in groups:
        rows = metadata.row_group(group).num_rows
        if together and count + rows > size:
            yield together
            together, count = [], 0
        together.append(group)
        count += rows
    if together:
        yield together


def _parquet_rows(rows: parquet.ParquetFile) -> int:
    """Rows of a batch that memory can well hold."""
    metadata = rows.metadata
    total = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    return _rows_within(total, metadata.num_rows)


def _rows_within(total_bytes: int, count: int) -> int:
    return max(1, min(_MAX_ROWS, _BATCH_BYTES * count // max(total_bytes, 1)))


def _ipc_batches(file: pa.NativeFile) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    file.seek(0)
    if not is_file:
        stream = ipc.open_stream(file)
        return stream.schema, stream
    reader = ipc.open_file(file)
    return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))


def _slices(batches: Iterable[pa.RecordBatch]) -> Iterator[_Numbered]:
    seen = 0
    for batch in batches:
        step = _rows_within(batch.nbytes, batch.num_rows)
        for start in range(0, batch.num_rows, step):
            part = batch.slice(start, step)
            yield part, np.arange(part.num_rows, dtype=np.int64) + seen + start + 1
        seen += batch.num_rows
