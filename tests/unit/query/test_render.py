"""The canonical text of single nodes, and where parentheses are needed."""

from __future__ import annotations

from omnigraph_core.diagnostics import Name
from omnigraph_core.query import ast
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.render import (
    render_condition,
    render_expr,
    render_queries,
    render_query,
)
from omnigraph_core.types import Scalar
from tests.support.cases import each

A, B, C = (ast.Comparison(ast.Word(Name(n)), ast.CompareOp.EQ, ast.Literal(1)) for n in "abc")


@each(
    ("expr", "text"),
    [
        (ast.Literal(1), "1"),
        (ast.Literal(-1), "-1"),
        (ast.Literal(1.0), "1.0"),
        (ast.Literal(-0.5), "-0.5"),
        (ast.Literal(1e20), "100000000000000000000.0"),
        (ast.Literal(1e-7), "0.0000001"),
        (ast.Literal(True), "true"),
        (ast.Literal(False), "false"),
        (ast.Literal('a "b"\\\n\r\t'), r'"a \"b\"\\\n\r\t"'),
        (ast.TemporalLiteral(Scalar.DATE, "2024-01-01"), 'date("2024-01-01")'),
        (ast.TemporalLiteral(Scalar.DATETIME, "x"), 'datetime("x")'),
        (ast.ListLiteral(()), "[]"),
        (ast.ListLiteral((ast.Literal(1), ast.Literal("a"))), '[1, "a"]'),
        (ast.Variable(Name("x")), "$x"),
        (ast.Access(Name("x"), Name("p")), "$x.p"),
        (ast.Word(Name("alias")), "alias"),
        (ast.Call(Name("now"), ()), "now()"),
        (ast.Call(Name("count"), (ast.Variable(Name("x")),), True), "count(distinct $x)"),
        (ast.Call(Name("f"), (ast.Literal(1), ast.Word(Name("w")))), "f(1, w)"),
    ],
    ids=str,
)
def test_expressions(expr: ast.Expr, text: str) -> None:
    assert render_expr(expr) == text


def test_only_an_or_inside_an_and_takes_parentheses() -> None:
    assert render_condition(ast.Or((A, ast.And((B, C))))) == "a = 1 or b = 1 and c = 1"
    assert render_condition(ast.And((A, ast.Or((B, C))))) == "a = 1 and (b = 1 or c = 1)"


def test_other_conditions() -> None:
    word = ast.Word(Name("a"))
    assert render_condition(ast.NullTest(word, False)) == "a is null"
    assert render_condition(ast.NullTest(word, True)) == "a is not null"
    assert render_condition(ast.Membership(word, ast.Variable(Name("l")))) == "a in $l"
    assert render_condition(ast.Truth(ast.Call(Name("f"), ()))) == "f()"


def test_parameter_types_stay_as_written() -> None:
    params = "$a: String, $b: Vector(4)?, $c: [Date]?, $d: [Vector(2)], $e: int"
    text = render_queries(parse_queries(f"query q({params}) {{ insert T {{}} }}"))
    assert text.startswith(f"query q({params}) {{\n")


def test_queries_are_apart_by_one_empty_line() -> None:
    file = parse_queries("query a() { delete T where p = 1 } query b() { insert T {} }")
    assert render_queries(file) == (
        "query a() {\n  delete T where p = 1\n}\n\nquery b() {\n  insert T {}\n}\n"
    )
    assert render_queries(file) == "\n".join(map(render_query, file.queries))
    assert render_queries(ast.QueryFile()) == ""


def test_no_line_of_a_block_is_longer_than_it_must_be() -> None:
    columns = ", ".join(f"$x.property{number} as column{number}" for number in range(9))
    text = render_queries(
        parse_queries(f"query q() {{ match {{ $x: T }} return {{ {columns} }} }}")
    )
    assert max(map(len, text.splitlines())) <= 100
    assert "    $x.property0 as column0,\n" in text
