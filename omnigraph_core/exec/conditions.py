"""Conditions over Arrow columns: which rows of a table satisfy one.

Three-valued logic with unknown counted as false at every comparison. Since conditions have no
negation, that is the same as counting it as false at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.exec.comparisons import (
    compare_columns,
    compare_with_value,
    everywhere,
    is_member,
    known,
)
from omnigraph_core.exec.scalars import arrow_column
from omnigraph_core.plan.bounds import FLIPPED
from omnigraph_core.plan.values import compare_values, is_given
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
    from omnigraph_core.plan.values import Values
    from omnigraph_core.types import PropType

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
    return _Evaluation(length, column_of, values).truth(condition)


class _Evaluation:
    """One condition over one set of rows."""

    def __init__(self, length: int, column_of: ColumnOf, values: Values) -> None:
        self._length = length
        self._column_of = column_of
        self._values = values

    def truth(self, condition: TypedCondition) -> pa.BooleanArray:
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
                parts = map(self.truth, operands)
                return reduce(pc.and_, parts, everywhere(self._length, is_true=True))
            case Any(operands):
                parts = map(self.truth, operands)
                return reduce(pc.or_, parts, everywhere(self._length, is_true=False))

    def _compare(self, left: TypedExpr, op: TypedOp, right: TypedExpr) -> pa.BooleanArray:
        if is_given(left) and is_given(right):
            is_true = compare_values(self._values.of(left), op, self._values.of(right))
            return everywhere(self._length, is_true=is_true)
        if op is TypedOp.HAS_MEMBER:
            return self._has_member(left, right)
        if is_given(right):
            value = self._values.of(right)
            return compare_with_value(self._column(left), _type(left), op, value)
        if is_given(left) and op in FLIPPED:
            return self._compare(right, FLIPPED[op], left)
        if is_given(left):
            repeated = arrow_column(self._values.of(left), STRING, self._length)
            return compare_columns(repeated, op, self._column(right))
        return compare_columns(self._column(left), op, self._column(right))

    def _has_member(self, left: TypedExpr, right: TypedExpr) -> pa.BooleanArray:
        lists = self._column(left)
        members, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
        if is_given(right):
            value = self._values.of(right)
            equal = compare_with_value(members, _type(left).element, TypedOp.EQ, value)
        else:
            beside = self._column(right).take(owners)
            equal = compare_columns(members, TypedOp.EQ, beside)
        found = np.zeros(self._length, np.bool_)
        found[owners.filter(equal).to_numpy()] = True
        return pa.array(found)

    def _is_in(self, condition: IsIn) -> pa.BooleanArray:
        options = self._values.of(condition.options)
        item = condition.item
        if options is None:
            return everywhere(self._length, is_true=False)
        assert isinstance(options, tuple)
        if is_given(item):
            value = self._values.of(item)
            is_true = any(compare_values(value, TypedOp.EQ, option) for option in options)
            return everywhere(self._length, is_true=is_true)
        return is_member(self._column(item), _type(item), options)

    def _is_null(self, condition: IsNull) -> pa.BooleanArray:
        operand, is_negated = condition.operand, condition.is_negated
        if is_given(operand):
            is_null = self._values.of(operand) is None
            return everywhere(self._length, is_true=is_null is not is_negated)
        column = self._column(operand)
        return column.is_valid() if is_negated else column.is_null()

    def _holds(self, operand: TypedExpr) -> pa.BooleanArray:
        if is_given(operand):
            return everywhere(self._length, is_true=self._values.of(operand) is True)
        return known(self._column(operand))

    def _column(self, expr: TypedExpr) -> pa.Array:
        column = self._column_of(expr)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _type(expr: TypedExpr) -> PropType:
    type = type_of(expr)
    if type is None:
        raise InvariantBroken(f"conditions compare values, not nodes, found {expr}")
    return type
