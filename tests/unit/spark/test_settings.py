"""The settings of Spark jobs, and what executors are given of ours."""

from __future__ import annotations

import os

import pytest

from omnigraph_core.errors import ConfigError
from omnigraph_core.settings import SETTINGS
from omnigraph_core.spark import settings
from omnigraph_core.spark.settings import CONF, SPARK_SETTINGS, for_executors, user_cache
from tests.guards.test_reference_pages import table


def test_the_page_lists_every_variable_of_spark() -> None:
    expected = {
        s.name: ("unset" if s.default in (None, {}) else repr(s.default), s.about)
        for s in SPARK_SETTINGS
    }
    found = table("settings.md", "Environment variables of Spark jobs")
    assert {name: (row[0], row[1]) for name, row in found.items()} == expected


def test_settings_of_spark_are_texts() -> None:
    text = '{"spark.a": "4g", "spark.b": 3, "spark.c": true, "spark.d": 0.5}'
    assert CONF.read({CONF.name: text}) == {
        "spark.a": "4g",
        "spark.b": "3",
        "spark.c": "true",
        "spark.d": "0.5",
    }
    assert CONF.read({}) == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("spark.a=1", "Expecting value"),
        ('["spark.a"]', "expected a JSON object"),
        ('{"spark.a": null, "spark.b": [], "spark.c": 1}', "for spark.a, spark.b"),
    ],
)
def test_what_is_no_settings_of_spark(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        CONF.read({CONF.name: text})
    assert CONF.name in caught.value.message


def test_executors_are_given_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "OMNIGRAPH_"))]:
        monkeypatch.delenv(name)
    given = {
        "AWS_REGION": "eu",
        "AWS_SECRET_ACCESS_KEY": "s",
        "OMNIGRAPH_EMBED_MODEL": "m",
        "NANOGRAPH_EMBED_TIMEOUT_MS": "5",
    }
    kept = {
        "AWS_ROLE_ARN": "who this machine is",
        "OMNIGRAPH_BEARER_TOKEN": "t",
        "OMNIGRAPH_CACHE_DIR": "/here",
        "OMNIGRAPH_SPARK_MASTER": "local",
    }
    for name, value in {**given, **kept}.items():
        monkeypatch.setenv(name, value)
    found = for_executors()
    assert given.items() <= found.items()
    assert found.keys().isdisjoint(kept)


def test_what_stays_here_is_a_setting() -> None:
    assert all(setting in SETTINGS for setting in settings._OF_ONE_MACHINE)


def test_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(user_cache()) == "/somewhere/omnigraph"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert str(user_cache()) == "/home/ada/.cache/omnigraph"
