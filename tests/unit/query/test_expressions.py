"""Types and constants of expressions: what the executor and the result descriptor rely on."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph_core.diagnostics import Diagnostics, Source
from omnigraph_core.query.ast import Call, ListLiteral, Literal, Read, TemporalLiteral, Word
from omnigraph_core.query.check import check_query
from omnigraph_core.query.checked import CheckedFilter, CheckedRead
from omnigraph_core.query.functions import FUNCTIONS, FunctionKind, Place
from omnigraph_core.query.literals import check_literal, fit_assignment, meet
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.scope import Context
from omnigraph_core.query.typed import AggregateFunction, Compare, Constant, IsIn, TextFunction
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.types import F64, I64, STRING, U64, PropType, Scalar
from tests.support.cases import each

CATALOG = compile_schema(
    """
    node Sensor {
      name: String @key
      level: I32?
      ratio: F64?
      small: F32?
      total: U64?
      day: Date?
      seen: DateTime?
      tags: [String]?
      loads: [F64]?
      kind: enum(heat, light)?
      shape: Vector(3)?
    }
    """
)


def _context() -> Context:
    return Context(CATALOG, Diagnostics(Source("", "q.gq")))


def _read(clause: str, column: str = "$s.name") -> CheckedRead:
    text = f"query q($n: I64) {{ match {{ $s: Sensor {clause} }} return {{ {column} as c }} }}"
    query = parse_queries(text).queries[0]
    assert isinstance(query.body, Read)
    body = check_query(query, CATALOG, Source(text)).body
    assert isinstance(body, CheckedRead)
    return body


def _filter(clause: str) -> object:
    found = _read(clause).clauses[-1]
    assert isinstance(found, CheckedFilter)
    return found.condition


@each(
    ("written", "value", "type"),
    [
        (Literal("x"), "x", STRING),
        (Literal(7), 7, I64),
        (Literal(True), True, PropType(Scalar.BOOL)),
        (Literal(2.5), 2.5, F64),
        (Literal(-(2**63)), -(2**63), I64),
        (Literal(2**63), 2**63, U64),
        (Literal(2**64 - 1), 2**64 - 1, U64),
        (TemporalLiteral(Scalar.DATE, "2026-01-31"), dt.date(2026, 1, 31), PropType(Scalar.DATE)),
        (ListLiteral(()), (), PropType(Scalar.STRING, is_list=True)),
        (ListLiteral((Literal(1), Literal(2.5))), (1.0, 2.5), PropType(Scalar.F64, is_list=True)),
    ],
)
def test_a_literal_alone_has_its_own_type(
    written: Literal | TemporalLiteral | ListLiteral, value: object, type: PropType
) -> None:
    constant = check_literal(_context(), written)
    assert constant is not None
    assert (constant.value, constant.type) == (value, type)
    kind = float if type.scalar is Scalar.F64 else object
    values = constant.value if isinstance(constant.value, tuple) else (constant.value,)
    assert all(isinstance(item, kind) for item in values)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, float("inf")])
def test_a_number_beyond_64_bits_is_refused(value: float) -> None:
    ctx = _context()
    assert check_literal(ctx, Literal(value)) is None
    assert [item.code for item in ctx.problems.found] == ["T47"]


@each(
    ("clause", "value", "type"),
    [
        ("$s.ratio = 3", 3.0, F64),
        ("$s.small = 3", 3.0, F64),
        ("$s.level = 2.7", 2.7, F64),
        ("$s.level > 5000000000", 5_000_000_000, I64),
        ("$s.total = -1", -1, I64),
        ("$s.loads contains 3", 3.0, F64),
        ('$s.kind = "heat"', "heat", STRING),
    ],
)
def test_a_literal_in_a_comparison_is_never_truncated(
    clause: str, value: object, type: PropType
) -> None:
    condition = _filter(clause)
    assert isinstance(condition, Compare)
    assert condition.right == Constant(value, type)  # type: ignore[arg-type]
    assert isinstance(condition.right, Constant)
    assert isinstance(condition.right.value, float) is (type.scalar is Scalar.F64)


def test_membership_meets_the_type_of_its_item() -> None:
    condition = _filter("$s.ratio in [1, 2]")
    assert isinstance(condition, IsIn)
    assert condition.options == Constant((1.0, 2.0), PropType(Scalar.F64, is_list=True))
    empty = _filter("$s.day in []")
    assert isinstance(empty, IsIn)
    assert empty.options == Constant((), PropType(Scalar.DATE, is_list=True))


def test_membership_reads_the_same_either_way_round() -> None:
    assert _filter('["a", "b"] contains $s.name') == _filter('$s.name in ["a", "b"]')


def test_meeting_leaves_other_constants_alone() -> None:
    for constant in (Constant("x", STRING), Constant(2.5, F64), Constant(3, I64)):
        assert meet(constant, I64) is constant


@each(
    ("value", "scalar", "stored"),
    [
        (3, Scalar.F32, 3.0),
        (3, Scalar.F64, 3.0),
        (2**31 - 1, Scalar.I32, 2**31 - 1),
        (-(2**31), Scalar.I32, -(2**31)),
        (2**64 - 1, Scalar.U64, 2**64 - 1),
        ("base64:AA==", Scalar.BLOB, "base64:AA=="),
    ],
)
def test_an_assigned_literal_takes_the_type_of_the_property(
    value: str | int, scalar: Scalar, stored: object
) -> None:
    ctx, written = _context(), Literal(value)
    own = check_literal(ctx, written)
    assert own is not None
    fitted = fit_assignment(ctx, own, PropType(scalar, is_nullable=True), written)
    assert fitted is not None
    assert fitted.type == PropType(scalar)
    assert (type(fitted.value), fitted.value) == (type(stored), stored)


@each(
    ("value", "scalar"),
    [
        (2**31, Scalar.I32),
        (-1, Scalar.U32),
        (2**63, Scalar.I64),
        (2.0, Scalar.I64),
        (1e39, Scalar.F32),
        ("x", Scalar.BOOL),
        (1, Scalar.BOOL),
        (True, Scalar.I64),
    ],
)
def test_what_a_property_cannot_hold_is_refused(value: float | str, scalar: Scalar) -> None:
    ctx, written = _context(), Literal(value)
    own = check_literal(ctx, written)
    assert own is not None
    assert fit_assignment(ctx, own, PropType(scalar), written) is None
    assert [item.code for item in ctx.problems.found] == ["T3"]


@each(
    ("column", "type"),
    [
        ("count($s)", "I64"),
        ("count(distinct $s.level)", "I64"),
        ("sum($s.level)", "I64?"),
        ("sum($s.total)", "U64?"),
        ("sum($s.small)", "F64?"),
        ("avg($s.level)", "F64?"),
        ("min($s.level)", "I32?"),
        ("max($s.day)", "Date?"),
        ("max($s.name)", "String?"),
        ('search($s.name, "x")', "Bool"),
        ('bm25($s.name, "x")', "F64?"),
        ('nearest($s.shape, "x")', "F64?"),
        ("now()", "DateTime"),
        ("$n", "I64"),
        ("$s.shape", "Vector(3)?"),
        ("$s", "None"),
    ],
)
def test_column_types(column: str, type: str) -> None:
    found = _read("", column).columns[0]
    assert str(found.type) == type


def test_the_function_table_agrees_with_the_typed_functions() -> None:
    named = {kind: {f.name for f in FUNCTIONS.values() if f.kind is kind} for kind in FunctionKind}
    assert named[FunctionKind.AGGREGATE] == {str(f) for f in AggregateFunction}
    assert named[FunctionKind.TEXT] == {str(f) for f in TextFunction}
    assert named[FunctionKind.RANK] == {"nearest", "bm25", "rrf"}
    assert named[FunctionKind.VALUE] == {"now", "date", "datetime"}


def test_functions_are_described_for_people() -> None:
    for name, function in FUNCTIONS.items():
        assert function.signature.startswith(f"{name}(")
        assert function.summary
        assert function.places <= set(Place)
    assert FUNCTIONS["fuzzy"].arity == "2 or 3 arguments"
    assert FUNCTIONS["count"].arity == "1 argument"
    assert FUNCTIONS["now"].arity == "0 arguments"


def test_unusual_trees_are_refused_not_crashed_on() -> None:
    ctx = _context()
    assert check_literal(ctx, ListLiteral((Call("now", ()), Word("x")))) is None  # type: ignore[arg-type]
    assert {item.code for item in ctx.problems.found} == {"T38"}
