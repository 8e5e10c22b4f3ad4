"""Tests of many cases fail when one of them does, and name it."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.cases import check_all, each

if TYPE_CHECKING:
    from pathlib import Path


def _is_even(number: int) -> None:
    assert number % 2 == 0, f"{number} is odd"


def test_all_failures_are_reported() -> None:
    with pytest.raises(AssertionError) as failed:
        check_all([1, 2, 3], _is_even, lambda number: f"case {number}")
    lines = str(failed.value).splitlines()
    assert lines[0] == "2 of 3 cases failed"
    assert lines[1] == "--- case 1"
    assert "test_cases.py" in lines[2]
    assert "1 is odd" in lines[2]
    assert "--- case 3" in lines


def test_errors_and_missing_refusals_are_failures() -> None:
    def check(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            _ = number / [0, 1][number]

    with pytest.raises(AssertionError, match=r"--- 1\n.*DID NOT RAISE(.|\n)*--- 2\n.*IndexError"):
        check_all([0, 1, 2], check)


def test_no_cases_is_a_failure() -> None:
    with pytest.raises(AssertionError, match="there are no cases"):
        check_all([], _is_even)


def test_each_takes_what_parametrize_takes() -> None:
    seen: list[object] = []

    @each("a", [1, pytest.param(2, id="two")])
    @each(("b", "c"), lambda: [(3, 4), (5, 6)], ids=["x", "y"])
    def test(a: int, b: int, c: int, other: str) -> None:
        seen.append((a, b, c, other))
        assert (a, b) != (2, 5)

    assert list(inspect.signature(test).parameters) == ["other"]
    with pytest.raises(AssertionError, match=r"1 of 2(.|\n)*--- two\n(.|\n)*1 of 2(.|\n)*--- y\n"):
        test(other="o")
    assert seen == [(1, 3, 4, "o"), (1, 5, 6, "o"), (2, 3, 4, "o"), (2, 5, 6, "o")]


def test_each_case_has_its_own_folder_and_patches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @each("name", ["a", "b"])
    def test(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "PATCHED_BY_A_CASE" not in os.environ
        monkeypatch.setenv("PATCHED_BY_A_CASE", name)
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").write_text(name)

    test(tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert len(list(tmp_path.rglob("file"))) == 2
