"""Comparisons of a column with one value or with another column: exact, whatever the number types.

Null on either side compares to nothing: what comes out is true or false for every row, and false
where nothing is known. Conditions have no negation, so that never turns into a true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.scalars import plain_value, whole_numbers
from omnigraph_core.plan.bounds import fit_bound
from omnigraph_core.plan.values import OPERATORS, compare_values
from omnigraph_core.query.typed import TypedOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

_KERNELS: Final = {
    TypedOp.EQ: pc.equal,
    TypedOp.NE: pc.not_equal,
    TypedOp.LT: pc.less,
    TypedOp.LE: pc.less_equal,
    TypedOp.GT: pc.greater,
    TypedOp.GE: pc.greater_equal,
}
_TWO_63: Final = 2.0**63
_TWO_64: Final = 2.0**64


def compare_with_value(column: pa.Array, type: PropType, op: TypedOp, value: Value) -> pa.Array:
    """A column on the left, one value on the right."""
    if value is None:
        return everywhere(len(column), is_true=False)
    if type.is_vector:
        return _vector_equals(column, op, value)
    if op is TypedOp.HAS_TEXT:
        return known(pc.match_substring(column, value))
    if op is TypedOp.STARTS_WITH:
        return known(pc.starts_with(column, value))
    if type.scalar.is_numeric:
        assert isinstance(value, int | float)
        fitted = fit_bound(op, value, type.scalar)
        if isinstance(fitted, bool):
            return column.is_valid() if fitted else everywhere(len(column), is_true=False)
        op, value = fitted
    column = _plain_column(column)
    return known(_KERNELS[op](column, pa.scalar(plain_value(value), column.type)))


def compare_columns(left: pa.Array, op: TypedOp, right: pa.Array) -> pa.Array:
    """Two columns of compatible types, row by row."""
    if op is TypedOp.HAS_TEXT or op is TypedOp.STARTS_WITH:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([compare_values(a, op, b) for a, b in pairs], pa.bool_())
    left, right = _plain_column(left), _plain_column(right)
    if left.type == right.type:
        return known(_KERNELS[op](left, right))
    return _compare_numbers(left, op, right)


def is_member(column: pa.Array, type: PropType, options: Sequence[Value]) -> pa.Array:
    """Whether each value of a column equals one of the options."""
    if type.scalar.is_numeric:
        options = _of_type(options, type)
    column = _plain_column(column)
    wanted = pa.array([plain_value(option) for option in options], column.type)
    return known(pc.is_in(column, value_set=wanted))


def known(truth: pa.Array) -> pa.Array:
    """The truth with unknown as false."""
    return truth.fill_null(False) if truth.null_count else truth


def everywhere(length: int, *, is_true: bool) -> pa.Array:
    return pa.array(np.full(length, is_true))


def _plain_column(column: pa.Array) -> pa.Array:
    """Dates as the integers they are: kernels would refuse a `date64` that is no whole day."""
    if pa.types.is_temporal(column.type):
        return column.cast(whole_numbers(column.type))
    return column


def _of_type(options: Sequence[Value], type: PropType) -> list[Value]:
    """The options a column of the type can hold, each as such; others equal none of its values."""
    fitted: list[Value] = []
    for option in options:
        assert isinstance(option, int | float)
        found = fit_bound(TypedOp.EQ, option, type.scalar)
        if not isinstance(found, bool):
            # Lookups tell the two zeros apart, comparisons do not.
            fitted += [found[1]] if found[1] or type.scalar.is_integer else [0.0, -0.0]
    return fitted


def _vector_equals(column: pa.Array, op: TypedOp, value: Value) -> pa.Array:
    wanted = np.asarray(value, np.float32)
    numbers = column.flatten().to_numpy().reshape(-1, len(wanted))  # without the null vectors
    is_same = (numbers == wanted).all(axis=1)
    truth = np.zeros(len(column), np.bool_)
    truth[column.is_valid().to_numpy(zero_copy_only=False)] = (
        is_same if op is TypedOp.EQ else ~is_same
    )
    return pa.array(truth)


def _compare_numbers(left: pa.Array, op: TypedOp, right: pa.Array) -> pa.Array:
    """Two columns of different number types; no common type holds the values of both."""
    both = pc.and_(left.is_valid(), right.is_valid())
    a, b = _numpy(left), _numpy(right)
    if a.dtype.kind == b.dtype.kind == "f":
        truth = _apply(op, a.astype(np.float64), b.astype(np.float64))
    elif a.dtype.kind == "f":
        truth = _apply_order(op, -_order_with_floats(b, a.astype(np.float64)), np.isnan(a))
    elif b.dtype.kind == "f":
        truth = _apply_order(op, _order_with_floats(a, b.astype(np.float64)), np.isnan(b))
    else:
        truth = _apply(op, _order_integers(a, b), np.int8(0))
    return pc.and_(pa.array(truth), both)


def _numpy(column: pa.Array) -> np.ndarray:
    filled = column.fill_null(0) if column.null_count else column
    numbers: np.ndarray = filled.to_numpy(zero_copy_only=False)
    return numbers


def _apply(op: TypedOp, left: np.ndarray, right: np.ndarray | np.int8) -> np.ndarray:
    truth: np.ndarray = OPERATORS[op](left, right)
    return truth


def _apply_order(op: TypedOp, order: np.ndarray, is_nan: np.ndarray) -> np.ndarray:
    """NaN is unequal to every number and neither less nor greater."""
    return np.where(is_nan, op is TypedOp.NE, _apply(op, order, np.int8(0)))


def _order_integers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """-1, 0 or 1 as `a` is less than, equal to or greater than `b`."""
    if a.dtype == np.uint64 and b.dtype != np.uint64:
        return -_order_integers(b, a)
    if b.dtype == np.uint64 and a.dtype != np.uint64:
        order = _sign(np.maximum(a, 0).astype(np.uint64), b)
        return np.where(a < 0, np.int8(-1), order)
    return _sign(a, b) if a.dtype == b.dtype else _sign(a.astype(np.int64), b.astype(np.int64))


def _sign(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)


def _order_with_floats(whole: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The order of integers and floats; meaningless where the float is NaN."""
    is_unsigned = whole.dtype == np.uint64
    low, high = (0.0, _TWO_64) if is_unsigned else (-_TWO_63, _TWO_63)
    is_inside = (numbers >= low) & (numbers < high)
    floor = np.floor(np.where(is_inside, numbers, 0.0))
    order = _order_integers(whole, floor.astype(np.uint64 if is_unsigned else np.int64))
    order = np.where((order == 0) & (floor < numbers), np.int8(-1), order)
    outside = np.where(numbers >= high, np.int8(-1), np.int8(1))
    return np.where(is_inside, order, outside)
