"""Rows with a column of every type, and conditions on them: values at the edges of what types hold.

Each row is kept twice, as plain values for the oracle and as Arrow columns for the engine.
"""

from __future__ import annotations

import datetime as dt
import struct
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import strategies as st

from omnigraph_core.exec.scalars import arrow_array
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
    TypedOp,
)
from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import F64, I64, STRING, U64, PropType, Scalar
from tests.support.oracle_graph import Node

if TYPE_CHECKING:
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.values import Value


def f32(number: float) -> float:
    nearest: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return nearest


INTEGERS = [-(2**63), -(2**31), -1, 0, 1, 2, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**53 + 1]
INTEGERS += [2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [-1.5, -0.0, 0.0, 0.1, f32(0.1), 1.0, 2.5, 2.0**53, 2.0**63, 2.0**64, -(2.0**63), 5e-324]
FLOATS += [f32(3.4e38), 1.7976931348623157e308, -1e300]
TEXTS = ["", "a", "ab", "b", "A", "x'y", "%", "_", "\\", "\n", "é", "\U0001f600", "\uffff", "\x00"]
DATES = [dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 1, 31), dt.date.max]
MOMENTS = [
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
    dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=dt.UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC),
]
RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


def samples(scalar: Scalar) -> list[Value]:
    """Values a column of the type can hold."""
    if scalar in RANGES:
        low, high = RANGES[scalar]
        return [number for number in INTEGERS if low <= number <= high]
    if scalar is Scalar.F32:
        return sorted({f32(number) for number in FLOATS if abs(number) < 3.5e38})
    others: dict[Scalar, list[Value]] = {
        Scalar.F64: list(FLOATS),
        Scalar.STRING: list(TEXTS),
        Scalar.BOOL: [False, True],
        Scalar.DATE: list(DATES),
        Scalar.DATETIME: list(MOMENTS),
    }
    return others[scalar]


PLAIN = [scalar for scalar in Scalar if scalar not in (Scalar.BLOB, Scalar.VECTOR)]
COLUMNS = {f"one {scalar}": PropType(scalar, is_nullable=True) for scalar in PLAIN}
COLUMNS |= {f"two {scalar}": PropType(scalar, is_nullable=True) for scalar in PLAIN}
COLUMNS |= {f"list {s}": PropType(s, is_list=True, is_nullable=True) for s in PLAIN}
ROWS = 45


def _cell(name: str, type: PropType, row: int) -> Value:
    """Every value of a type turns up; columns of one type are out of step."""
    known = samples(type.scalar)
    if type.is_list:
        size = row % 4 - 1
        return None if size < 0 else tuple(known[(row + 3 * i) % len(known)] for i in range(size))
    step = row if name.startswith("one") else row * 7 + row // len(known)
    return [*known, None][step % (len(known) + 1)]


def nodes() -> list[Node]:
    """The rows for the oracle."""
    return [
        Node("Sample", f"{row:02}", {name: _cell(name, t, row) for name, t in COLUMNS.items()})
        for row in range(ROWS)
    ]


def arrow_rows() -> pa.Table:
    """The same rows as a table."""
    rows = nodes()
    columns = {"id": pa.array([node.id for node in rows], pa.utf8())}
    for name, type in COLUMNS.items():
        columns[name] = arrow_array([node.properties[name] for node in rows], type)
    fields = [pa.field("id", pa.utf8(), nullable=False)]
    fields += [pa.field(name, arrow_type(type)) for name, type in COLUMNS.items()]
    return pa.table(columns, schema=pa.schema(fields))


def _column(name: str) -> PropertyValue:
    return PropertyValue(TARGET, name, COLUMNS[name])


def _given(values: list[Value], type: PropType) -> st.SearchStrategy[TypedExpr]:
    """A constant, or a parameter that holds the value: its name leads to it."""
    constants = st.sampled_from(values).map(lambda value: Constant(value, type))
    params = st.sampled_from(values).map(lambda value: ParamValue(repr(value), type))
    return constants | params | st.just(ParamValue("None", type.nullable()))


def _beside(scalar: Scalar) -> st.SearchStrategy[TypedExpr]:
    """What a column of the type may be compared with."""
    names = [name for name, type in COLUMNS.items() if not type.is_list]
    if scalar.is_numeric:
        others = [name for name in names if COLUMNS[name].scalar.is_numeric]
        numbers = _given([n for n in INTEGERS if n < 2**63], I64) | _given(list(FLOATS), F64)
        return numbers | _given([2**63, 2**64 - 1], U64) | st.sampled_from(others).map(_column)
    others = [name for name in names if COLUMNS[name].scalar is scalar]
    return _given(samples(scalar), PropType(scalar)) | st.sampled_from(others).map(_column)


ORDERED = [TypedOp.EQ, TypedOp.NE, TypedOp.LT, TypedOp.LE, TypedOp.GT, TypedOp.GE]


@st.composite
def _comparisons(draw: st.DrawFn) -> TypedCondition:
    scalar = draw(st.sampled_from(PLAIN))
    column, other = _column(f"one {scalar}"), draw(_beside(scalar))
    op = draw(st.sampled_from(ORDERED))
    return draw(st.sampled_from([Compare(column, op, other), Compare(other, op, column)]))


@st.composite
def _text_tests(draw: st.DrawFn) -> TypedCondition:
    column, other = _column(f"one {Scalar.STRING}"), draw(_beside(Scalar.STRING))
    op = draw(st.sampled_from([TypedOp.HAS_TEXT, TypedOp.STARTS_WITH]))
    return draw(st.sampled_from([Compare(column, op, other), Compare(other, op, column)]))


@st.composite
def _member_tests(draw: st.DrawFn) -> TypedCondition:
    scalar = draw(st.sampled_from(PLAIN))
    lists = _column(f"list {scalar}")
    return Compare(lists, TypedOp.HAS_MEMBER, draw(_beside(scalar)))


@st.composite
def _memberships(draw: st.DrawFn) -> TypedCondition:
    scalar = draw(st.sampled_from(PLAIN))
    options = draw(st.sampled_from([I64, F64, U64])).scalar if scalar.is_numeric else scalar
    values = tuple(draw(st.lists(st.sampled_from(samples(options)), max_size=4)))
    type = PropType(options, is_list=True)
    given = draw(
        st.sampled_from(
            [Constant(values, type), ParamValue(repr(values), type), ParamValue("None", type)]
        )
    )
    item = draw(st.just(_column(f"one {scalar}")) | _given(samples(scalar), PropType(scalar)))
    return IsIn(item, given)


@st.composite
def _null_tests(draw: st.DrawFn) -> TypedCondition:
    operand: TypedExpr = _column(draw(st.sampled_from(list(COLUMNS))))
    operand = draw(st.sampled_from([operand, ParamValue("None", STRING.nullable())]))
    return IsNull(operand, draw(st.booleans()))


_truths = st.sampled_from([_column("one Bool"), Constant(True, PropType(Scalar.BOOL))]).map(Holds)

leaves = st.one_of(
    _comparisons(), _comparisons(), _text_tests(), _member_tests(), _memberships(), _null_tests(),
    _truths,
)  # fmt: skip
conditions: st.SearchStrategy[TypedCondition] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        .map(tuple)
        .flatmap(lambda parts: st.sampled_from([All(parts), Any(parts)]))
    ),
    max_leaves=6,
)


class Params(dict[str, "Value"]):
    """Parameters named after the value they hold."""

    def __missing__(self, name: str) -> Value:
        value: Value = eval(name, {"datetime": dt})
        return value
