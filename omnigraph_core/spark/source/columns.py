"""Columns of a table as Spark has them: Arrow in, Spark's types and its own Arrow forms out.

No value is lost. Spark has no unsigned integers, so they become the next larger type that holds
them all; a DateTime is a timestamp, a Vector an array of floats, an enum a string, a Blob bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from omnigraph_core.errors import ConfigError, InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import DataType

_SCALARS: Final[dict[pa.DataType, DataType]] = {
    pa.utf8(): StringType(),
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    pa.date64(): TimestampType(),
    pa.large_binary(): BinaryType(),
}
_MOMENT: Final = pa.timestamp("ms", "UTC")


def spark_schema(schema: pa.Schema, columns: Sequence[str]) -> StructType:
    """These columns of a table as Spark's."""
    fields = [schema.field(name) for name in columns]
    return StructType([StructField(f.name, spark_type(f.type), f.nullable) for f in fields])


def spark_type(kind: pa.DataType) -> DataType:
    """The type of Spark that holds every value of an Arrow type of a table.

    >>> spark_type(pa.uint64()).simpleString(), spark_type(pa.list_(pa.float32(), 3)).simpleString()
    ('decimal(20,0)', 'array<float>')
    """
    if kinds.is_list(kind) or kinds.is_fixed_size_list(kind):
        return ArrayType(spark_type(kind.value_type))
    found = _SCALARS.get(kind)
    if found is None:
        raise InvariantBroken(f"a table has columns of known types, not {kind}")
    return found


def check_asked(asked: StructType, table: pa.Schema, named: Sequence[str]) -> None:
    """Refuse a schema that asks for columns a type does not have, or has as another type.

    Args:
        named: the columns that can be asked for.

    Raises:
        ConfigError: every column that cannot be given.
    """
    problems = []
    for field in asked.fields:
        if field.name not in named:
            problems.append(f"no column `{field.name}`")
            continue
        expected = spark_type(table.field(field.name).type)
        told, found = expected.simpleString(), field.dataType.simpleString()
        if told != found:
            problems.append(f"`{field.name}` is {told}, not {found}")
        elif table.field(field.name).nullable and not field.nullable:
            problems.append(f"`{field.name}` may be null")
    if problems:
        raise ConfigError("; ".join(problems), hint=f"columns there: {', '.join(named)}")


def arrow_schema(asked: StructType) -> pa.Schema:
    """What Spark expects batches of these columns to be, exactly."""
    return to_arrow_schema(asked, timezone="UTC")


def as_spark(rows: pa.RecordBatch, expected: pa.Schema) -> pa.RecordBatch:
    """Rows of a table in Spark's Arrow types, columns in the order expected."""
    columns = [_converted(rows.column(field.name), field.type) for field in expected]
    return pa.RecordBatch.from_arrays(columns, schema=expected)


def _converted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if kinds.is_list(kind):
        return _list(values, kind)
    if kinds.is_date64(values.type):
        return values.view(_MOMENT).cast(kind)
    return values.cast(kind)


def _list(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Built anew, not cast: members change their type, and vectors their layout."""
    is_there = values.is_valid()
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    members = _converted(values.flatten(), kind.value_type)
    mask = pc.invert(is_there) if values.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), members, type=kind, mask=mask)
