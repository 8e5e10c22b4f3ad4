"""Columns of tables as Spark has them: no value is lost on the way."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from omnigraph_core.errors import ConfigError, InvariantBroken
from omnigraph_core.spark.source.columns import (
    arrow_schema,
    as_spark,
    check_asked,
    spark_schema,
    spark_type,
)

TABLE = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("huge", pa.uint64()),
        pa.field("at", pa.date64()),
        pa.field("shape", pa.list_(pa.field("item", pa.float32()), 2)),
        pa.field("sizes", pa.list_(pa.field("item", pa.uint32()))),
        pa.field("photo", pa.large_binary()),
    ]
)
MOMENTS = pa.array([-1, None, 253_402_300_799_999], pa.int64()).view(pa.date64())
ROWS = pa.RecordBatch.from_arrays(
    [
        pa.array(["a", "b", "c"]),
        pa.array([2**64 - 1, None, 0], pa.uint64()),
        MOMENTS,
        pa.array([[1.5, -0.0], None, [3.0, 4.0]], TABLE.field("shape").type),
        pa.array([[], None, [0, 2**32 - 1]], TABLE.field("sizes").type),
        pa.array([b"", None, b"\xff"], pa.large_binary()),
    ],
    schema=TABLE,
)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_values(start: int) -> None:
    asked = spark_schema(TABLE, ["shape", "id", "sizes", "at", "huge", "photo"])
    expected = arrow_schema(asked)
    made = as_spark(ROWS.slice(start), expected)
    made.validate(full=True)
    assert made.schema.equals(expected)
    given = ROWS.slice(start).to_pylist()
    found = made.set_column(
        3, "at", made.column("at").cast(pa.timestamp("ms", "UTC")).view(pa.date64())
    ).to_pylist()
    assert [dict(sorted(row.items())) for row in found] == [
        dict(sorted(row.items())) for row in given
    ]


def test_no_rows() -> None:
    asked = spark_schema(TABLE, TABLE.names)
    assert as_spark(ROWS.slice(0, 0), arrow_schema(asked)).num_rows == 0


def test_a_type_no_table_has() -> None:
    with pytest.raises(InvariantBroken, match="duration"):
        spark_type(pa.duration("s"))


def test_what_is_asked_for_must_be_there() -> None:
    named = ("id", "huge", "at", "shape", "sizes", "photo")
    check_asked(spark_schema(TABLE, named), TABLE, named)
    strict = ArrayType(LongType(), containsNull=False)
    check_asked(StructType().add("id", StringType()).add("sizes", strict), TABLE, named)
    with pytest.raises(ConfigError) as refused:
        check_asked(
            StructType()
            .add("id", IntegerType())
            .add("name", StringType())
            .add("at", DateType())
            .add("huge", DecimalType(20, 0), nullable=False),
            TABLE,
            named,
        )
    assert refused.value.message == (
        "`id` is string, not int; no column `name`; `at` is timestamp, not date; `huge` may be null"
    )
