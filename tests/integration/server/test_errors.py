"""One shape for every answer that is no success, whoever refuses."""

from __future__ import annotations

import http.client
import json
import logging
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import StorageError
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.server import Client

NAMES = "query names() { match { $p: Person } return { $p.name } }"
INSERT = "query add($name: String) { insert Person { name: $name } }"
JSON = {"Content-Type": "application/json"}


def refused(response: Any, status: int, code: str) -> Any:
    """The body of a refusal, with what every one has."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body["code"] == code
    assert body["error"]
    assert body["reason"]
    assert body["request_id"] == response.headers["x-request-id"]
    return body


@each(
    ("path", "body", "status", "code", "reason"),
    [
        ("/read", {"query_source": "not a query"}, 400, "bad_request", "query.syntax"),
        (
            "/read",
            {"query_source": "query q() { match { $p: Robot } return { $p.name } }"},
            400,
            "bad_request",
            "query.type",
        ),
        (
            "/read",
            {"query_source": NAMES, "query_name": "other"},
            400,
            "bad_request",
            "not_found.query",
        ),
        (
            "/read",
            {"query_source": NAMES, "params": {"x": 1}},
            400,
            "bad_request",
            "data.parameter",
        ),
        (
            "/read",
            {"query_source": NAMES, "branch": "main", "snapshot": "x"},
            400,
            "bad_request",
            "config.invalid",
        ),
        ("/read", {"query_source": NAMES, "at": "soon"}, 400, "bad_request", "config.invalid"),
        ("/read", {"query_source": INSERT}, 400, "bad_request", "config.invalid"),
        ("/query", {"query": INSERT}, 400, "bad_request", "config.invalid"),
        ("/change", {"query_source": NAMES}, 400, "bad_request", "config.invalid"),
        ("/read", {"query_source": NAMES, "branch": "none"}, 404, "not_found", "not_found.branch"),
        (
            "/read",
            {"query_source": NAMES, "snapshot": "01HZY000000000000000000000"},
            404,
            "not_found",
            "not_found.commit",
        ),
        (
            "/read",
            {"query_source": NAMES, "version": 900},
            404,
            "not_found",
            "not_found.snapshot",
        ),
        (
            "/read",
            {"query_source": NAMES, "memory": 1},
            413,
            "bad_request",
            "query.over_budget",
        ),
        ("/export", {"branch": "none"}, 404, "not_found", "not_found.branch"),
        ("/export", {"type_names": ["Robot"]}, 400, "bad_request", "config.invalid"),
        (
            "/change",
            {"query_source": INSERT, "branch": "none", "params": {"name": "x"}},
            404,
            "not_found",
            "not_found.branch",
        ),
        ("/branches", {"name": "main"}, 400, "bad_request", "config.invalid"),
        ("/branches", {"name": "../up"}, 400, "bad_request", "config.invalid"),
        ("/branches", {"name": "a\x07b"}, 400, "bad_request", "config.invalid"),
        ("/branches", {"name": "__run__x"}, 400, "bad_request", "config.invalid"),
        ("/branches", {"name": "x", "from": "none"}, 404, "not_found", "not_found.branch"),
        ("/branches/merge", {"source": "none"}, 404, "not_found", "not_found.branch"),
        ("/branches/merge", {"source": "main"}, 400, "bad_request", "config.invalid"),
        (
            "/ingest",
            {"data": '{"type": "Person", "data": {"name": 7}}'},
            400,
            "bad_request",
            "data.record",
        ),
        ("/schema/apply", {"schema_source": "node {"}, 400, "bad_request", "schema.syntax"),
        ("/schema/plan", {"schema_source": "node {"}, 400, "bad_request", "schema.syntax"),
    ],
)
def test_the_engine_refuses(
    open_server: Client, path: str, body: object, status: int, code: str, reason: str
) -> None:
    assert refused(open_server.post(path, body), status, code)["reason"] == reason


def test_a_branch_that_is_there(open_server: Client, people: Omnigraph) -> None:
    people.branch_create("twice")
    found = refused(open_server.post("/branches", {"name": "twice"}), 409, "conflict")
    assert found["reason"] == "conflict.already_exists"


@each(
    ("method", "path", "status"),
    [
        ("GET", "/none", 404),
        ("GET", "/graphs/none", 404),
        ("GET", "/graphs/none/schema", 404),
        ("GET", "/commits/none", 404),
        ("GET", "/commits/%2e%2e%2f%2e%2e", 404),
        ("GET", "/runs/none", 404),
        ("DELETE", "/branches/none", 404),
        ("GET", "/snapshot/", 404),
    ],
)
def test_nothing_there(open_server: Client, method: str, path: str, status: int) -> None:
    refused(open_server.request(method, path), status, "not_found")


@pytest.mark.parametrize("path", ["/branches/main", "/branches/__run__x", "/branches/%00"])
def test_branches_that_cannot_be_deleted(open_server: Client, path: str) -> None:
    assert open_server.delete(path).status_code in (400, 404)
    refused(open_server.delete("/branches/main"), 400, "bad_request")


def test_another_method(open_server: Client) -> None:
    answer = open_server.request("PUT", "/branches/a%2Fb")
    assert refused(answer, 405, "bad_request")["reason"] == "http.method_not_allowed"
    assert answer.headers["allow"] == "DELETE, GET, HEAD, OPTIONS"


@each(
    ("content", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b'{"query_source": "x"}', {}, 415),
        (b'{"query_source": "x"}', {"Content-Type": "text/plain"}, 415),
        (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"", JSON, 422),
        (b"", {}, 422),
        (b"null", JSON, 422),
        (b"[]", JSON, 422),
        (b"{}", JSON, 422),
        (b'{"query_source": 7}', JSON, 422),
        (b'{"query_source": "x", "params": []}', JSON, 422),
        (b'{"query_source": "x", "version": -1}', JSON, 422),
        (b'{"query_source": "x", "version": 1e400}', JSON, 422),
        (b'{"query_source": "x", "timeout": 1e400}', JSON, 422),
        (b'{"query_source": "x", "memory": 99999999999999999999}', JSON, 422),
        (b'{"query_source": "\\ud800"}', JSON, 422),
        (b'{"query_source": "x", "params": {"a": ["\\udfff"]}}', JSON, 422),
    ],
)
def test_bodies_of_another_shape(
    open_server: Client, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = open_server.request("POST", "/read", content=content, headers=headers)
    refused(answer, status, "bad_request")


@each(
    ("content", "headers", "status", "message"),
    [
        (b"{]", {}, 400, "the body is not JSON: Expecting property name"),
        (b'{"query_source": "\xff"}', {}, 400, "not UTF-8 text"),
        (b'{"version": ' + b"9" * 5_000 + b"}", {}, 400, "a number in it has too many digits"),
        (b"[" * 100_000, {}, 400, "nested too deeply"),
        (b"\x1f\x8b\x08", {"Content-Encoding": "gzip"}, 415, "Content-Encoding: gzip"),
    ],
)
def test_why_a_body_cannot_be_read(
    open_server: Client, content: bytes, headers: dict[str, str], status: int, message: str
) -> None:
    answer = open_server.request("POST", "/read", content=content, headers={**JSON, **headers})
    assert message in refused(answer, status, "bad_request")["error"]


def test_every_problem_of_a_body_is_told(open_server: Client) -> None:
    answer = open_server.post("/ingest", {"mode": "sideways", "branch": 7})
    message = refused(answer, 422, "bad_request")["error"]
    assert all(part in message for part in ("body.data", "body.mode", "body.branch"))


@each("query", ["limit=0", "limit=x", "limit=99999999999", "page_token=x", "page_token=%ff"])
def test_parameters_that_are_none(open_server: Client, query: str) -> None:
    answer = open_server.get(f"/branches?{query}")
    refused(answer, 400 if "token" in query else 422, "bad_request")


def test_a_query_that_takes_too_long(open_server: Client) -> None:
    body = {"query_source": NAMES, "timeout": 1e-9}
    found = refused(open_server.post("/read", body), 400, "bad_request")
    assert (found["reason"], found["retryable"]) == ("query.timeout", True)


@each("given", ["", "a b", "x" * 129, "zoë"])
def test_request_ids(open_server: Client, given: str) -> None:
    kept = open_server.get("/healthz", headers={"X-Request-Id": "abc-1"})
    assert kept.headers["x-request-id"] == "abc-1"
    host = open_server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", "/none", headers={"X-Request-Id": given.encode("latin-1")})
    answer = connection.getresponse()
    made = answer.getheader("x-request-id")
    assert json.loads(answer.read())["request_id"] == made
    assert made != given
    connection.close()


def test_what_nobody_expected(
    open_server: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Omnigraph, "branch_list", broken)
    with caplog.at_level(logging.ERROR, "omnigraph.server"):
        answer = open_server.get("/branches")
    refused(answer, 500, "internal")
    assert "secret detail" not in answer.text
    assert "secret detail" in caplog.text
    assert open_server.get("/healthz").status_code == 200


def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(
    open_server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(*_: object, **__: object) -> Iterator[bytes]:
        yield b'{"type": "Person"}\n'
        raise StorageError("the store is gone")

    monkeypatch.setattr(Omnigraph, "export_jsonl", lines)
    with pytest.raises(httpx2.RemoteProtocolError):
        open_server.post("/export", {})


def test_a_store_that_fails_for_now(open_server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise StorageError("the store is slow", retryable=True)

    monkeypatch.setattr(Omnigraph, "get_run", failing)
    answer = open_server.get("/runs/x")
    assert refused(answer, 503, "internal")["retryable"] is True
    assert answer.headers["retry-after"] == "1"
