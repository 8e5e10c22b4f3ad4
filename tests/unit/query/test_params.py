"""Parameters: JSON in, typed values out, every problem named at once."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph_core.errors import ParameterError
from omnigraph_core.query.checked import CheckedParam
from omnigraph_core.query.params import coerce_params
from omnigraph_core.types import BOOL, DATE, DATETIME, F64, I64, STRING, U64, PropType, Scalar
from tests.support.cases import each

I32 = PropType(Scalar.I32)
U32 = PropType(Scalar.U32)
BLOB = PropType(Scalar.BLOB)
VECTOR = PropType(Scalar.VECTOR, dimension=2)
STRINGS = PropType(Scalar.STRING, is_list=True)


def coerce(type: PropType, value: object) -> object:
    return coerce_params((CheckedParam("x", type),), {"x": value})["x"]


def problems(declared: dict[str, PropType], given: dict[str, object] | None) -> tuple[str, ...]:
    with pytest.raises(ParameterError) as refused:
        coerce_params(tuple(CheckedParam(n, t) for n, t in declared.items()), given)
    return refused.value.problems


@each(
    ("type", "value", "expected"),
    [
        (STRING, "a", "a"),
        (BLOB, "base64:AAA=", "base64:AAA="),
        (BOOL, True, True),
        (I32, -5, -5),
        (I64, "9007199254740993", 9007199254740993),
        (U32, 4294967295, 4294967295),
        (U64, 2**64 - 1, 2**64 - 1),
        (U64, str(2**64 - 1), 2**64 - 1),
        (F64, 3, 3.0),
        (DATE, "2026-01-31", dt.date(2026, 1, 31)),
        (DATETIME, "2026-01-31", dt.datetime(2026, 1, 31, tzinfo=dt.UTC)),
        (STRINGS, ["a", "b"], ("a", "b")),
        (STRINGS, [], ()),
        (VECTOR, [1, 2.5], (1.0, 2.5)),
        (I64.nullable(), None, None),
    ],
)
def test_values(type: PropType, value: object, expected: object) -> None:
    found = coerce(type, value)
    assert found == expected
    assert found.__class__ is expected.__class__


@each(
    ("type", "value", "message"),
    [
        (STRING, 1, "param 'x': expected String, found number 1"),
        (STRING, None, "param 'x': expected String, found null"),
        (BOOL, "true", "param 'x': expected Bool, found text 'true'"),
        (I32, 2**31, "param 'x': 2147483648 is out of range for I32 (-2147483648..2147483647)"),
        (I64, 1.5, "param 'x': expected I64, found number 1.5"),
        (I64, True, "param 'x': expected I64, found boolean true"),
        (U32, -1, "param 'x': -1 is out of range for U32 (0..4294967295)"),
        (U64, 2**64, f"param 'x': {2**64} is out of range for U64 (0..{2**64 - 1})"),
        (F64, "1", "param 'x': expected a number, found text '1'"),
        (VECTOR, [1], "param 'x': expected 2 numbers, found 1"),
        (STRINGS, "a", "param 'x': expected [String] as an array, found text 'a'"),
        (STRINGS, ["a", 2], "param 'x': element 1: expected String, found number 2"),
        (STRING, {"a": 1}, "param 'x': expected String, found an object"),
    ],
)
def test_refusals(type: PropType, value: object, message: str) -> None:
    assert problems({"x": type}, {"x": value}) == (message,)


@pytest.mark.parametrize("value", ["2026-02-30", "31.01.2026"])
def test_impossible_dates_are_refused_before_the_query_runs(value: str) -> None:
    (problem,) = problems({"day": DATE}, {"day": value})
    assert problem.startswith("param 'day': ")
    assert value in problem


@pytest.mark.parametrize("given", [None, {}])
def test_left_out(given: dict[str, object] | None) -> None:
    assert coerce_params((CheckedParam("n", I64.nullable()),), given) == {"n": None}
    assert problems({"n": I64}, given) == ("param 'n': missing, expected I64",)


def test_undeclared() -> None:
    assert problems({"name": STRING}, {"name": "a", "nama": "b"}) == (
        "param 'nama': not declared by the query; did you mean `name`?",
    )
    assert problems({"name": STRING}, {"name": "a", "zzz": 1}) == (
        "param 'zzz': not declared by the query; it declares `name`",
    )
    assert problems({}, {"a": 1}) == (
        "param 'a': not declared by the query; it declares no parameters",
    )


def test_all_problems_come_together() -> None:
    found = problems({"a": STRING, "b": I64, "c": BOOL}, {"a": 1, "c": True, "bb": 2})
    assert [problem.split(":")[0] for problem in found] == ["param 'a'", "param 'b'", "param 'bb'"]


def test_no_parameters() -> None:
    assert coerce_params((), None) == {}


def test_values_come_in_declaration_order() -> None:
    declared = (CheckedParam("b", I64), CheckedParam("a", I64))
    assert list(coerce_params(declared, {"a": 1, "b": 2})) == ["b", "a"]
