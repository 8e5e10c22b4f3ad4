"""Laws of the schema language: rendering is undone by parsing, and no text breaks the compiler."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import CompileError
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.codes import SCHEMA_CODES
from omnigraph_core.schema.parse import parse_schema
from omnigraph_core.schema.render import render_schema
from tests.support.cases import each
from tests.support.examples import examples
from tests.support.schema_strategies import schemas

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Diagnostic
    from omnigraph_core.schema import ast

FIXTURES = sorted((Path(__file__).parent.parent / "fixtures" / "schemas").glob("*.pg"))
TEXTS = [path.read_text(encoding="utf-8") for path in FIXTURES]
SNIPPETS = [
    "{", "}", "(", ")", "[", "]", "..", "->", ":", ",", "?", "@", "#", '"', "\\", "/*", "*/", "//",
    "node ", "edge ", "interface ", "implements ", "enum", "Vector(", "Int", "@key", "@key(a)",
    "@unique(", "@range(a, 9..1)", "@check(a, \"[\")", "@card(2..1)", "@default(", "@embed(x)",
    "99999999999999999999999999", "-1.5", "\n", "\t", "é", "\x00", "A", "a", "null", "true",
]  # fmt: skip


@given(schemas)
@settings(max_examples=examples(500))
def test_parsing_undoes_rendering(schema: ast.Schema) -> None:
    assert parse_schema(render_schema(schema)) == schema


@each("path", FIXTURES, ids=lambda path: path.stem)
def test_rendering_a_fixture_keeps_its_meaning(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert compile_schema(render_schema(parse_schema(text))) == compile_schema(text)


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20]))
        inserted = draw(st.sampled_from(["", *SNIPPETS]) | st.text(max_size=3))
        text = text[:start] + inserted + text[start + length :]
    return text


@given(mutated_texts())
@settings(max_examples=examples(1000))
def test_no_text_raises_anything_but_a_compile_error(text: str) -> None:
    found = problems_of(text)
    for item in found:
        assert item.message
        assert item.code in SCHEMA_CODES
        assert 0 <= item.span.start <= len(text)
    if not found:
        assert compile_schema(render_schema(parse_schema(text))) == compile_schema(text)


@given(st.text(max_size=60))
@settings(max_examples=examples(300))
def test_text_without_a_declaration_is_refused_unless_blank(text: str) -> None:
    is_blank = not re.sub(r"//[^\n]*|/\*[\s\S]*?\*/|[ \t\r\n]", "", text)
    assert is_blank == (not problems_of(text))


def problems_of(text: str) -> tuple[Diagnostic, ...]:
    try:
        compile_schema(text)
    except CompileError as error:
        return error.diagnostics
    return ()
