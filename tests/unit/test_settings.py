"""The settings table."""

from __future__ import annotations

import pytest

from omnigraph_core.constants import CONSTANTS
from omnigraph_core.errors import ConfigError
from omnigraph_core.settings import QUERY_MEMORY, READ_MAX_AGE, SETTINGS, Setting
from tests.support.cases import each

PORT = Setting("OMNIGRAPH_TEST_PORT", default=8080, parse=int, about="A port.")


def test_unset_or_blank_means_the_default() -> None:
    assert PORT.read({}) == 8080
    assert PORT.read({"OMNIGRAPH_TEST_PORT": "  "}) == 8080


def test_text_is_parsed() -> None:
    assert PORT.read({"OMNIGRAPH_TEST_PORT": " 9 "}) == 9


def test_the_environment_is_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_TEST_PORT", "7")
    assert PORT.read() == 7


def test_a_bad_value_names_the_variable() -> None:
    with pytest.raises(ConfigError, match="OMNIGRAPH_TEST_PORT='x'"):
        PORT.read({"OMNIGRAPH_TEST_PORT": "x"})


def test_names_are_unique() -> None:
    names = [entry.name for entry in (*SETTINGS, *CONSTANTS)]
    assert len(names) == len(set(names))


@each(
    ("text", "count"),
    [("512", 512), ("64k", 2**16), ("3M", 3 * 2**20), ("2GiB", 2**31), ("1 G", 2**30)],
)
def test_bytes_may_have_a_unit(text: str, count: int) -> None:
    assert QUERY_MEMORY.read({QUERY_MEMORY.name: text}) == count


@each("text", ["0", "-1", "1.5G", "G", "many", "1T"])
def test_bytes_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="OMNIGRAPH_QUERY_MEMORY"):
        QUERY_MEMORY.read({QUERY_MEMORY.name: text})


@each("text", ["-1", "inf", "nan", "soon"])
def test_an_age_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="OMNIGRAPH_READ_MAX_AGE"):
        READ_MAX_AGE.read({READ_MAX_AGE.name: text})
