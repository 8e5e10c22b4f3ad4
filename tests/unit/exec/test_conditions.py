"""Conditions on columns: what the laws over random conditions do not reach."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.exec.conditions import evaluate, matches
from omnigraph_core.plan.values import Values
from omnigraph_core.query.typed import (
    TARGET,
    All,
    Any,
    Compare,
    Constant,
    Holds,
    IsIn,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    TypedExpr,
    TypedOp,
)
from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import DATETIME, F64, I64, STRING, PropType, Scalar
from tests.support.oracle import NOW

VALUES = Values(NOW)
VECTOR = PropType(Scalar.VECTOR, dimension=2, is_nullable=True)
SHAPES = pa.table({"shape": pa.array([[1, 2], None, [1, 3]], arrow_type(VECTOR))})


def column(name: str, type: PropType) -> PropertyValue:
    return PropertyValue(TARGET, name, type)


@pytest.mark.parametrize(
    ("op", "expected"), [(TypedOp.EQ, [True, False, False]), (TypedOp.NE, [False, False, True])]
)
def test_a_vector_equals_the_same_numbers(op: TypedOp, expected: list[bool]) -> None:
    shape = Constant((1.0, 2.0), VECTOR)
    condition = Compare(column("shape", VECTOR), op, shape)

    assert matches(condition, SHAPES, VALUES).to_pylist() == expected


def test_an_empty_conjunction_is_true_and_an_empty_disjunction_false() -> None:
    assert matches(All(()), SHAPES, VALUES).to_pylist() == [True] * 3
    assert matches(Any(()), SHAPES, VALUES).to_pylist() == [False] * 3


def test_now_is_one_moment() -> None:
    at = pa.array([1767225600000, 1767225600001, None], pa.int64()).cast(pa.date64())
    condition = Compare(column("at", DATETIME), TypedOp.LE, NowValue())

    assert matches(condition, pa.table({"at": at}), VALUES).to_pylist() == [True, False, False]


def test_an_f32_parameter_finds_what_was_stored_from_it() -> None:
    single = PropType(Scalar.F32)
    rows = pa.table({"x": pa.array([0.1, 0.2], pa.float32())})
    values = Values(NOW, {"p": 0.1, "l": (0.1, 0.3)})
    equals = Compare(column("x", single), TypedOp.EQ, ParamValue("p", single))
    among = IsIn(column("x", single), ParamValue("l", PropType(Scalar.F32, is_list=True)))
    literal = Compare(column("x", single), TypedOp.EQ, Constant(0.1, F64))

    assert matches(equals, rows, values).to_pylist() == [True, False]
    assert matches(among, rows, values).to_pylist() == [True, False]
    assert matches(literal, rows, values).to_pylist() == [False, False]


def test_columns_in_several_chunks_and_slices() -> None:
    tags = PropType(Scalar.STRING, is_list=True, is_nullable=True)
    chunks = [[["a"], None, ["b", "a"]], [], [["c"], []]]
    lists = pa.chunked_array(chunks, arrow_type(tags))
    condition = Compare(column("tags", tags), TypedOp.HAS_MEMBER, Constant("a", STRING))
    rows = pa.table({"tags": lists})

    assert matches(condition, rows, VALUES).to_pylist() == [True, False, True, False, False]
    assert matches(condition, rows.slice(2, 2), VALUES).to_pylist() == [True, False]
    assert matches(condition, rows.slice(0, 0), VALUES).to_pylist() == []


def test_nan_is_unequal_and_unordered() -> None:
    numbers = pa.table({"n": [1, 1], "f": [float("nan"), 1.5]})
    n, f = column("n", I64), column("f", F64)

    def truth(op: TypedOp) -> list[bool]:
        both: list[bool] = matches(Compare(n, op, f), numbers, VALUES).to_pylist()
        return both

    assert truth(TypedOp.NE) == [True, True]
    assert truth(TypedOp.LT) == [False, True]
    assert truth(TypedOp.EQ) == truth(TypedOp.GE) == [False, False]


def test_columns_may_come_from_anywhere() -> None:
    flags = pa.array([True, None, False])
    node = NodeValue("p", "Part")

    def column_of(expr: TypedExpr) -> pa.Array:
        return {"flag": flags}[expr.property] if isinstance(expr, PropertyValue) else flags

    flag = Holds(PropertyValue("p", "flag", PropType(Scalar.BOOL, is_nullable=True)))
    assert evaluate(flag, 3, column_of, VALUES).to_pylist() == [True, False, False]
    with pytest.raises(InvariantBroken, match="not nodes"):
        evaluate(Compare(node, TypedOp.EQ, Constant(1, I64)), 3, column_of, VALUES)
    with pytest.raises(InvariantBroken, match="their columns"):
        matches(Holds(node), pa.table({"flag": flags}), VALUES)
