"""What Spark carries is what it was given: every type, null and not, whole and in part."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.spark.query.columns import (
    carried,
    carried_type,
    restored,
    spark_schema,
    spark_type,
)
from tests.support.cases import each

VECTOR = pa.list_(pa.float32(), 2)
COLUMNS = [
    pa.array(["a", None, "", "é"]),
    pa.array([True, None, False]),
    pa.array([1, None, -(2**31)], pa.int32()),
    pa.array([1, None, 2**63 - 1], pa.int64()),
    pa.array([0, None, 2**32 - 1], pa.uint32()),
    pa.array([0, None, 2**64 - 1, 2**63], pa.uint64()),
    pa.array([0.5, None, -0.0], pa.float32()),
    pa.array([0.1, None, -0.0, float("inf")], pa.float64()),
    pa.array([-3653, None, 20000], pa.int32()).view(pa.date32()),
    pa.array([-1, None, 1_700_000_000_123], pa.int64()).view(pa.date64()),
    pa.array([["a", None], None, [], ["b"]], pa.list_(pa.utf8())),
    pa.array([[0, 2**64 - 1], None, [], [7]], pa.list_(pa.uint64())),
    pa.array([[1, None], None, [], [2]], pa.list_(pa.int32())).cast(pa.list_(pa.int32())),
    pa.ListArray.from_arrays(pa.array([0, 2, 2]), pa.array([5, None]).view(pa.date64())),
    pa.array([[1, 2], None, [3, 4]], VECTOR),
    pa.array([[1, 2], [3, 4]], VECTOR),
    pa.array([None, None], VECTOR),
]


@each("column", COLUMNS, ids=lambda column: str(column.type))
def test_values_come_back(column: pa.Array) -> None:
    for part in (column, column.slice(1), column.slice(1, 1), column.slice(0, 0)):
        there = carried(part)
        assert there.type == carried_type(column.type)
        back = restored(there, column.type)
        back.validate()
        assert back.type == column.type
        assert back.equals(part)


@each("column", COLUMNS, ids=lambda column: str(column.type))
def test_spark_has_a_type_for_each(column: pa.Array) -> None:
    name = spark_type(column.type).simpleString()
    assert not name.startswith(("date", "timestamp", "decimal"))


def test_unsigned_numbers_keep_their_order() -> None:
    numbers = pa.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], pa.uint64())
    there = carried(numbers).to_pylist()
    assert there == sorted(there)


def test_a_schema_names_its_columns() -> None:
    schema = spark_schema([("p:id", pa.utf8()), ("p:days", pa.list_(pa.date32()))])
    assert schema.simpleString() == "struct<p:id:string,p:days:array<int>>"


def test_other_types_are_refused() -> None:
    with pytest.raises(InvariantBroken, match="large_binary"):
        spark_type(pa.large_binary())
