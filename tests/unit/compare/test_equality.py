"""Typed equality of columns, against values compared one by one."""

from __future__ import annotations

import datetime as dt
import random
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.compare.equality import equal_columns, equal_values
from omnigraph_core.errors import InvariantBroken
from tests.support.cases import each

NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
DAY = dt.date(2026, 1, 31)

CASES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "texts": (pa.utf8(), [None, "", "a", "b", "é", "a\0"]),
    "bytes": (pa.large_binary(), [None, b"", b"a", b"b", b"a\0"]),
    "bool": (pa.bool_(), [None, True, False]),
    "i32": (pa.int32(), [None, 0, -1, 2**31 - 1]),
    "i64": (pa.int64(), [None, 0, -1, 2**63 - 1, 2**53, 2**53 + 1]),
    "u32": (pa.uint32(), [None, 0, 2**32 - 1]),
    "u64": (pa.uint64(), [None, 0, 2**64 - 1, 2**64 - 2]),
    "f32": (pa.float32(), [None, 0.0, -0.0, NAN, float("inf"), 1.5]),
    "f64": (pa.float64(), [None, 0.0, -0.0, NAN, OTHER_NAN, float("-inf"), 1.5]),
    "date": (pa.date32(), [None, DAY, dt.date(1969, 12, 31)]),
    "datetime": (pa.date64(), [None, dt.date(1970, 1, 1), DAY]),
    "list of texts": (pa.list_(pa.utf8()), [None, [], [""], ["a"], ["a", "b"], ["ab"], [None]]),
    "list of i64": (pa.list_(pa.int64()), [None, [], [0], [None], [1, 2], [2, 1], [1, 2, 3]]),
    "list of f64": (pa.list_(pa.float64()), [None, [], [0.0], [-0.0], [NAN], [NAN, 1.0]]),
    "list of bool": (pa.list_(pa.bool_()), [None, [], [True], [False], [True, False]]),
    "list of dates": (pa.list_(pa.date32()), [None, [], [DAY], [DAY, DAY]]),
    "vector": (
        pa.list_(pa.float32(), 2),
        [None, [0.0, 0.0], [0.0, -0.0], [NAN, 1.0], [1.0, NAN], [None, 1.0]],
    ),
}


def exact(value: Any) -> Any:
    """Something that is equal exactly where values are."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, list):
        return [exact(item) for item in value]
    return (type(value).__name__, value)


@each(("kind", "values"), CASES.values(), ids=CASES)
def test_every_value_with_every_other(kind: pa.DataType, values: list[Any]) -> None:
    pairs = [(a, b) for a in values for b in values]
    random.Random(1).shuffle(pairs)
    a, b = (pa.array([pair[side] for pair in pairs], kind) for side in (0, 1))
    expected = [exact(x) == exact(y) for x, y in pairs]
    assert equal_values(a, b).tolist() == expected
    for cut in (1, len(pairs) // 2, len(pairs) - 1):
        assert equal_values(a[cut:], b[cut:]).tolist() == expected[cut:], "of slices"
        assert equal_values(a[:cut], b[:cut]).tolist() == expected[:cut]
        chunked = pa.chunked_array([a[:cut], a[:0], a[cut:]], kind)
        assert equal_values(chunked, b).tolist() == expected, "of chunks"


@each(("kind", "values"), CASES.values(), ids=CASES)
def test_nothing_and_nulls_alone(kind: pa.DataType, values: list[Any]) -> None:
    none = pa.array([], kind)
    assert equal_values(none, none).tolist() == []
    assert equal_values(pa.chunked_array([], kind), none).tolist() == []
    nulls = pa.nulls(3, kind)
    assert equal_values(nulls, nulls).tolist() == [True] * 3
    assert equal_values(nulls, pa.array([values[1]] * 3, kind)).tolist() == [False] * 3


def test_what_lies_below_nulls_does_not_count() -> None:
    validity = pa.py_buffer(bytes([0b10]))
    a, b = (
        pa.Array.from_buffers(
            pa.int64(), 2, [validity, pa.py_buffer(np.array([below, 7]).tobytes())]
        )
        for below in (1, 2)
    )
    assert equal_values(a, b).tolist() == [True, True]
    lists = [
        pa.ListArray.from_arrays(pa.array([0, 1, 2]), values, mask=pa.array([True, False]))
        for values in (pa.array([1, 5]), pa.array([2, 5]))
    ]
    assert equal_values(*lists).tolist() == [True, True]
    vectors = [
        pa.FixedSizeListArray.from_arrays(values, 1, mask=pa.array([True, False]))
        for values in (pa.array([1.0, 5.0]), pa.array([2.0, 5.0]))
    ]
    assert equal_values(*vectors).tolist() == [True, True]


def test_columns_side_by_side() -> None:
    a = pa.table({"id": ["1", "2"], "name": ["x", None], "stock": [1, 2]})
    b = pa.table({"stock": [1, 3], "id": ["1", "2"], "name": ["x", ""]})
    found = equal_columns(a, b)
    assert list(found) == ["id", "name", "stock"]
    assert {name: mask.tolist() for name, mask in found.items()} == {
        "id": [True, True],
        "name": [True, False],
        "stock": [True, False],
    }


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InvariantBroken, match="columns compared are alike"):
        equal_values(pa.array([1]), pa.array([1.0]))
    with pytest.raises(InvariantBroken, match="columns compared are alike"):
        equal_values(pa.array([1]), pa.array([1, 2]))
    with pytest.raises(InvariantBroken, match="rows compared have the same columns"):
        equal_columns(pa.table({"a": [1]}), pa.table({"b": [1]}))
