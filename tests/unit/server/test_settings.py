"""The settings page lists every variable of the server."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.server import settings
from omnigraph_core.server.settings import SERVER_SETTINGS
from tests.guards.test_reference_pages import table


def test_the_page_lists_every_variable_of_the_server() -> None:
    expected = {
        s.name: ("unset" if s.default is None else repr(s.default), s.about)
        for s in SERVER_SETTINGS
    }
    found = table("settings.md", "Environment variables of a server")
    assert {name: (row[0], row[1]) for name, row in found.items()} == expected


def test_what_is_no_value_is_refused() -> None:
    for setting, text in (
        (settings.READERS, "0"),
        (settings.WRITERS, "many"),
        (settings.LOG_LEVEL, "loud"),
        (settings.ACTOR_BYTES, "x"),
    ):
        with pytest.raises(ConfigError, match=setting.name):
            setting.read({setting.name: text})
    assert settings.LOG_LEVEL.read({"OMNIGRAPH_LOG": "DEBUG"}) == "debug"
