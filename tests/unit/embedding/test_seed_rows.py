"""Lines, selectors and the text a row gives."""

from __future__ import annotations

import json

import pytest

from omnigraph_core.embedding.seed_rows import (
    SeedRow,
    Selector,
    parse_row,
    parse_selector,
    rendered,
    source_text,
)
from omnigraph_core.embedding.spec import TypeSpec
from omnigraph_core.errors import ConfigError
from omnigraph_core.violations import Rule, Violation
from tests.support.cases import each


def row(**data: object) -> SeedRow:
    parsed = parse_row(json.dumps({"type": "Part", "data": data}).encode())
    assert isinstance(parsed, SeedRow)
    return parsed


@each(
    ("value", "text"),
    [
        (None, ""),
        ("  two words \n", "two words"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (1.50, "1.5"),
        ([], ""),
        (["a", " b ", 3, None, [True, "c"]], "a, b, 3, , true, c"),
        ({"a": "é"}, '{"a":"é"}'),
    ],
)
def test_rendered(value: object, text: str) -> None:
    assert rendered(value) == text


def test_empty_fields_are_left_out_of_the_text() -> None:
    spec = TypeSpec("vector", ("name", "blank", "missing", "tags", "is_new"))
    text = source_text(row(name="bolt", blank="  ", tags=["a", "b"], is_new=False), spec)
    assert text == "type: Part\nname: bolt\ntags: a, b\nis_new: false"
    assert source_text(row(), spec) == "type: Part"


@each(
    ("text", "selector"),
    [
        ("name=bolt", Selector("name", "bolt")),
        ("Part:name=bolt", Selector("name", "bolt", "Part")),
        (" Part : name = a=b:c ", Selector("name", "a=b:c", "Part")),
        ("name=", Selector("name", "")),
    ],
)
def test_selectors(text: str, selector: Selector) -> None:
    assert parse_selector(text) == selector


@each("text", ["", "name", "=bolt", ":name=bolt", "Part:=bolt"])
def test_bad_selectors(text: str) -> None:
    with pytest.raises(ConfigError, match="expected"):
        parse_selector(text)


def test_matching_is_on_the_rendered_text() -> None:
    subject = row(name=" bolt ", size=3, tags=["a", "b"], note=None)
    for text in ("name=bolt", "size=3", "tags=a, b", "note=", "other=", "Part:size=3"):
        assert parse_selector(text).matches(subject), text
    for text in ("name=bol", "size=3.0", "tags=a", "Bin:size=3"):
        assert not parse_selector(text).matches(subject), text


def test_lines_that_pass() -> None:
    assert parse_row(b" \r\n") is None
    edge = parse_row(b'{"edge": "Holds", "from": "a", "to": "b"}\r\n')
    assert isinstance(edge, SeedRow)
    assert (edge.type_name, edge.text) == (None, '{"edge": "Holds", "from": "a", "to": "b"}')
    number = parse_row(b'{"type": 1}')
    assert isinstance(number, SeedRow)
    assert number.type_name is None


@each(
    ("line", "rule", "message"),
    [
        (b"{", Rule.JSON, "invalid JSON: "),
        (b"\xff", Rule.JSON, "invalid JSON: "),
        (b'{"a": NaN}', Rule.JSON, "expected a finite number, found NaN"),
        (b'{"a": 1e999}', Rule.JSON, "expected a finite number, found 1e999"),
        (b"[" * 100_000, Rule.JSON, "invalid JSON: "),
        (b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}", Rule.JSON, "nested too deeply"),
        (b"[" * 900 + b"]" * 900, Rule.JSON, "nested too deeply"),
        (b"[1]", Rule.RECORD, "expected a JSON object, found [1]"),
        (b'{"type": "Part"}', Rule.RECORD, "expected an object `data`, found null"),
        (b'{"type": "Part", "data": [1]}', Rule.RECORD, "expected an object `data`, found [1]"),
    ],
)
def test_lines_that_do_not(line: bytes, rule: Rule, message: str) -> None:
    problem = parse_row(line)
    assert isinstance(problem, Violation)
    assert problem.rule == rule
    assert message in problem.message


def test_many_brackets_are_not_deep() -> None:
    parsed = row(name="[" * 999, sizes=[[1]] * 999, nested=json.loads("[" * 150 + "]" * 150))
    assert source_text(parsed, TypeSpec("vector", ("sizes",))).endswith("1, 1")
    assert json.loads(parsed.render()) == parsed.members


@each(
    ("line", "text"),
    [
        (b"// a comment \r\n", "// a comment "),
        (b'\t //{"type": "Part"}\n', '\t //{"type": "Part"}'),
        (b"//", "//"),
        (b"// size \xe9\n", "// size \udce9"),
    ],
)
def test_comments_pass(line: bytes, text: str) -> None:
    comment = parse_row(line)
    assert isinstance(comment, SeedRow)
    assert (comment.text, comment.is_comment, comment.type_name) == (text, True, None)


@each(
    ("line", "name"),
    [
        (b'{"type": "Part", "data": {"name": "a", "size": 1, "name": "b"}}', "name"),
        (b'{"type": "Part", "data": {}, "data": {}}', "data"),
        (b'{"type": "Part", "data": {"a": [{"b": 1, "b": 1}]}}', "b"),
        (rb'{"type": "Part", "data": {"\ud800": 1, "\ud800": 1}}', r"\ud800"),
        (b'{"type": "Part", "data": {"a": {"b": 1}, "b": {"a": 1}}}', None),
    ],
)
def test_repeated_members_are_remembered(line: bytes, name: str | None) -> None:
    parsed = parse_row(line)
    assert isinstance(parsed, SeedRow)
    assert parsed.repeated == name


def test_a_changed_row_keeps_what_it_held() -> None:
    line = (
        '{"type": "Part", "data": {"name": "é", "size": 1.50, "big": 12345678901234567890}, "x": 1}'
    )
    parsed = parse_row(line.encode())
    assert isinstance(parsed, SeedRow)
    parsed.data["vector"] = [0.5]
    assert json.loads(parsed.render()) == {
        "type": "Part",
        "data": {"name": "é", "size": 1.5, "big": 12345678901234567890, "vector": [0.5]},
        "x": 1,
    }
    assert "é" in parsed.render()


def test_half_a_surrogate_pair_is_written_as_it_was() -> None:
    parsed = parse_row(rb'{"type": "Part", "data": {"name": "\ud800"}}')
    assert isinstance(parsed, SeedRow)
    assert rb"\ud800" in parsed.render().encode()
