"""The settings table."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.settings import CONSTANTS, SETTINGS, Setting

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
