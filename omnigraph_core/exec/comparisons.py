"""Comparisons of a column with one value or with another column: exact, whatever the number types.

Null on either side compares to nothing: what comes out is true or false for every row, and false
where nothing is known. Conditions have no negation, so that never turns into a true.
"""

from __future__ import annotations

from dataclasses import dataclass
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

_TEXT_KERNELS: Final = {
    TypedOp.EQ: pc.equal,
    TypedOp.NE: pc.not_equal,
    TypedOp.LT: pc.less,
    TypedOp.LE: pc.less_equal,
    TypedOp.GT: pc.greater,
    TypedOp.GE: pc.greater_equal,
    TypedOp.HAS_TEXT: pc.match_substring,
    TypedOp.STARTS_WITH: pc.starts_with,
}
_FEW: Final = 8
"""Options up to which comparing with each in turn beats looking every value up."""
_TWO_63: Final = 2.0**63
_TWO_64: Final = 2.0**64


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers, Booleans or dates (as the integers they consist of), one per row."""

    values: np.ndarray
    """Anything where a row is null."""
    valid: np.ndarray | None = None
    """Which rows are not null; None if all are."""

    def known(self, truth: np.ndarray) -> np.ndarray:
        """The truth with unknown as false; written into the array given."""
        return truth if self.valid is None else np.logical_and(truth, self.valid, out=truth)


def try_numbers(column: pa.Array) -> Numbers | None:
    """A column as numbers without copying it; None if its values are none."""
    kind = column.type
    if pa.types.is_boolean(kind):
        filled = column.fill_null(False) if column.null_count else column
        return Numbers(as_truth(filled), _valid(column))
    if pa.types.is_temporal(kind):
        kind = whole_numbers(kind)
    elif not pa.types.is_primitive(kind):
        return None
    dtype = kind.to_pandas_dtype()
    content = column.buffers()[1]
    if content is None or not len(column):
        return Numbers(np.zeros(len(column), dtype), _valid(column))
    values = np.frombuffer(content, dtype, len(column), column.offset * np.dtype(dtype).itemsize)
    return Numbers(values, _valid(column))


def as_truth(column: pa.Array) -> np.ndarray:
    """A Boolean column as an array, null as false."""
    filled = column.fill_null(False) if column.null_count else column
    truth: np.ndarray = filled.to_numpy(zero_copy_only=False)
    return truth


def everywhere(length: int, *, is_true: bool) -> np.ndarray:
    return np.ones(length, np.bool_) if is_true else np.zeros(length, np.bool_)


def compare_with_value(column: pa.Array, type: PropType, op: TypedOp, value: Value) -> np.ndarray:
    """A column on the left, one value on the right."""
    if value is None:
        return everywhere(len(column), is_true=False)
    if type.is_vector:
        return _vector_equals(column, op, value)
    numbers = try_numbers(column)
    if numbers is not None:
        return compare_number(numbers, type, op, value)
    return as_truth(_TEXT_KERNELS[op](column, value))


def compare_number(numbers: Numbers, type: PropType, op: TypedOp, value: Value) -> np.ndarray:
    """Numbers on the left, one value that is not null on the right."""
    if type.scalar.is_numeric:
        assert isinstance(value, int | float)
        fitted = fit_bound(op, value, type.scalar)
        if isinstance(fitted, bool):
            return numbers.known(everywhere(len(numbers.values), is_true=fitted))
        op, value = fitted
    return numbers.known(_apply(op, numbers.values, plain_value(value)))


def compare_columns(left: pa.Array, op: TypedOp, right: pa.Array) -> np.ndarray:
    """Two columns of compatible types, row by row."""
    if op is TypedOp.HAS_TEXT or op is TypedOp.STARTS_WITH:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([compare_values(a, op, b) for a, b in pairs], np.bool_)
    a, b = try_numbers(left), try_numbers(right)
    if a is not None and b is not None:
        return compare_numbers(a, op, b)
    return as_truth(_TEXT_KERNELS[op](left, right))


def compare_numbers(left: Numbers, op: TypedOp, right: Numbers) -> np.ndarray:
    """Numbers on both sides; types may differ though no common one holds the values of both."""
    a, b = left.values, right.values
    if a.dtype == b.dtype:
        truth = _apply(op, a, b)
    else:
        with np.errstate(invalid="ignore"):  # whatever stands where a row is null
            truth = _compare_mixed(a, op, b)
    return left.known(right.known(truth))


def is_member(column: pa.Array, type: PropType, options: Sequence[Value]) -> np.ndarray:
    """Whether each value of a column equals one of the options."""
    numbers = try_numbers(column)
    if numbers is not None:
        return is_number_member(numbers, type, options)
    return as_truth(pc.is_in(column, value_set=pa.array(options, column.type)))


def is_number_member(numbers: Numbers, type: PropType, options: Sequence[Value]) -> np.ndarray:
    """Whether each number equals one of the options."""
    fitted = _of_type(options, type) if type.scalar.is_numeric else options
    wanted = np.array([plain_value(option) for option in fitted], numbers.values.dtype)
    if len(wanted) > _FEW:
        return numbers.known(np.isin(numbers.values, wanted))
    truth = everywhere(len(numbers.values), is_true=False)
    for option in wanted:
        truth |= numbers.values == option
    return numbers.known(truth)


def _valid(column: pa.Array) -> np.ndarray | None:
    return as_truth(column.is_valid()) if column.null_count else None


def _of_type(options: Sequence[Value], type: PropType) -> list[Value]:
    """The options a column of the type can hold, each as such; others equal none of its values."""
    fitted: list[Value] = []
    for option in options:
        assert isinstance(option, int | float)
        found = fit_bound(TypedOp.EQ, option, type.scalar)
        if not isinstance(found, bool):
            fitted.append(found[1])
    return fitted


def _vector_equals(column: pa.Array, op: TypedOp, value: Value) -> np.ndarray:
    wanted = np.asarray(value, np.float32)
    numbers = column.flatten().to_numpy().reshape(-1, len(wanted))  # without the null vectors
    is_same = (numbers == wanted).all(axis=1)
    truth = np.zeros(len(column), np.bool_)
    truth[as_truth(column.is_valid())] = is_same if op is TypedOp.EQ else ~is_same
    return truth


def _apply(op: TypedOp, left: np.ndarray, right: object) -> np.ndarray:
    truth: np.ndarray = OPERATORS[op](left, right)
    return truth


def _apply_order(op: TypedOp, order: np.ndarray, is_nan: np.ndarray) -> np.ndarray:
    """NaN is unequal to every number and neither less nor greater."""
    return np.where(is_nan, op is TypedOp.NE, _apply(op, order, np.int8(0)))


def _compare_mixed(a: np.ndarray, op: TypedOp, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == b.dtype.kind == "f":
        return _apply(op, a.astype(np.float64), b.astype(np.float64))
    if a.dtype.kind == "f":
        return _apply_order(op, -_order_with_floats(b, a.astype(np.float64)), np.isnan(a))
    if b.dtype.kind == "f":
        return _apply_order(op, _order_with_floats(a, b.astype(np.float64)), np.isnan(b))
    return _apply(op, _order_integers(a, b), np.int8(0))


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
