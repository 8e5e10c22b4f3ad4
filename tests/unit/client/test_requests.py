"""How requests are written."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from omnigraph_core.client.requests import ask, get, moment, segment, upload, write
from omnigraph_core.errors import ConfigError, ParameterError
from omnigraph_core.ids import is_ulid
from tests.support.cases import each


def test_reads_have_no_key() -> None:
    call = get("/branches", limit=3, page_token=None, values=True, kind=["node", "edge"], from_="a")
    assert call.is_read
    assert call.query == (
        ("limit", "3"), ("values", "true"), ("kind", "node"), ("kind", "edge"), ("from", "a"),
    )  # fmt: skip
    body = ask("/query", query="q", params={"day": dt.date(2026, 1, 31), "xs": (1, 2)}, name=None)
    assert body.is_read
    assert json.loads(body.body or b"") == {
        "query": "q", "params": {"day": "2026-01-31", "xs": [1, 2]},
    }  # fmt: skip


def test_writes_have_one() -> None:
    call = write("POST", "/mutate", {"query": "q", "name": None}, key="mine", if_commit="c1")
    assert (call.key, call.headers["Omnigraph-If-Graph-Commit"]) == ("mine", "c1")
    assert call.body == b'{"query": "q"}'
    other = write("DELETE", "/branches/x")
    assert is_ulid(other.key or "")
    assert (other.body, dict(other.headers)) == (None, {})
    sent = upload("/load/ndjson", lambda: [b"x"], {"A": "b"}, key=None, if_commit="c", mode="merge")
    assert sent.headers == {"A": "b", "Omnigraph-If-Graph-Commit": "c"}
    assert not sent.is_read


@each("key", ["", " x", "a\nb", "schlüssel"])
def test_keys_that_cannot_be_sent(key: str) -> None:
    with pytest.raises(ConfigError, match="idempotency_key"):
        write("POST", "/mutate", {}, key=key)


@pytest.mark.parametrize("value", [float("nan"), {1}, object()])
def test_values_that_are_no_json(value: object) -> None:
    with pytest.raises(ParameterError, match="no JSON values"):
        ask("/query", params={"x": value})


def test_names_in_paths() -> None:
    assert segment("a/b c%?#ü") == "a%2Fb%20c%25%3F%23%C3%BC"
    assert segment(".") == "%2E"
    with pytest.raises(ConfigError, match="empty"):
        segment("")
    with pytest.raises(ConfigError, match="can be sent"):
        segment("\ud800")


def test_moments_are_in_utc() -> None:
    assert moment(dt.datetime(2026, 1, 31, 8)) == "2026-01-31T08:00:00Z"
    zone = dt.timezone(dt.timedelta(hours=2))
    assert moment(dt.datetime(2026, 1, 31, 8, tzinfo=zone)) == "2026-01-31T06:00:00Z"


def test_other_forms_of_a_request() -> None:
    call = write("POST", "/optimize", {}).as_job().accepting("text/plain").waiting(3)
    assert call.headers["Prefer"] == "respond-async"
    assert (call.headers["Accept"], call.seconds) == ("text/plain", 3)
