"""Parsing: spans, recovery and the shape of what is raised. The grammar itself is in the corpus."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import SchemaSyntaxError
from omnigraph_core.schema import ast
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.schema.read import read_schema

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Span

TEXT = """
node Part @note(1) implements Coded {
  mass: F64? @index @range(mass, -1..9)
  @unique(mass, code)
}
edge Uses: Part -> Bin @card(0..1)
"""


def text_at(span: Span) -> str:
    return TEXT[span.start : span.end]


def test_spans_cover_what_was_written() -> None:
    node, edge = parse_schema(TEXT).declarations
    assert isinstance(node, ast.Node)
    assert isinstance(edge, ast.Edge)
    mass = node.properties[0]
    range_, unique = node.constraints
    assert text_at(node.name.span) == "Part"
    assert text_at(node.span).startswith("node Part")
    assert text_at(node.span).endswith("}")
    assert text_at(node.implements[0].span) == "Coded"
    assert text_at(mass.span) == "mass: F64? @index"
    assert text_at(mass.type_span) == "F64?"
    assert text_at(mass.annotations[0].name.span) == "index"
    assert text_at(range_.span) == "@range(mass, -1..9)"
    assert isinstance(unique, ast.Unique)
    assert [text_at(column.span) for column in unique.columns] == ["mass", "code"]
    assert text_at(edge.span) == "edge Uses: Part -> Bin @card(0..1)"
    assert edge.cardinality is not None
    assert text_at(edge.cardinality.span) == "@card(0..1)"


def test_spans_take_no_part_in_equality() -> None:
    assert parse_schema("node A{a:I32}") == parse_schema("node  A  {\n  a : I32\n}")


def test_an_open_lower_bound_is_a_maximum() -> None:
    (node,) = parse_schema("node A { a: I32 @range(a, ..9) }").declarations
    assert isinstance(node, ast.Node)
    assert node.constraints == (ast.Range(node.properties[0].name, None, 9),)


def test_problems_name_the_file_and_come_in_source_order() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema("node A { a: Int }\nnode B { b String }\nnode C { c: Text }", "parts.pg")
    found = caught.value.diagnostics
    assert [(item.file, item.line, item.column) for item in found] == [
        ("parts.pg", 1, 13),
        ("parts.pg", 2, 12),
        ("parts.pg", 3, 13),
    ]


def test_a_declaration_start_inside_a_text_or_comment_cuts_nothing() -> None:
    text = 'node A { a: String @description("node B { }") /* edge C */ b String }'
    assert len(read_schema(text, "x").problems.found) == 1


def test_an_incomplete_parse_is_told_from_one_with_problems() -> None:
    assert not read_schema("node A { a String }", "x").is_complete
    unknown = read_schema("node A { a: Int }", "x")
    assert unknown.is_complete
    assert unknown.problems


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    text = "\ufeffnode A { a: String }"
    assert parse_schema(text) == parse_schema("node A { a: String }")
    name = parse_schema(text).declarations[0].name
    assert text[name.span.start : name.span.end] == "A"
    assert not read_schema("node A {}\ufeff", "x").is_complete
    broken = read_schema("\ufeffnode A { a String }", "x").problems.found
    assert [item.message for item in broken] == ["expected `:` after `a`, found `String`"]


def test_numbers_of_any_length_are_read() -> None:
    digits = "9" * 10_000
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(f"node A {{ a: Vector({digits}) b: I32 @default({digits}) }}")
    assert {item.code for item in caught.value.diagnostics} == {"P1", "P2"}
    parse_schema(f"node A {{}} edge B: A -> A @card({digits}..)")


def test_parses_in_parallel_keep_their_problems_apart() -> None:
    texts = [f"node A {{ a: Wrong{i} }}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        parsed = list(pool.map(lambda text: read_schema(text, "x"), texts))
    messages = [[item.message for item in one.problems.found] for one in parsed]
    assert messages == [[f"unknown type `Wrong{i}`"] for i in range(40)]


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(SchemaSyntaxError, match="half of a surrogate pair"):
        parse_schema('node A @description("\ud800") {}')
