"""Conditions over columns: which rows of a table, or of a match, satisfy one.

Three-valued logic with unknown counted as false at every comparison. Since conditions have no
negation, that is the same as counting it as false at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.exec.comparisons import (
    as_truth,
    compare_columns,
    compare_number,
    compare_numbers,
    compare_with_value,
    everywhere,
    is_member,
    is_number_member,
)
from omnigraph_core.exec.scalars import arrow_column
from omnigraph_core.plan.bounds import FLIPPED
from omnigraph_core.plan.values import OPERATORS, compare_values, is_given
from omnigraph_core.query.operands import type_of
from omnigraph_core.query.typed import (
    All,
    Any,
    Compare,
    Holds,
    IsIn,
    IsNull,
    PropertyValue,
    TypedCondition,
    TypedExpr,
    TypedOp,
)
from omnigraph_core.types import STRING

if TYPE_CHECKING:
    from omnigraph_core.exec.comparisons import Numbers
    from omnigraph_core.plan.values import Values
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

ColumnOf: TypeAlias = Callable[[TypedExpr], pa.Array | pa.ChunkedArray]
"""Gives the column of an expression that depends on the row."""


def matches(condition: TypedCondition, rows: pa.Table, values: Values) -> pa.BooleanArray:
    """Which rows satisfy a condition on their own columns; no nulls, unknown counts as false."""

    def column_of(expr: TypedExpr) -> pa.ChunkedArray:
        if isinstance(expr, PropertyValue):
            return rows.column(expr.property)
        raise InvariantBroken(f"a condition on rows compares their columns, found {expr}")

    return evaluate(condition, rows.num_rows, column_of, values)


def evaluate(
    condition: TypedCondition, length: int, column_of: ColumnOf, values: Values
) -> pa.BooleanArray:
    """Which of `length` rows satisfy a condition whose columns come from anywhere."""
    return pa.array(truth_of(condition, Operands(length, column_of), values))


@dataclass(frozen=True, slots=True)
class Coded:
    """Texts that repeat: one code per row, -1 for null, and the distinct texts codes stand for."""

    codes: np.ndarray
    distinct: pa.Array

    def where(self, hits: np.ndarray) -> np.ndarray:
        """Which rows have a text that is hit, given which of the distinct ones are."""
        places = np.flatnonzero(hits)
        if not len(places):
            return everywhere(len(self.codes), is_true=False)
        if len(places) == 1:
            found: np.ndarray = self.codes == int(places[0])  # not a wider comparison
            return found
        return np.append(hits, False).take(self.codes)  # -1 is the last one


class Operands:
    """The columns a condition is about. Whoever knows a quicker form of one offers it here."""

    def __init__(self, length: int, column_of: ColumnOf) -> None:
        self.length = length
        self._column_of = column_of

    def column(self, expr: TypedExpr) -> pa.Array:
        column = self._column_of(expr)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def try_numbers(self, expr: TypedExpr) -> Numbers | None:
        """The column as numbers, if that comes for free."""
        return None

    def try_holding(self, expr: TypedExpr) -> np.ndarray | None:
        """Where a Boolean column is true, as an array of the caller's own."""
        return None

    def try_coded(self, expr: TypedExpr) -> Coded | None:
        """A column of texts as codes, if that comes for free."""
        return None

    def try_pair(self, left: TypedExpr, right: TypedExpr) -> tuple[np.ndarray, np.ndarray] | None:
        """Integers, below zero for null, that are equal exactly where the two columns are."""
        return None


def truth_of(condition: TypedCondition, operands: Operands, values: Values) -> np.ndarray:
    """Which rows satisfy a condition, as an array of their own."""
    return _Evaluation(operands, values).truth(condition)


class _Evaluation:
    """One condition over one set of rows."""

    __slots__ = ("_operands", "_values")

    def __init__(self, operands: Operands, values: Values) -> None:
        self._operands = operands
        self._values = values

    def truth(self, condition: TypedCondition) -> np.ndarray:
        match condition:
            case Compare(left, op, right):
                return self._compare(left, op, right)
            case IsIn():
                return self._is_in(condition)
            case IsNull():
                return self._is_null(condition)
            case Holds(operand):
                return self._holds(operand)
            case All(operands):
                return self._combined(operands, np.logical_and, is_true=True)
            case Any(operands):
                return self._combined(operands, np.logical_or, is_true=False)

    def _combined(
        self, parts: tuple[TypedCondition, ...], combine: np.ufunc, *, is_true: bool
    ) -> np.ndarray:
        if not parts:
            return self._everywhere(is_true=is_true)
        truth = self.truth(parts[0])
        for part in parts[1:]:
            combine(truth, self.truth(part), out=truth)
        return truth

    def _compare(self, left: TypedExpr, op: TypedOp, right: TypedExpr) -> np.ndarray:
        if is_given(right):
            if is_given(left):
                is_true = compare_values(self._values.of(left), op, self._values.of(right))
                return self._everywhere(is_true=is_true)
            return self._compare_with(left, op, self._values.of(right))
        if op is TypedOp.HAS_MEMBER:
            return self._has_member(left, self._operands.column(right))
        if is_given(left):
            if op in FLIPPED:
                return self._compare_with(right, FLIPPED[op], self._values.of(left))
            repeated = arrow_column(self._values.of(left), STRING, self._operands.length)
            return compare_columns(repeated, op, self._operands.column(right))
        return self._compare_both(left, op, right)

    def _compare_with(self, left: TypedExpr, op: TypedOp, value: Value) -> np.ndarray:
        if value is None:
            return self._everywhere(is_true=False)
        if op is TypedOp.HAS_MEMBER:
            return self._has_member(left, value)
        if value is True and op is TypedOp.EQ:
            return self._holds(left)
        type = _type(left)
        if (numbers := self._operands.try_numbers(left)) is not None:
            return compare_number(numbers, type, op, value)
        if (coded := self._operands.try_coded(left)) is not None:
            return coded.where(compare_with_value(coded.distinct, type, op, value))
        return compare_with_value(self._operands.column(left), type, op, value)

    def _compare_both(self, left: TypedExpr, op: TypedOp, right: TypedExpr) -> np.ndarray:
        if op is TypedOp.EQ or op is TypedOp.NE:
            pair = self._operands.try_pair(left, right)
            if pair is not None:
                return _compare_pair(pair, op)
        a, b = self._operands.try_numbers(left), self._operands.try_numbers(right)
        if a is not None and b is not None:
            return compare_numbers(a, op, b)
        return compare_columns(self._operands.column(left), op, self._operands.column(right))

    def _has_member(self, left: TypedExpr, right: Value | pa.Array) -> np.ndarray:
        lists = self._operands.column(left)
        members, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
        if isinstance(right, pa.Array):
            equal = compare_columns(members, TypedOp.EQ, right.take(owners))
        else:
            equal = compare_with_value(members, _type(left).element, TypedOp.EQ, right)
        found = self._everywhere(is_true=False)
        found[owners.to_numpy()[equal]] = True
        return found

    def _is_in(self, condition: IsIn) -> np.ndarray:
        options = self._values.of(condition.options)
        item = condition.item
        if options is None:
            return self._everywhere(is_true=False)
        assert isinstance(options, tuple)
        if is_given(item):
            value = self._values.of(item)
            is_true = any(compare_values(value, TypedOp.EQ, option) for option in options)
            return self._everywhere(is_true=is_true)
        type = _type(item)
        if (numbers := self._operands.try_numbers(item)) is not None:
            return is_number_member(numbers, type, options)
        if (coded := self._operands.try_coded(item)) is not None:
            return coded.where(is_member(coded.distinct, type, options))
        return is_member(self._operands.column(item), type, options)

    def _is_null(self, condition: IsNull) -> np.ndarray:
        operand, is_negated = condition.operand, condition.is_negated
        if is_given(operand):
            is_null = self._values.of(operand) is None
            return self._everywhere(is_true=is_null is not is_negated)
        numbers = self._operands.try_numbers(operand)
        if numbers is None:
            column = self._operands.column(operand)
            return as_truth(column.is_valid() if is_negated else column.is_null())
        if numbers.valid is None:
            return self._everywhere(is_true=is_negated)
        return numbers.valid.copy() if is_negated else ~numbers.valid

    def _holds(self, operand: TypedExpr) -> np.ndarray:
        if is_given(operand):
            return self._everywhere(is_true=self._values.of(operand) is True)
        if (holding := self._operands.try_holding(operand)) is not None:
            return holding
        if (numbers := self._operands.try_numbers(operand)) is not None:
            return numbers.known(numbers.values.copy())
        return as_truth(self._operands.column(operand))

    def _everywhere(self, *, is_true: bool) -> np.ndarray:
        return everywhere(self._operands.length, is_true=is_true)


def _compare_pair(pair: tuple[np.ndarray, np.ndarray], op: TypedOp) -> np.ndarray:
    left, right = pair
    truth: np.ndarray = OPERATORS[op](left, right)
    truth &= left >= 0
    if op is TypedOp.NE:
        truth &= right >= 0
    return truth


def _type(expr: TypedExpr) -> PropType:
    type = type_of(expr)
    if type is None:
        raise InvariantBroken(f"conditions compare values, not nodes, found {expr}")
    return type
