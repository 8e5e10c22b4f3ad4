"""The reject file by itself: which lines it takes from which source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.violations import Rule, Violation, Violations
from omnigraph_core.write.batches import Places
from omnigraph_core.write.rejects import count_records, named_apart, write_rejects
from omnigraph_core.write.sources import open_sources, places_of
from tests.support.cases import each

if TYPE_CHECKING:
    from pathlib import Path


def problems(*found: tuple[str | None, int | None, str]) -> Violations:
    """What is wrong: file, line, message."""
    violations = Violations()
    for file, line, message in found:
        violations.add(Violation(Rule.RANGE, message, file=file, line=line))
    return violations


def written(path: Path, given: list[bytes], found: Violations) -> list[dict[str, Any]]:
    sources = open_sources(given)
    write_rejects(path, sources, named_apart(places_of(sources)), found)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lines_in_the_order_of_the_input(tmp_path: Path) -> None:
    found = problems((None, 3, "c"), (None, 1, "a"), (None, 3, "d"))
    assert written(tmp_path / "rejects", [b"one\ntwo\nthr\xc3\xa9e"], found) == [
        {"file": None, "line": 1, "problems": ["a"], "record": "one"},
        {"file": None, "line": 3, "problems": ["c", "d"], "record": "thr\u00e9e"},
    ]


def test_lines_of_the_right_source(tmp_path: Path) -> None:
    found = problems(("input 2", 1, "a"), ("input 1", 2, "b"))
    entries = written(tmp_path / "rejects", [b"one\ntwo", b"three\nfour"], found)
    assert [(entry["file"], entry["record"]) for entry in entries] == [
        ("input 1", "two"), ("input 2", "three"),
    ]  # fmt: skip


def test_problems_without_a_line_have_no_record(tmp_path: Path) -> None:
    found = problems((None, None, "a whole file"), (None, 2, "b"))
    assert count_records(found) == 1
    assert len(written(tmp_path / "rejects", [b"one\ntwo"], found)) == 1


def test_no_problems_empty_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rejects"
    path.write_text("old")
    assert written(path, [b"one"], problems()) == []
    assert list(tmp_path.iterdir()) == [path]


def test_records_are_counted_once() -> None:
    assert count_records(problems()) == 0
    assert count_records(problems((None, 1, "a"), (None, 1, "b"), (None, 2, "a"))) == 2
    assert count_records(problems(("x", 1, "a"), ("y", 1, "a"))) == 2


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write the reject file"):
        written(tmp_path, [b"one"], problems((None, 1, "a")))


@each(
    ("names", "expected"),
    [
        ((None,), (None,)),
        (("a.csv",), ("a.csv",)),
        ((None, None), ("input 1", "input 2")),
        (("a.csv", None, "b.csv"), ("a.csv", "input 2", "b.csv")),
        (("a.csv", "a.csv", "a.csv"), ("a.csv", "a.csv (input 2)", "a.csv (input 3)")),
    ],
)
def test_names_apart(names: tuple[str | None, ...], expected: tuple[str | None, ...]) -> None:
    units = ("row",) * len(names)
    assert named_apart(Places(names, units)) == Places(expected, units)
