"""Columns as numbers, and what the laws over random conditions do not reach."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.exec.comparisons import (
    Numbers,
    compare_number,
    compare_numbers,
    is_member,
    is_number_member,
    try_numbers,
)
from omnigraph_core.query.typed import TypedOp
from omnigraph_core.types import F64, I64, PropType, Scalar
from tests.support.cases import each


@each(
    ("column", "expected"),
    [
        (pa.array([1, 2, 3, 4], pa.uint64()), [2, 3]),
        (pa.array([1.5, 2.5, 3.5, 4.5], pa.float32()), [2.5, 3.5]),
        (pa.array([False, True, False, True]), [True, False]),
        (pa.array([1, 2, 3, 4], pa.int32()).cast(pa.date32()), [2, 3]),
        (pa.array([1, 1001, 3, 4], pa.int64()).cast(pa.date64()), [1001, 3]),
    ],
)
def test_a_slice_of_a_column_as_numbers(column: pa.Array, expected: list[object]) -> None:
    numbers = try_numbers(column.slice(1, 2))

    assert numbers is not None
    assert numbers.values.tolist() == expected
    assert numbers.valid is None


@each("type", [pa.int64(), pa.bool_(), pa.date64(), pa.float32()])
def test_nulls_are_told_apart(type: pa.DataType) -> None:
    column = pa.array([1, None, 0], pa.int32()).cast(
        pa.int64() if pa.types.is_temporal(type) else type
    )
    some, none = try_numbers(column.cast(type)), try_numbers(column.cast(type).slice(3))

    assert some is not None
    assert some.valid is not None
    assert some.valid.tolist() == [True, False, True]
    assert none is not None
    assert len(none.values) == 0


def test_texts_and_lists_are_no_numbers() -> None:
    assert try_numbers(pa.array(["1"])) is None
    assert try_numbers(pa.array([[1]])) is None
    assert try_numbers(pa.array([b"1"], pa.large_binary())) is None


def test_what_stands_under_a_null_is_never_compared() -> None:
    signalling = np.array([0x7F800001, 0x7F800001], np.uint32).view(np.float32)
    valid = np.array([False, False])
    floats, whole = Numbers(signalling, valid), Numbers(np.array([1, 2], np.int64))

    for op in (TypedOp.NE, TypedOp.LT, TypedOp.EQ):
        assert compare_numbers(floats, op, whole).tolist() == [False, False]
        assert compare_numbers(whole, op, floats).tolist() == [False, False]
        assert compare_numbers(floats, op, Numbers(np.array([1.0, 2.0]))).tolist() == [False] * 2


def test_a_comparison_leaves_its_column_alone() -> None:
    values, valid = np.array([1, 2, 3], np.int64), np.array([True, False, True])
    values.flags.writeable = valid.flags.writeable = False

    assert compare_number(Numbers(values, valid), I64, TypedOp.GE, 2).tolist() == [
        False,
        False,
        True,
    ]
    assert compare_number(Numbers(values, valid), I64, TypedOp.NE, 2.5).tolist() == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("count", [1, 20])
def test_members_among_few_and_among_many(count: int) -> None:
    zeros = Numbers(np.array([0.0, -0.0, 1.0]), np.array([True, True, False]))
    options = (-0.0, 1, *(float(n) + 0.5 for n in range(count)))

    assert is_number_member(zeros, F64, options).tolist() == [True, True, False]
    whole = Numbers(np.array([0, 1, 2], np.int32))
    among = is_number_member(whole, PropType(Scalar.I32), (*options, 2**40))
    assert among.tolist() == [True, True, False]


def test_a_member_of_no_options() -> None:
    assert is_member(pa.array(["a", None]), PropType(Scalar.STRING), ()).tolist() == [False, False]
    assert is_member(pa.array([1, None]), I64, ()).tolist() == [False, False]
