"""The answer to a read, in every form users ask for: Arrow, JSON, lines, data frames.

The columns are those the query was described with before it ran.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.json_rows import content, plain_objects
from omnigraph_core.job_report import SparkResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    import pandas as pd
    import polars as pl

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.query.descriptor import ResultColumn

_BATCH_ROWS: Final = 65_536
_MOMENT: Final = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult(SparkResult):
    """Rows of a read, the columns they have and the snapshot they were read from."""

    query_name: str
    columns: tuple[ResultColumn, ...]
    table: pa.Table
    snapshot: Snapshot

    @property
    def num_rows(self) -> int:
        return int(self.table.num_rows)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.columns)
        return f"<QueryResult {self.query_name}: {self.num_rows} rows of {columns}>"

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a DateTime is a `date64` that holds milliseconds."""
        return self.table

    def to_batches(self, max_rows: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows some at a time."""
        yield from self.table.to_batches(max_chunksize=max_rows)

    def to_ipc(self) -> bytes:
        """The rows as an Arrow IPC stream."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return bytes(sink.getvalue())

    def to_json(self, *, is_js_safe: bool = False) -> str:
        """The rows as one JSON array of objects.

        Args:
            is_js_safe: integers that JavaScript cannot hold become texts.
        """
        rows = b"".join(self._texts(is_js_safe=is_js_safe, end=","))
        return f"[{rows[:-1].decode()}]"

    def to_pylist(self, *, is_js_safe: bool = False) -> list[dict[str, Any]]:
        """The rows as they are in JSON: dates are texts, nodes are dicts."""
        rows: list[dict[str, Any]] = json.loads(self.to_json(is_js_safe=is_js_safe))
        return rows

    def iter_ndjson(self, *, is_js_safe: bool = False) -> Iterator[bytes]:
        """The rows as lines of JSON, some lines at a time."""
        yield from self._texts(is_js_safe=is_js_safe, end="\n")

    def describe(self) -> list[dict[str, object]]:
        """The columns as clients see them."""
        return [column.to_json() for column in self.columns]

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame; a DateTime is a moment in UTC, integers may be missing.

        Raises:
            ConfigError: pandas is not installed.
        """
        integers = _nullable_integers(_frames("pandas"))
        frame: pd.DataFrame = self._with_moments().to_pandas(
            date_as_object=True, integer_object_nulls=True, types_mapper=integers.get
        )
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a data frame; a DateTime is a moment in UTC.

        Raises:
            ConfigError: Polars is not installed.
        """
        frame: pl.DataFrame = _frames("polars").from_arrow(self._with_moments())
        return frame

    def _texts(self, *, is_js_safe: bool, end: str) -> Iterator[bytes]:
        for batch in self.table.to_batches(max_chunksize=_BATCH_ROWS):
            rows = pa.Table.from_batches([batch])
            yield content(plain_objects(rows, is_js_safe=is_js_safe, end=end))

    def _with_moments(self) -> pa.Table:
        fields = [field.with_type(_shown(field.type)) for field in self.table.schema]
        columns = [_moments(column) for column in self.table.columns]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _frames(library: str) -> ModuleType:
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"{library} is not installed", hint=f"install it, or use Arrow: pip install {library}"
        ) from missing


def _nullable_integers(pandas: ModuleType) -> dict[pa.DataType, object]:
    """Beside a null pandas would make floats of integers, and lose digits."""
    return {
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
        pa.uint32(): pandas.UInt32Dtype(),
        pa.uint64(): pandas.UInt64Dtype(),
    }


def _shown(kind: pa.DataType) -> pa.DataType:
    """The type with every `date64` as the moment it stands for."""
    if pa.types.is_date64(kind):
        return _MOMENT
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_shown(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_shown(field.type)) for field in kind])
    return kind


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_nested(column.type) and not pa.types.is_date64(column.type):
        return column
    # Through the same bits: Arrow would take a `date64` for whole days. Stretches of lists are
    # copied first: not every library can read them.
    whole = [pa.concat_arrays([chunk]) if chunk.offset else chunk for chunk in column.chunks]
    chunks = [_viewed(chunk) for chunk in whole]
    return pa.chunked_array(chunks, _shown(column.type))


def _viewed(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_date64(kind):
        return array.view(pa.int64()).view(_MOMENT)
    if pa.types.is_list(kind):
        members = _viewed(array.values)
        lists = pa.ListArray.from_arrays(array.offsets, members, mask=array.is_null())
        return lists.cast(_shown(kind))
    if pa.types.is_struct(kind):
        parts = [_viewed(array.field(place)) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(_shown(kind)), mask=array.is_null())
    return array
