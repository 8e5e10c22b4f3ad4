"""Rows of Arrow as a data frame of Spark, in whatever types other libraries have left them.

Spark has no unsigned integers and no views: they become the next types that hold all their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import types as kinds
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import from_arrow_type

from omnigraph_core.errors import ConfigError
from omnigraph_core.write.convert_values import convert_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NEXT: Final[dict[pa.DataType, pa.DataType]] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.timestamp("ms", "UTC"),
}


def frame_of(session: SparkSession, rows: pa.Table) -> DataFrame:
    """A data frame of rows that this process holds.

    Raises:
        ConfigError: Spark has no type for a column; names all of them.
    """
    plain = convert_values(rows, lambda kind: kind in _NEXT or kinds.is_dictionary(kind), _plain)
    problems = [f"`{field.name}` is {field.type}" for field in plain.schema if not _is_known(field)]
    if problems:
        raise ConfigError(f"Spark has no type for columns: {'; '.join(problems)}")
    return session.createDataFrame(plain)


def _plain(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    return values.cast(_NEXT.get(values.type, values.type))


def _is_known(field: pa.Field) -> bool:
    try:
        from_arrow_type(field.type)
    except PySparkTypeError:
        return False
    return True
