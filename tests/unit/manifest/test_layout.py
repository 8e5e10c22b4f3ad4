"""Paths of a graph."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import ConfigError, InvariantBroken, StorageError
from omnigraph_core.manifest.layout import (
    MAX_ESCAPED,
    branch_manifest_path,
    branch_ref_path,
    escape_name,
    table_location,
    tag_ref_path,
    unescape_name,
)
from tests.support.cases import each


@each(
    ("name", "segment"),
    [
        ("nightly", "nightly"),
        ("Az09-_.x", "Az09-_.x"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        (".hidden", "%2Ehidden"),
        (".", "%2E"),
        ("..", "%2E."),
        ("ü", "%C3%BC"),
        ("a b*?~\\:", "a%20b%2A%3F%7E%5C%3A"),
        ("\0", "%00"),
    ],
)
def test_escape(name: str, segment: str) -> None:
    assert escape_name(name) == segment
    assert unescape_name(segment) == name


def test_the_longest_name_leaves_room_for_what_stores_add() -> None:
    longest = "x" * MAX_ESCAPED
    assert escape_name(longest) == longest
    assert len(f"{longest}.json#99999999") <= 255
    with pytest.raises(ConfigError, match="too long: 241 bytes"):
        escape_name(longest + "x")


def test_escapes_count_towards_the_length() -> None:
    assert len(escape_name("/" * 80)) == MAX_ESCAPED
    with pytest.raises(ConfigError, match="too long: 243 bytes"):
        escape_name("/" * 81)


@pytest.mark.parametrize(
    ("name", "problem"), [("", "must not be empty"), ("a\ud800", "not Unicode text")]
)
def test_no_name(name: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        escape_name(name)


@each(
    "segment",
    ["", ".hidden", "a/b", "a b", "%", "%2", "%zz", "%2f", "%41", "%FF", "ü", "€", "x" * 241],
)
def test_segments_nothing_is_escaped_to(segment: str) -> None:
    with pytest.raises(StorageError, match="is not the file name of a branch or a tag"):
        unescape_name(segment)


def test_ref_paths() -> None:
    assert branch_ref_path("a/b") == "_refs/branches/a%2Fb.json"
    assert tag_ref_path("v1.0") == "_refs/tags/v1.0.json"
    assert branch_manifest_path("01J0") == "_refs/manifests/01J0"
    assert branch_manifest_path("..") == "_refs/manifests/%2E."


def test_table_locations() -> None:
    assert table_location("node:alpha") == "nodes/8ac625bb85ed202b"
    assert table_location("edge:alpha") == "edges/8ac625bb85ed202b"
    assert table_location("node:alpha", token="01J0") == "nodes/8ac625bb85ed202b-01J0"


@each("table_key", ["", "Part", "node:", "nodes:Part", "index:Part"])
def test_malformed_table_keys(table_key: str) -> None:
    with pytest.raises(InvariantBroken, match="a table key starts with"):
        table_location(table_key)


@pytest.mark.parametrize("token", ["", "../x", "a-b"])
def test_malformed_tokens(token: str) -> None:
    with pytest.raises(InvariantBroken, match="a token of a table"):
        table_location("node:Part", token=token)
