"""The checker is total: what parses is checked, or refused with places inside the text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import CompileError
from omnigraph_core.query.check import check_queries
from omnigraph_core.query.codes import QUERY_CODES
from omnigraph_core.query.parse import parse_queries
from omnigraph_core.schema.build import compile_schema
from tests.support.corpus import load_cases
from tests.support.examples import examples
from tests.support.query_strategies import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.diagnostics import Diagnostic
    from omnigraph_core.query.ast import QueryFile
    from omnigraph_core.schema.catalog import Catalog

FIXTURES = Path(__file__).parent.parent / "fixtures"
TOKEN = re.compile(r'"[^"]*"|\$?\w+|\s+|.')


def _sources() -> list[tuple[str, str]]:
    """Schemas with the query texts written for them: fixtures and checker cases."""
    found = []
    for path in sorted((FIXTURES / "queries").glob("*.gq")):
        declared = FIXTURES / "schemas" / f"{path.stem}.pg"
        found.append((declared.read_text(), path.read_text()))
    schema = ""
    for case in load_cases("check"):
        schema = case.sections[0] or schema
        found.append((schema, case.sections[1]))
    return found


@cache
def _catalog(schema: str) -> Catalog:
    return compile_schema(schema)


SOURCES = _sources()
WORDS = sorted(
    {token for _, text in SOURCES for token in TOKEN.findall(text) if not token.isspace()}
)
"""Every word of every source: names of the wrong type, place or number come from the others."""


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str]:
    """A source with a few words removed, doubled, swapped, replaced or put in."""
    schema, text = draw(st.sampled_from(SOURCES))
    tokens = TOKEN.findall(text)
    start = draw(st.integers(0, max(0, len(tokens) - 250)))
    tokens = tokens[start : start + 250]
    own = [token for token in tokens if not token.isspace()]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(tokens) - 1))
        kind = draw(st.sampled_from(["remove", "double", "swap", "insert", "replace", "borrow"]))
        if kind == "remove":
            tokens[place] = ""
        elif kind == "double":
            tokens[place] = f"{tokens[place]} {tokens[place]}"
        elif kind == "swap":
            other = draw(st.integers(0, len(tokens) - 1))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            word = draw(st.sampled_from(own if kind == "borrow" else WORDS))
            tokens[place] = f"{word} {tokens[place]}" if kind == "insert" else word
    return schema, "".join(tokens)


@st.composite
def misnamed(draw: st.DrawFn) -> tuple[str, str]:
    """A source that still parses: a few words stand in for others of the same kind."""
    schema, text = draw(st.sampled_from(SOURCES))
    tokens = TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if _kind(token) in BY_KIND]
    for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=5)):
        tokens[place] = draw(st.sampled_from(BY_KIND[_kind(tokens[place])]))
    return schema, "".join(tokens)


def _kind(token: str) -> str:
    """What a token could be mistaken for: a variable, type, number, text or word."""
    first = token[0]
    if first == "$":
        return "variable"
    if first in "0123456789":
        return "number"
    if first == '"':
        return "text"
    return "type" if "A" <= first <= "Z" else "word" if token[0].islower() else "other"


BY_KIND = {
    kind: [word for word in WORDS if _kind(word) == kind]
    for kind in ("variable", "number", "text", "type", "word")
}

total = settings(
    max_examples=examples(2000),
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@total
@given(mutated())
def test_a_mutated_text_is_checked_or_refused(source: tuple[str, str]) -> None:
    _check(*source)


@total
@given(misnamed())
def test_a_misnamed_text_is_checked_or_refused(source: tuple[str, str]) -> None:
    _check(*source)


@settings(total, max_examples=examples(100))
@given(st.sampled_from(list(dict.fromkeys(schema for schema, _ in SOURCES))), files)
def test_any_tree_is_checked_or_refused(schema: str, file: QueryFile) -> None:
    results = check_queries(file, _catalog(schema), Source("")).results
    assert all((result.checked is None) is bool(result.diagnostics) for result in results)


def _check(schema: str, text: str) -> None:
    problems: Sequence[Diagnostic] = ()
    try:
        file = parse_queries(text)
        checked = check_queries(file, _catalog(schema), Source(text)).require()
        assert len(checked) == len(file.queries)
    except CompileError as refused:
        problems = refused.diagnostics
    for found in problems:
        assert found.code in QUERY_CODES
        assert 0 <= found.span.start <= len(text)
        assert found.span.end <= len(text) + 1
        assert found.render()
