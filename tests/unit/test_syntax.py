"""Escapes, parts of a text, nesting and words: the ground both parsers stand on."""

from __future__ import annotations

import re

import pytest
from lark import Lark, TextSlice, UnexpectedInput

from omnigraph_core.diagnostics import Span
from omnigraph_core.syntax import (
    Unexpected,
    bad_escapes,
    chunks,
    last_string,
    last_unclosed,
    lone_surrogate,
    nested_deeper_than,
    one_of,
    quote,
    unescape,
    unexpected,
)
from tests.support.cases import each

START = re.compile(r"\bgo\b")
PARSER = Lark('start: ("go" NAME ";")*\nNAME: /[a-z]+/\n%ignore " "', parser="lalr")


def test_half_a_surrogate_pair_is_found() -> None:
    assert lone_surrogate("aé😀") is None
    assert lone_surrogate("ab\ud800c") == Span(2, 3)


@each("text", ["", "plain", 'a "b" \\ c', "\n\r\t", "\\n", "é ✓", "\\\\n"])
def test_unescaping_undoes_quoting(text: str) -> None:
    assert unescape(quote(text)) == text
    assert "\n" not in quote(text)


def test_bad_escapes_are_found_where_they_stand() -> None:
    assert list(bad_escapes(r'"a\n\"\\ok"', 0)) == []
    assert list(bad_escapes(r'"\d \\d \x"', 10)) == [Span(11, 13), Span(18, 20)]
    assert unescape(r'"\d"') == r"\d"


def test_chunks_cover_the_text_and_start_outside_strings_and_comments() -> None:
    text = 'x go "go" a // go\n/* go */ go b "\\" go" go'
    parts = [text[part.start : part.end] for part in chunks(text, START)]
    assert parts == ["x ", 'go "go" a // go\n/* go */ ', 'go b "\\" go" ', "go"]


def test_chunks_of_an_unclosed_string_still_start() -> None:
    text = 'go "a\ngo b'
    assert [text[part.start : part.end] for part in chunks(text, START)] == ['go "a\n', "go b"]
    assert list(chunks("", START)) == []


def test_nesting_counts_brackets_outside_strings_and_comments() -> None:
    assert nested_deeper_than(2, "([]) {[]} ()") is None
    assert nested_deeper_than(2, "( [ ( ) ] )") == Span(4, 5)
    assert nested_deeper_than(2, '"(((" /* ((( */ // (((\n( )') is None
    assert nested_deeper_than(1, ")))(()") == Span(4, 5)


def test_the_innermost_open_bracket_is_found() -> None:
    text = '{ ( ) [ "{" ] { }'
    assert last_unclosed(text, Span(0, len(text))) == 0
    assert last_unclosed("{ (", Span(0, 3)) == 2
    assert last_unclosed("{ }", Span(0, 3)) is None
    assert last_unclosed("{ ( }", Span(2, 2)) is None


def test_a_string_counts_as_last_only_at_the_end() -> None:
    assert last_string('a "b" ', Span(0, 6)) == Span(2, 5)
    assert last_string('a "b" c', Span(0, 7)) is None
    assert last_string('a "b" // c', Span(0, 10)) is None
    assert last_string("a", Span(0, 1)) is None


def failure(text: str, part: Span) -> Unexpected:
    with pytest.raises(UnexpectedInput) as caught:
        PARSER.parse(TextSlice(text, part.start, part.end))
    return unexpected(caught.value, text, part)


def test_a_token_out_of_place() -> None:
    found = failure("go a; go ; go b;", Span(6, 11))
    assert found == Unexpected(";", Span(9, 10), frozenset({"NAME"}))
    assert found.message({frozenset({"NAME"}): "a name"}) == "expected a name, found `;`"
    assert found.message({}) == "unexpected `;`"


def test_the_end_of_a_part_is_after_its_last_character() -> None:
    found = failure("go a   ; go b;", Span(0, 6))
    assert found.found == ""
    assert found.span == Span(4, 4)
    words = {frozenset({"SEMICOLON"}): "`;`"}
    assert found.message(words) == "expected `;`, found the end of the text"
    assert found.message(words, "the next one") == "expected `;`, found the next one"


def test_a_character_no_terminal_knows() -> None:
    assert failure("go a; 12é3 x", Span(0, 12)).found == "12é3"
    assert failure("go a; \x07", Span(0, 7)).message({}) == "unexpected `U+0007`"


def test_long_text_is_shown_in_part() -> None:
    assert Unexpected("a" * 50, Span(0, 50), frozenset()).message({}) == f"unexpected `{'a' * 40}…`"
    assert Unexpected('"a\nb"', Span(0, 5), frozenset()).message({}) == 'unexpected `"a…`'


def test_groups_of_terminals_are_named_before_their_parts() -> None:
    found = Unexpected("x", Span(0, 1), frozenset({"A", "B", "C"}))
    words = {frozenset({"A", "B"}): "a pair", frozenset({"A"}): "`a`", frozenset({"C"}): "`c`"}
    assert found.message(words) == "expected `c` or a pair, found `x`"


def test_alternatives_read_as_a_sentence() -> None:
    assert one_of([]) == ""
    assert one_of(["b"]) == "b"
    assert one_of(["b", "a", "b"]) == "a or b"
    assert one_of(["c", "b", "a"]) == "a, b or c"
