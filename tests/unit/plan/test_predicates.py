"""Filters as text: what is pushed, how it is written, and what is left to the rows."""

from __future__ import annotations

import datetime as dt

from omnigraph_core.plan.predicates import MAX_MEMBERS, NO_ROWS, lance_filter
from omnigraph_core.plan.values import Values
from omnigraph_core.query.typed import (
    TARGET,
    All,
    Any,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    ParamValue,
    PropertyValue,
    TypedCondition,
    TypedOp,
)
from omnigraph_core.types import BOOL, DATE, DATETIME, F64, I64, STRING, PropType, Scalar
from tests.support.cases import each
from tests.support.oracle import NOW

VALUES = Values(NOW, {"none": None, "many": tuple(range(MAX_MEMBERS + 1))})
NAME = PropertyValue(TARGET, "name", STRING)
STOCK = PropertyValue(TARGET, "stock", I64)
WEIGHT = PropertyValue(TARGET, "weight", F64)
TAGS = PropertyValue(TARGET, "tags", PropType(Scalar.STRING, is_list=True))
SIZES = PropertyValue(TARGET, "sizes", PropType(Scalar.I64, is_list=True))
INTEGERS = PropType(Scalar.I64, is_list=True)
NOTHING = ParamValue("none", STRING.nullable())
COLUMNS = Compare(NAME, TypedOp.EQ, PropertyValue(TARGET, "code", STRING))
POSITIVE = Compare(STOCK, TypedOp.GT, Constant(0, I64))


def eq(column: PropertyValue, value: object, type: PropType) -> Compare:
    return Compare(column, TypedOp.EQ, Constant(value, type))  # type: ignore[arg-type]


@each(
    ("condition", "expected"),
    [
        (eq(NAME, "x'y\\", STRING), "`name` = 'x''y\\'"),
        (Compare(Constant(3, I64), TypedOp.LT, STOCK), "`stock` > 3"),
        (eq(PropertyValue(TARGET, "on", DATE), dt.date(1, 2, 3), DATE), "`on` = date '0001-02-03'"),
        (
            eq(PropertyValue(TARGET, "at", DATETIME), NOW, DATETIME),
            "`at` = arrow_cast(1767225600000, 'Date64')",
        ),
        (eq(WEIGHT, 0.0, F64), "`weight` >= -0.0 AND `weight` <= 0.0"),
        (Compare(WEIGHT, TypedOp.NE, Constant(0.0, F64)), "`weight` IS NOT NULL"),
        (Compare(WEIGHT, TypedOp.GE, Constant(0.0, F64)), "`weight` >= -0.0"),
        (Compare(WEIGHT, TypedOp.LT, Constant(0.0, F64)), "`weight` < 0.0"),
        (eq(PropertyValue(TARGET, "is", BOOL), False, BOOL), "`is` = false"),
        (Holds(PropertyValue(TARGET, "is", BOOL)), "`is` = true"),
        (Compare(NAME, TypedOp.STARTS_WITH, Constant("%", STRING)), "starts_with(`name`, '%')"),
        (Compare(NAME, TypedOp.HAS_TEXT, Constant("_", STRING)), "contains(`name`, '_')"),
        (Compare(TAGS, TypedOp.HAS_MEMBER, Constant("a", STRING)), "array_has(`tags`, 'a')"),
        (IsNull(TAGS), "`tags` IS NULL"),
        (IsNull(NAME, is_negated=True), "`name` IS NOT NULL"),
        (IsIn(STOCK, Constant((1.0, 2.5, 3.0), F64)), "`stock` IN (1, 3)"),
        (All((POSITIVE, COLUMNS, IsNull(NAME))), "(`stock` > 0) AND (`name` IS NULL)"),
        (Any((POSITIVE, IsNull(NAME))), "(`stock` > 0) OR (`name` IS NULL)"),
        (Any((POSITIVE, Compare(NAME, TypedOp.EQ, NOTHING))), "(`stock` > 0)"),
    ],
)
def test_what_is_pushed(condition: TypedCondition, expected: str) -> None:
    assert lance_filter(condition, VALUES) == expected


@each(
    "condition",
    [
        COLUMNS,
        All(()),
        All((COLUMNS,)),
        Any((POSITIVE, COLUMNS)),
        eq(STOCK, -(2**63), I64),
        Compare(SIZES, TypedOp.HAS_MEMBER, Constant(1, I64)),
        Compare(Constant("ab", STRING), TypedOp.STARTS_WITH, NAME),
        Compare(Constant(1, I64), TypedOp.LT, Constant(2, I64)),
        IsIn(STOCK, ParamValue("many", INTEGERS)),
        IsNull(NOTHING),
    ],
)
def test_what_every_row_must_be_looked_at_for(condition: TypedCondition) -> None:
    assert lance_filter(condition, VALUES) is None


@each(
    "condition",
    [
        Any(()),
        Compare(NAME, TypedOp.EQ, NOTHING),
        All((POSITIVE, Compare(NAME, TypedOp.NE, NOTHING))),
        eq(STOCK, 2.5, F64),
        IsIn(STOCK, Constant((), INTEGERS)),
        IsIn(STOCK, ParamValue("none", INTEGERS.nullable())),
        IsNull(NOTHING, is_negated=True),
        Holds(Constant(False, BOOL)),
    ],
)
def test_what_no_row_can_satisfy(condition: TypedCondition) -> None:
    assert lance_filter(condition, VALUES) == NO_ROWS
