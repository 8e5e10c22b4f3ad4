"""Addresses of servers."""

from __future__ import annotations

import pytest

from omnigraph_core.client.address import parse_address
from omnigraph_core.client.remote import RemoteGraph
from omnigraph_core.errors import ConfigError
from tests.support.cases import each


@each(
    ("given", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        (" https://host.example.org/ ", "https://host.example.org"),
        ("HTTPS://Host/graphs/stock//", "HTTPS://Host/graphs/stock"),
        ("http://[::1]:80/a/b", "http://[::1]:80/a/b"),
    ],
)
def test_urls(given: str, url: str) -> None:
    assert parse_address(given) == url


@each(
    "given",
    [
        "",
        "stock",
        "s3://bucket/x",
        "http://",
        "http://host:port",
        "http://host/?a=b",
        "http://host/#a",
    ],
)
def test_others(given: str) -> None:
    with pytest.raises(ConfigError):
        parse_address(given)


@pytest.mark.parametrize("given", ["https://user:pass-word@host", "https://pass-word@host/x"])
def test_a_password_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(ConfigError) as problem:
        RemoteGraph(given)
    assert "pass-word" not in str(problem.value)


def test_tokens_and_timeouts_are_checked() -> None:
    with pytest.raises(ConfigError, match="token") as problem:
        RemoteGraph("http://host", token="se cret\x00")
    assert "cret" not in str(problem.value)
    with pytest.raises(ConfigError, match="above zero"):
        RemoteGraph("http://host", timeout=0)
    assert repr(RemoteGraph("http://host/", token="secret")) == "<RemoteGraph http://host>"
