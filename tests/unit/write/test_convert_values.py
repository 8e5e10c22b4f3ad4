"""Values in other types: those that are meant, in lists of every kind, and nothing else."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

from omnigraph_core.write.convert_values import convert_values

NUMBERS = pa.array([1, 2, 3], pa.int64())


def as_text(rows: pa.Table) -> pa.Table:
    return convert_values(rows, kinds.is_int64, lambda values: values.cast(pa.string()))


def texts(value: Any) -> Any:
    if isinstance(value, list):
        return [texts(member) for member in value]
    return None if value is None else str(value)


def test_values_and_members_of_lists() -> None:
    lists = [
        pa.array([[1, 2], None, [], [3]], pa.list_(pa.int64())),
        pa.array([[1, 2], None, [], [3]], pa.large_list(pa.int64())),
        pa.array([[1, 2], None, [3, None]], pa.list_(pa.int64(), 2)),
        pa.ListViewArray.from_arrays([1, 0], [2, 2], NUMBERS),  # they overlap
        pa.LargeListViewArray.from_arrays([2, 0], [1, 0], NUMBERS),
        pa.array([[[1], None], [[2, 3]]], pa.list_(pa.list_(pa.int64()))),
    ]
    for values in (NUMBERS, *lists):
        for part in (values, values.slice(1)):
            (found,) = as_text(pa.table({"a": part})).to_pydict().values()
            assert found == texts(part.to_pylist())


def test_what_is_not_meant_stays_as_it_is() -> None:
    field = pa.field("a", pa.int64(), nullable=False)
    rows = pa.table([[1], [1.0], [[1.0]]], schema=pa.schema(
        [field, ("b", pa.float64()), ("c", pa.list_(pa.float64(), 1))], {"of": "the table"}
    ))  # fmt: skip
    found = as_text(rows)
    assert found.schema.field("a") == field.with_type(pa.string())
    assert found.drop_columns("a").equals(rows.drop_columns("a"), check_metadata=True)
    same = rows.drop_columns("a")
    assert as_text(same) is same


def test_a_table_without_rows() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64()))])
    for rows in (schema.empty_table(), pa.Table.from_batches([], schema)):
        assert [kinds.is_int64(field.type) for field in as_text(rows).schema] == [False, False]
