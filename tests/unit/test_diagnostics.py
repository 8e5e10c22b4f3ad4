"""Positions, carets and suggestions."""

from __future__ import annotations

import copy
import pickle

from omnigraph_core.diagnostics import (
    Diagnostics,
    Name,
    Source,
    Span,
    diagnose,
    did_you_mean,
    nearest_name,
)

TEXT = "node A {\r\n\tname: Strng\n}\n"


def test_positions_are_one_based() -> None:
    source = Source(TEXT)
    assert source.position(0) == (1, 1)
    assert source.position(TEXT.index("Strng")) == (2, 8)
    assert source.position(len(TEXT)) == (4, 1)


def test_line_text_drops_its_end() -> None:
    source = Source(TEXT)
    assert source.line_text(1) == "node A {"
    assert source.line_text(4) == ""


def test_the_caret_stands_under_the_span_even_after_a_tab() -> None:
    start = TEXT.index("Strng")
    shown = diagnose(Source(TEXT, "a.pg"), "P1", "unknown type", Span(start, start + 5)).render()
    assert shown.splitlines() == [
        "a.pg:2:8: error P1: unknown type",
        "   name: Strng",
        "         ^^^^^",
    ]


def test_a_span_over_several_lines_is_marked_on_its_first() -> None:
    shown = diagnose(Source("ab\ncd", "a"), "X", "m", Span(1, 5)).render()
    assert shown.splitlines()[1:] == ["  ab", "   ^"]


def test_the_end_of_the_text_has_a_place() -> None:
    found = diagnose(Source("ab"), "X", "m", Span(99, 99))
    assert (found.line, found.column, found.span) == (1, 3, Span(2, 3))


def test_a_very_long_line_is_cut_around_the_caret() -> None:
    text = "a" * 5000 + "BAD" + "z" * 5000
    _, line, caret = diagnose(Source(text), "X", "m", Span(5000, 5003)).render().splitlines()
    assert len(line) < 250
    assert line[caret.index("^") : caret.index("^") + 3] == "BAD"
    assert (line[2], line[-1], caret.count("^")) == ("…", "…", 3)


def test_control_characters_do_not_reach_the_terminal() -> None:
    _, line, caret = diagnose(Source("a\x1b[31m\x00b"), "X", "m", Span(7, 8)).render().splitlines()
    assert line == "  a·[31m·b"
    assert line[caret.index("^")] == "b"


def test_json_carries_the_same_facts() -> None:
    found = diagnose(Source("ab", "f"), "X", "m", Span(0, 1), hint="h").to_json()
    assert found == {
        "severity": "error",
        "code": "X",
        "message": "m",
        "file": "f",
        "line": 1,
        "column": 1,
        "span": {"start": 0, "end": 1},
        "hint": "h",
    }


def test_problems_come_in_source_order_and_once() -> None:
    found = Diagnostics(Source("abcdef"))
    assert not found
    found.add("B", "later", Span(3, 4))
    found.add("A", "earlier", Span(0, 1))
    found.add("A", "earlier", Span(0, 1))
    found.extend(found.found)
    assert [item.code for item in found.found] == ["A", "B"]


def test_suggestions() -> None:
    assert nearest_name("works_at", ["worksAt", "knows"]) == "worksAt"
    assert nearest_name("NMAE", ["name", "age"]) == "name"
    assert nearest_name("zzz", ["name"]) is None
    assert did_you_mean("nam", ["name"]) == "did you mean `name`?"
    assert did_you_mean("zzz", ["name"]) is None


def test_a_name_is_its_text_and_remembers_its_place() -> None:
    name = Name("abc", Span(4, 7))
    assert name == "abc"
    assert {name: 1}["abc"] == 1
    assert copy.deepcopy(name).span == Span(4, 7)
    assert pickle.loads(pickle.dumps(name)).span == Span(4, 7)
    assert Name("abc").span == Span(0, 0)
    assert Span(1, 2).to(Span(5, 9)) == Span(1, 9)
