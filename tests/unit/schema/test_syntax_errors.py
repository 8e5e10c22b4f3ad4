"""Syntax messages at the edges of a text; the messages themselves are in the corpus."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import SchemaSyntaxError
from omnigraph_core.schema.parse import parse_schema


def refusal(text: str) -> SchemaSyntaxError:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(text)
    return caught.value


def test_no_message_names_a_terminal_of_the_grammar() -> None:
    text = 'node A @x(1, k="v") implements B { a: enum(x, y)? @key(a) @range(a, -1..2) b: [I32] }'
    for end in range(1, len(text)):
        for junk in ("", " $", " )", " }", " x", ' "', " 3"):
            try:
                parse_schema(text[:end] + junk)
            except SchemaSyntaxError as error:
                for item in error.diagnostics:
                    shown = item.message.split(", found")[0]
                    assert not any(word.isupper() and "_" in word for word in shown.split()), shown
                    assert "unexpected" not in item.message


def test_context_far_before_the_failure_is_not_needed() -> None:
    (found,) = refusal(f"node A {{ a{' ' * 100_000}b: I32 }}").diagnostics
    assert found.message == "expected `:`, found `b`"


def test_a_long_text_is_cut_in_the_message() -> None:
    (found,) = refusal(f'node A {{ "{"x" * 500}" }}').diagnostics
    assert len(found.message) < 120


def test_the_end_of_the_text_is_told_from_the_next_declaration() -> None:
    first, second = refusal("node A { a: I32\nnode B { b: I32").diagnostics
    assert first.message.endswith("the next declaration")
    assert second.message.endswith("the end of the text")
