"""What no client should send, against a live server: refused in one shape, and nothing written.

Every refusal has the status that fits, the JSON body of all refusals and an id.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest

from omnigraph_core.server.protocol import Protocol
from tests.support.cases import each
from tests.support.raw_http import (
    answers,
    check_refusal,
    connected,
    exchange,
    read_all,
    request,
)
from tests.support.served import new_stock, state_of, stock_server
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

JSON: Final = {"Content-Type": "application/json"}
READ: Final = "query skus() { match { $p: Part } return { $p.sku } }"
INSERT: Final = "query add($sku: String) { insert Part { sku: $sku, name: $sku } }"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad")


@pytest.fixture(scope="module")
def stock(root: Path) -> Omnigraph:
    return new_stock(root)


@pytest.fixture(scope="module")
def server(root: Path, stock: Omnigraph) -> Iterator[Client]:
    with stock_server(root) as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_is_written(root: Path, stock: Omnigraph, server: Client) -> Iterator[None]:
    """No test here leaves a trace."""
    before = state_of(stock)
    yield
    assert state_of(stock) == before
    uploads = root / "spool" / "uploads"
    wait_until(lambda: not uploads.exists() or not any(uploads.iterdir()), "an empty spool")


# Everything that can be named, with what cannot be

NAMES: Final = ("../../etc/passwd", "a\0b", "..", "__run__x", "x" * 5_000)
NO_VALUES: Final = (2**70, {"a": [{"b": None}]}, [["x"]])
NO_BODIES: Final = (b"{", b"\xed\xa0\x80", b"NaN", b'{"a":' * 3_000)
WRITES_ANYTHING: Final = frozenset({"operation_hash"})
"""Fields that take any text."""


def parameters(operation: Any, place: str) -> list[str]:
    return [item["name"] for item in operation.get("parameters", ()) if item["in"] == place]


def fields(document: Any, operation: Any) -> tuple[list[str], dict[str, str]]:
    """The fields of a body, and a body with those that are needed."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return [], {}
    schema = content["schema"]
    schema = schema.get("anyOf", [schema])[0]
    found = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return list(found["properties"]), dict.fromkeys(found.get("required", ()), "x")


def wrong_requests(
    document: Any, path: str, operation: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Addresses and bodies, each with one thing in it that cannot be."""
    names, needed = fields(document, operation)
    body = {"json": needed} if names else {}
    needs = "&".join(f"{name}=x" for name in parameters(operation, "query"))
    in_path = parameters(operation, "path")
    plain = path
    for name in in_path:
        plain = plain.replace(f"{{{name}}}", "x")
    for value in NAMES if in_path else ():
        named = path.replace(f"{{{in_path[0]}}}", quote(value, safe=""))
        yield f"{named}?{needs}", body
    for name in parameters(operation, "query"):
        for value in ("a\0b", "../../x"):
            yield f"{plain}?{needs}&{name}={quote(value, safe='')}", body
    for name in names:
        for value in NO_VALUES if name in WRITES_ANYTHING else (*NO_VALUES, *NAMES[:2]):
            yield plain, {"json": {**needed, name: value}}
        half = json.dumps({**needed, name: "half of a pair: \ud800"}).encode()
        yield plain, {"content": half, "headers": JSON}
    for content in NO_BODIES if names else ():
        yield plain, {"content": content, "headers": JSON}


def test_every_operation_refuses_what_cannot_be(server: Client) -> None:
    document = server.get("/openapi.json").json()
    count = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for address, options in wrong_requests(document, path, operation):
                answer = server.request(method.upper(), address, **options)
                count += 1
                what = (method, address[:200], options, answer.status_code, answer.text[:300])
                assert str(answer.status_code) in operation["responses"], what
                assert answer.status_code < 500, what
                assert answer.headers["x-request-id"], what
                if answer.status_code >= 400 and method != "head":
                    assert answer.headers["content-type"] == "application/json", what
                    assert answer.json()["request_id"] == answer.headers["x-request-id"], what
    assert count > 500


# Bodies


@each(
    ("body", "status"),
    [
        ({"query_source": INSERT, "params": None}, 400),
        ({"query_source": INSERT, "params": {"sku": None}}, 400),
        ({"query_source": INSERT, "params": {"sku": 2**70}}, 400),
        ({"query_source": INSERT, "params": {"sku": {"a": 1}}}, 400),
        ({"query_source": INSERT, "params": {"sku": "a", "more": {"a": {}}}}, 400),
        ({"query_source": None}, 422),
        ({"query_source": True}, 422),
        ({"query_source": ""}, 400),
        ({"query_source": "query" * 50_000}, 400),
        ({"query_source": "query a() { match { $p: Part } return { " + "(" * 20_000}, 400),
        ({"query_source": f"{INSERT}\nquery other() {{ delete Part where sku = 'p1' }}"}, 400),
        ({"query_source": INSERT, "params": {"sku": "a"}, "branch": "../main"}, 404),
        ({"query_source": INSERT, "params": {"sku": "a"}, "branch": ""}, 400),
    ],
)
def test_a_change_that_cannot_be(server: Client, body: object, status: int) -> None:
    for path in ("/change", "/graphs/default/change"):
        answer = server.post(path, body)
        assert answer.status_code == status, answer.text
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_of_keys_that_stand_there_twice_the_last_counts(server: Client) -> None:
    text = f'{{"query_source": 7, "query_source": {json.dumps(READ)}}}'
    assert server.request("POST", "/read", content=text, headers=JSON).json()["row_count"] == 4
    text = f'{{"query_source": {json.dumps(READ)}, "query_source": 7}}'
    assert server.request("POST", "/read", content=text, headers=JSON).status_code == 422


@each(
    ("data", "problem"),
    [
        ('{"type": "Part", "data": {"sku": "x1", "name": "n"}}\n{', "line 2"),
        ('{"type": "Part", "data": {"sku": "x1", "name": "n"}}\n{"type": "Robot"}', "line 2"),
        ('{"type": "Part", "data": {"sku": "x1", "name": "n", "stock": 1e400}}', "stock"),
        ('{"type": "Part", "data": {"sku": "x", "name": "n", "stock": %s}}' % ("9" * 4_999), "1"),
        ('{"type": "Part", "data": {"sku": "x1", "name": "n", "sku": "x2"}}', "sku"),
        ('{"type": "Part", "data": ' + "[" * 20_000, "line 1"),
        ("\0", "line 1"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_loaded(server: Client, data: str, problem: str) -> None:
    ways = [
        server.post("/ingest", {"data": data}),
        server.post("/load", {"data": data}),
        server.request("POST", "/load/ndjson", content=data.encode()),
    ]
    for answer in ways:
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
        assert problem in answer.json()["error"]


def test_lines_that_are_no_text(server: Client) -> None:
    answer = server.request("POST", "/load/ndjson", content=b'{"type": "Part\xff"}\n')
    assert answer.status_code == 400
    assert "line 1" in answer.json()["error"]


# Addresses as no client library sends them


@each(
    ("target", "status"),
    [
        ("/graphs/../branches", 404),
        ("/graphs/%2e%2e/branches", 404),
        ("/graphs/..%2f..%2fetc/branches", 404),
        ("/graphs/%00/branches", 404),
        ("/graphs/default/graphs/default/branches", 404),
        ("/graphs//branches", 404),
        ("//branches", 404),
        ("/branches/", 400),
        ("/./branches", 404),
        ("/branches/../schema", 404),
        ("/branches/%2e%2e%2fschema", 404),
        ("/branches/..%5c..%5cetc", 404),
        ("/branches/%00", 404),
        ("/branches/%ff%fe", 404),
        ("/branches/%ED%A0%80", 404),
        ("/branches/%", 404),
        ("/branches/__run__x", 404),
        ("/commits/..%2f..%2fstock%2fschema", 404),
        ("/jobs/..%2fkeys", 404),
        ("/jobs/%2e%2e", 404),
        ("/jobs/%00", 404),
        ("/snapshot?branch=%00", 404),
        ("/snapshot?branch=..%2f..", 404),
        ("/snapshot?tag=..%2f..", 404),
        ("/snapshot?version=99999999999999999999", 422),
        ("/blob?type=..&id=..&property=..", 400),
        ("/branches?limit=1&limit=x", 422),
        ("*", 404),
        (f"/branches/{'x' * 20_000}", 400),
    ],
)
def test_addresses_that_lead_nowhere(server: Client, target: str, status: int) -> None:
    (answer,) = exchange(server.url, request("GET", target))
    check_refusal(answer, status)


# Bytes that are no request

NO_REQUESTS: Final = (
    b"hello\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /branches HTTP/9.9\r\n\r\n",
    b"BREW /branches HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /br\0anches HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /br\xffanches HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /branches HTTP/1.1\r\nHost: x\r\nX: a\x01b\r\n\r\n",
    b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"POST /change HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
)


@each("data", NO_REQUESTS)
def test_bytes_that_are_no_request(server: Client, data: bytes) -> None:
    answer = exchange(server.url, data)[-1]
    check_refusal(answer, 400)
    assert answer.headers["connection"] == "close"


def test_what_follows_a_request_does_not_spoil_its_answer(server: Client) -> None:
    good = b"GET /branches HTTP/1.1\r\nHost: x\r\n\r\n"
    found = exchange(server.url, good + good + b"hello\r\n\r\n")
    assert [answer.status for answer in found] == [200, 200, 400]
    assert found[1].json() == {"branches": ["main"]}
    check_refusal(found[2], 400)


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
@pytest.mark.parametrize("piece", [b"a", b"a\r\nX-More: "])
def test_heads_that_are_too_long(
    server: Client, piece: bytes, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has read the first part, which is short enough, before the rest comes."""
    heard, hear = bytearray(), Protocol.data_received

    def hearing(self: Protocol, data: bytes) -> None:
        heard.extend(data)
        hear(self, data)

    monkeypatch.setattr(Protocol, "data_received", hearing)
    first = b"GET /branches HTTP/1.1\r\nHost: x\r\nX-Long: " + piece * (60_000 // len(piece))
    with connected(server.url) as connection:
        connection.sendall(first)
        wait_until(lambda: heard == first, "the server to read the first part")
        connection.sendall(piece * (10_000 // len(piece)) + end)
        (answer,) = answers(read_all(connection))
    assert check_refusal(answer, 431)["reason"] == "http.head_too_large"
