"""Data frames of pandas, polars, Arrow and Spark: recognized, and converted to and from Arrow.

pandas and polars are imported only for those who use them.
"""

from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

from omnigraph_core.engine.staged_frames import is_spark_frame
from omnigraph_core.errors import ConfigError


class FrameKind(StrEnum):
    """What an asset can return and an input can be."""

    ARROW = "pyarrow.Table"
    PANDAS = "pandas.DataFrame"
    POLARS = "polars.DataFrame"
    POLARS_LAZY = "polars.LazyFrame"
    SPARK = "pyspark.sql.DataFrame"


_HINT: Final = f"use one of {', '.join(FrameKind)}"


def kind_of(annotation: Any) -> FrameKind:
    """The kind of frame that a class names; Arrow where an input has no annotation.

    Raises:
        ConfigError: it is no data frame.
    """
    if annotation in (Any, None, object):
        return FrameKind.ARROW
    module = getattr(annotation, "__module__", "")
    package = "pyspark.sql" if module.startswith("pyspark.sql.") else module.partition(".")[0]
    name = f"{package}.{getattr(annotation, '__name__', annotation)}"
    try:
        return FrameKind(name)
    except ValueError:
        raise ConfigError(f"{annotation!r} is no data frame", hint=_HINT) from None


def to_storable(frame: Any) -> Any:
    """A frame as the engine stages it: an Arrow table, or the data frame of Spark itself.

    Raises:
        ConfigError: it is no data frame, or has columns that Arrow has no type for.
    """
    if isinstance(frame, pa.Table) or is_spark_frame(frame):
        return frame
    kind = kind_of(type(frame))
    if kind is FrameKind.POLARS_LAZY:
        return frame.collect().to_arrow()
    if kind is FrameKind.POLARS:
        return frame.to_arrow()
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as problem:
        raise ConfigError(f"a column mixes types: {'; '.join(map(str, problem.args))}") from problem


def from_arrow(rows: pa.Table, kind: FrameKind) -> Any:
    """An Arrow table as a frame of this process."""
    if kind is FrameKind.PANDAS:
        return _pandas_frame(rows)
    if kind in (FrameKind.POLARS, FrameKind.POLARS_LAZY):
        import polars as pl

        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)
        return frame.lazy() if kind is FrameKind.POLARS_LAZY else frame
    return rows


def _pandas_frame(rows: pa.Table) -> Any:
    """A frame of pandas; integers with nulls are `Int64` and the like, where floats would round."""
    import pandas as pd

    def nullable(kind: pa.DataType) -> Any:
        sign = "" if pa.types.is_signed_integer(kind) else "U"
        return pd.api.types.pandas_dtype(f"{sign}Int{kind.bit_width}")

    frame = rows.to_pandas(integer_object_nulls=True)
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_integer(column.type) and column.null_count:
            frame[name] = column.to_pandas(types_mapper=nullable)
    return frame
