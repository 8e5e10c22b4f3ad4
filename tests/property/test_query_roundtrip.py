"""Laws of the query parser: rendering loses nothing, and no text makes it fail in another way."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import QuerySyntaxError
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.query.render import render_queries
from tests.support.examples import examples
from tests.support.query_strategies import files

if TYPE_CHECKING:
    from omnigraph_core.diagnostics import Diagnostic
    from omnigraph_core.query import ast

QUERIES = Path(__file__).parent.parent / "fixtures" / "queries"
SOURCES = [path.read_text() for path in sorted(QUERIES.glob("*.gq"))]
TOKEN = re.compile(r'"[^"]*"|\$?\w+|\s+|.')
INSERTED = [
    "{", "}", "(", ")", "[", "]", ",", ":", ";", ".", '"', "'", "#", "/*", "//", "$", "@", "\\",
    "=", "==", "<", "<>", "-", "*", "é", "\x00", "1.", "1e5", "9" * 700, "$_", "$X", "Person",
    "and", "or", "not", "in", "is", "null", "contains", "query", "match", "return", "distinct",
    "limit", "order", "optional", "having", "where", "set", "insert", "now()", "query q() {",
]  # fmt: skip


@settings(
    max_examples=examples(500),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(files)
def test_parsing_what_is_rendered_gives_the_tree_back(file: ast.QueryFile) -> None:
    text = render_queries(file)
    again = parse_queries(text)
    assert again == file
    assert render_queries(again) == text


@st.composite
def mutated_sources(draw: st.DrawFn) -> str:
    """A fixture's text with a few tokens removed, doubled, swapped or put in."""
    tokens = TOKEN.findall(draw(st.sampled_from(SOURCES)))
    start = draw(st.integers(0, max(0, len(tokens) - 150)))
    tokens = tokens[start : start + 150]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(tokens) - 1))
        kind = draw(st.sampled_from(["remove", "double", "swap", "insert", "replace", "cut"]))
        if kind == "remove":
            tokens[place] = ""
        elif kind == "double":
            tokens[place] *= 2
        elif kind == "swap":
            tokens[place], tokens[-place] = tokens[-place], tokens[place]
        elif kind == "cut":
            tokens[place] = tokens[place][: len(tokens[place]) // 2]
        else:
            word = draw(st.sampled_from(INSERTED))
            tokens[place] = word if kind == "replace" else f"{word} {tokens[place]}"
    return "".join(tokens)


@settings(
    max_examples=examples(800),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mutated_sources() | st.text(max_size=60))
def test_a_broken_text_is_refused_with_places_inside_it(text: str) -> None:
    found = problems_of(text)
    for item in found:
        assert item.code == "Q000"
        assert item.message
        assert 0 <= item.span.start <= len(text)
        assert item.span.end <= len(text) + 1
    if not found:
        file = parse_queries(text)
        assert parse_queries(render_queries(file)) == file


def problems_of(text: str) -> tuple[Diagnostic, ...]:
    try:
        parse_queries(text)
    except QuerySyntaxError as error:
        return error.diagnostics
    return ()
