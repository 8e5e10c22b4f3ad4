"""Rendering: what the corpus cannot show because it starts from text."""

from __future__ import annotations

from omnigraph_core.diagnostics import Name
from omnigraph_core.schema import ast
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.schema.render import render_schema
from omnigraph_core.schema.render_parts import (
    render_annotation,
    render_cardinality,
    render_constraint,
)
from tests.support.cases import each


@each(
    ("bound", "text"),
    [
        (0, "0"),
        (-7, "-7"),
        (0.5, "0.5"),
        (2.0, "2.0"),
        (1e22, "10000000000000000000000.0"),
        (-1.5e-7, "-0.00000015"),
        (2**64 - 1, "18446744073709551615"),
    ],
)
def test_bounds_are_written_without_exponent(bound: float, text: str) -> None:
    assert render_constraint(ast.Range(Name("a"), bound, None)) == f"@range(a, {text}..)"
    assert render_constraint(ast.Range(Name("a"), None, bound)) == f"@range(a, ..{text})"


def test_texts_are_escaped() -> None:
    text = 'a"b\\c\nd\re\tf\x00é'
    annotation = ast.Annotation(Name("note"), ast.Argument(ast.ArgumentKind.STRING, text))
    assert render_annotation(annotation) == '@note("a\\"b\\\\c\\nd\\re\\tf\x00é")'


def test_a_number_in_quotes_stays_a_text() -> None:
    kinds = (ast.ArgumentKind.INT, ast.ArgumentKind.STRING)
    annotations = [ast.Annotation(Name("x"), ast.Argument(kind, "3")) for kind in kinds]
    assert [render_annotation(item) for item in annotations] == ["@x(3)", '@x("3")']


def test_cardinality() -> None:
    assert render_cardinality(ast.Cardinality(1, 4)) == "@card(1..4)"
    assert render_cardinality(ast.Cardinality()) == "@card(0..)"


def test_canonical_text_is_a_fixed_point() -> None:
    text = "edge E:A->B@x@card(0..1){a:[I32]?@default([1,2])@index(a)}node A{}node B{}"
    once = render_schema(parse_schema(text))
    assert render_schema(parse_schema(once)) == once


def test_an_empty_schema_renders_as_nothing() -> None:
    assert render_schema(ast.Schema()) == ""
