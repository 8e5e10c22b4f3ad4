"""Conditions as Lance filters: a typed condition comes in, SQL text goes out.

The filter lets through every row the condition accepts, and maybe others: a part that cannot be
said without doubt is left out. Whoever uses it checks the rows that come again. It never fails on
a row: literals have the column's own type and are within its range.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.plan.bounds import FLIPPED, fit_bound
from omnigraph_core.plan.values import compare_values, is_given
from omnigraph_core.query.typed import (
    All,
    Any,
    Compare,
    Holds,
    IsIn,
    IsNull,
    PropertyValue,
    TypedOp,
)
from omnigraph_core.types import Scalar
from omnigraph_core.values import epoch_milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

Pushed: TypeAlias = str | bool
"""SQL; True lets every row through, False none."""

NO_ROWS: Final = "false"
"""The filter that lets no row through."""
MAX_MEMBERS: Final = 1_000
"""Options an `in` may have to be pushed: beyond, one pass over the column costs less."""

_TEXT_FUNCTIONS: Final = {TypedOp.HAS_TEXT: "contains", TypedOp.STARTS_WITH: "starts_with"}
_LEAST_I64: Final = -(2**63)


def lance_filter(condition: TypedCondition, values: Values) -> str | None:
    """The filter for a condition on one table, None if every row must be looked at.

    >>> from omnigraph_core.plan.values import Values
    >>> from omnigraph_core.query.typed import Constant
    >>> from omnigraph_core.types import F64, I64
    >>> stock = PropertyValue("target", "stock", I64)
    >>> now = Values(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    >>> lance_filter(Compare(stock, TypedOp.LT, Constant(2.5, F64)), now)
    '`stock` <= 2'
    """
    pushed = _push(condition, values)
    if isinstance(pushed, bool):
        return None if pushed else NO_ROWS
    return pushed


def _push(condition: TypedCondition, values: Values) -> Pushed:
    match condition:
        case Compare(left, op, right):
            return _compare(left, op, right, values)
        case IsIn(item, options):
            return _is_in(item, values.of(options), values)
        case IsNull(operand, is_negated):
            return _is_null(operand, values, is_negated=is_negated)
        case Holds(operand):
            return _holds(operand, values)
        case All(operands):
            return _all(_push(part, values) for part in operands)
        case Any(operands):
            return _any(_push(part, values) for part in operands)


def _all(parts: Iterable[Pushed]) -> Pushed:
    said = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            said.append(f"({part})")
    return " AND ".join(said) or True


def _any(parts: Iterable[Pushed]) -> Pushed:
    said = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            said.append(f"({part})")
    return " OR ".join(said) or False


def _compare(left: TypedExpr, op: TypedOp, right: TypedExpr, values: Values) -> Pushed:
    if is_given(left):
        if is_given(right):
            return compare_values(values.of(left), op, values.of(right))
        return _compare(right, FLIPPED[op], left, values) if op in FLIPPED else True
    if not isinstance(left, PropertyValue) or not is_given(right):
        return True
    value = values.of(right)
    if value is None:
        return False
    if op is TypedOp.HAS_MEMBER:
        return _has_member(left, value)
    if op in _TEXT_FUNCTIONS:
        return f"{_TEXT_FUNCTIONS[op]}({_name(left)}, {_text(str(value))})"
    return _bound(left, op, value)


def _bound(column: PropertyValue, op: TypedOp, value: Value) -> Pushed:
    scalar = column.type.scalar
    if isinstance(value, int | float) and scalar.is_numeric:
        fitted = fit_bound(op, value, scalar)
        if isinstance(fitted, bool):
            return fitted
        op, value = fitted
        if scalar.is_float and not value:
            return _zero_bound(_name(column), op)
    literal = _literal(value, column.type)
    return True if literal is None else f"{_name(column)} {op} {literal}"


def _zero_bound(name: str, op: TypedOp) -> Pushed:
    """An index may order -0.0 before 0.0; whichever it does, no zero is lost."""
    if op is TypedOp.EQ:
        return f"{name} >= -0.0 AND {name} <= 0.0"
    if op is TypedOp.NE:
        return f"{name} IS NOT NULL"
    return f"{name} {op} {'-0.0' if op in (TypedOp.GE, TypedOp.GT) else '0.0'}"


def _has_member(column: PropertyValue, value: Value) -> Pushed:
    """Only texts: a literal number is not of the members' type, and Lance converts neither."""
    if not isinstance(value, str):
        return True
    return f"array_has({_name(column)}, {_text(value)})"


def _is_in(item: TypedExpr, options: Value, values: Values) -> Pushed:
    if not isinstance(options, tuple):
        return False  # a null list has no members
    if is_given(item):
        value = values.of(item)
        return any(compare_values(value, TypedOp.EQ, option) for option in options)
    if not isinstance(item, PropertyValue) or len(options) > MAX_MEMBERS:
        return True
    scalar = item.type.scalar
    if scalar.is_float:
        return _any(_bound(item, TypedOp.EQ, option) for option in options)
    literals: list[str] = []
    for option in options:
        if isinstance(option, int | float) and scalar.is_numeric:
            fitted = fit_bound(TypedOp.EQ, option, scalar)
            if isinstance(fitted, bool):
                continue
            option = fitted[1]
        literal = _literal(option, item.type)
        if literal is None:
            return True
        literals.append(literal)
    return f"{_name(item)} IN ({', '.join(literals)})" if literals else False


def _is_null(operand: TypedExpr, values: Values, *, is_negated: bool) -> Pushed:
    if is_given(operand):
        return (values.of(operand) is None) is not is_negated
    if not isinstance(operand, PropertyValue):
        return True
    return f"{_name(operand)} IS {'NOT ' if is_negated else ''}NULL"


def _holds(operand: TypedExpr, values: Values) -> Pushed:
    if is_given(operand):
        return values.of(operand) is True
    return f"{_name(operand)} = true" if isinstance(operand, PropertyValue) else True


def _name(column: PropertyValue) -> str:
    return f"`{column.property}`"


def _literal(value: Value, type: PropType) -> str | None:
    """A value as SQL of the column's type; None if there is no safe way to write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return None if value == _LEAST_I64 and type.scalar is Scalar.I64 else repr(value)
    if isinstance(value, dt.datetime):
        # As a timestamp it would be compared in nanoseconds, which not every moment has.
        return f"arrow_cast({epoch_milliseconds(value)}, 'Date64')"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    return _text(value) if isinstance(value, str) else None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
