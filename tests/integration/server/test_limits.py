"""How much a server takes and how it sends much: bodies, actors, compression, streams."""

from __future__ import annotations

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.server import serving
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.server import Client

NAMES = "query names() { match { $p: Person } return { $p.name, $p.nickname } }"
FEW = "query few() { match { $p: Person } return { $p.name } limit 3 }"
MANY = 30_000
USUAL, LARGE = 1_048_576, 33_554_432
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def crowd(people: Omnigraph) -> Omnigraph:
    rows = (
        json.dumps({"type": "Person", "data": {"name": f"p{n:06}", "nickname": "n" * 40}})
        for n in range(MANY)
    )
    people.load("\n".join(rows).encode())
    return people


def connected(client: Client) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(client.url.removeprefix("http://"), timeout=120)


def padded(length: int) -> bytes:
    """A body of a read with exactly so many bytes."""
    body = json.dumps({"query_source": FEW, "padding": ""}).encode()
    return body[:-2] + b"x" * (length - len(body)) + body[-2:]


def chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), 100_000):
        yield data[start : start + 100_000]


@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_longest_body(open_server: Client, is_chunked: bool) -> None:
    for length, status in ((USUAL, 200), (USUAL + 1, 413)):
        data = padded(length)
        content = chunks(data) if is_chunked else data
        answer = open_server.request("POST", "/read", content=content, headers=JSON)
        assert answer.status_code == status
    assert answer.json()["code"] == "bad_request"
    assert answer.json()["reason"] == "http.too_large"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("path", ["/ingest", "/load", "/graphs/default/ingest"])
def test_bodies_with_data_may_be_longer(open_server: Client, path: str) -> None:
    line = '{"type": "Person", "data": {"name": "Alice", "age": 30}}\n'
    body = {"data": line, "padding": "x" * (2 * USUAL)}
    assert open_server.post(path, body).status_code == 200
    connection = connected(open_server)
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(LARGE + 1))
    connection.endheaders()
    answer = connection.getresponse()  # before any of it is sent
    assert (answer.status, json.loads(answer.read())["reason"]) == (413, "http.too_large")
    connection.close()


def test_an_actor_has_so_many_requests_at_a_time(people: Omnigraph, tmp_path: Path) -> None:
    config = tmp_path / "omnigraph.yaml"
    config.write_text("server: {per_actor_inflight: 2, per_actor_bytes: 100000}\n")
    with serving(people.uri, config=config) as client:
        slow = [connected(client) for _ in range(2)]
        for connection in slow:  # begun and not finished
            connection.putrequest("POST", "/read")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", "100")
            connection.endheaders()
        answer = until(client, 429)
        assert answer.json()["code"] == "too_many_requests"
        assert answer.headers["retry-after"] == "1"
        assert client.get("/healthz").status_code == 200
        for connection in slow:
            connection.close()
        until(client, 200)
        assert client.request("POST", "/read", content=padded(100_001)).status_code == 429
        assert client.request("POST", "/read", content=padded(90_000)).status_code == 415
        line = b'{"type": "Person", "data": {"name": "Alice"}}\n'
        for content in (line * 3_000, chunks(line * 3_000)):  # to disk, whatever their length
            sent = client.request("POST", "/load/ndjson?mode=merge", content=content, headers=LINES)
            assert sent.status_code != 429


def until(client: Client, status: int) -> Any:
    """The first answer with a status; others come first while connections are begun or closed."""

    def answer() -> Any:
        found = client.get("/branches")
        return found if found.status_code == status else None

    return wait_until(answer, f"an answer with status {status}")


def test_sixteen_at_a_time_are_answered(open_server: Client) -> None:
    def ask(_: int) -> int:
        return int(open_server.post("/read", {"query_source": FEW}).status_code)

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(ask, range(64))) == {200}


def raw(client: Client, body: object, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = connected(client)
    connection.request("POST", "/read", json.dumps(body), {**JSON, **headers})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer, data


def unpacked(data: bytes, coding: str) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), coding) as stream:
        return bytes(stream.read())


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=0.5, zstd;q=0", "gzip"),
        ("br", None),
        ("identity", None),
    ],
)
def test_long_answers_are_compressed(
    crowd: Omnigraph, open_server: Client, accepted: str, coding: str | None
) -> None:
    body = {"query_source": NAMES.replace("} }", "} limit 100 }")}
    answer, data = raw(open_server, body, **{"Accept-Encoding": accepted})
    assert answer.getheader("content-encoding") == coding
    text = data if coding is None else unpacked(data, coding)
    assert json.loads(text)["row_count"] == 100
    short, _ = raw(open_server, {"query_source": FEW}, **{"Accept-Encoding": accepted})
    assert short.getheader("content-encoding") is None


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_long_answer_is_streamed(crowd: Omnigraph, open_server: Client, coding: str) -> None:
    whole, data = raw(open_server, {"query_source": NAMES}, **{"Accept-Encoding": "identity"})
    assert whole.getheader("transfer-encoding") == "chunked"
    found = json.loads(data)
    assert found["row_count"] == len(found["rows"]) > MANY
    packed, data = raw(open_server, {"query_source": NAMES}, **{"Accept-Encoding": coding})
    assert packed.getheader("content-encoding") == coding
    assert json.loads(unpacked(data, coding)) == found


def test_arrow_is_not_compressed(crowd: Omnigraph, open_server: Client) -> None:
    accept = "application/vnd.apache.arrow.stream"
    answer, data = raw(open_server, {"query_source": NAMES}, Accept=accept)
    assert answer.getheader("content-encoding") is None
    with pa.ipc.open_stream(data) as stream:
        assert stream.read_all().equals(crowd.query("main", NAMES).to_arrow())


def test_a_client_that_reads_nothing_holds_nobody_up(crowd: Omnigraph, open_server: Client) -> None:
    """More slow readers than there are threads for reads."""
    request = (
        b"POST /export HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )
    host, _, port = open_server.url.removeprefix("http://").partition(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(12)]
    try:
        for connection in slow:
            connection.sendall(request)
        assert open_server.post("/read", {"query_source": FEW}).status_code == 200
        assert slow[0].recv(12) == b"HTTP/1.1 200"
    finally:
        for connection in slow:
            connection.close()
    assert open_server.post("/read", {"query_source": FEW}).status_code == 200


def test_an_export_may_be_left_early(crowd: Omnigraph, open_server: Client) -> None:
    with open_server.stream("POST", "/export", json={}) as answer:
        first = next(answer.iter_lines())
    assert json.loads(first)
    assert open_server.get("/healthz").status_code == 200


def test_browsers_of_configured_origins(people: Omnigraph, tmp_path: Path) -> None:
    config = tmp_path / "omnigraph.yaml"
    config.write_text("server: {cors_origins: ['https://app.example.org'], hides_uris: true}\n")
    origin = {"Origin": "https://app.example.org"}
    with serving(people.uri, config=config) as client:
        asked = {**origin, "Access-Control-Request-Method": "POST"}
        preflight = client.request("OPTIONS", "/read", headers=asked)
        assert preflight.status_code == 200
        allowed = "access-control-allow-origin"
        assert preflight.headers[allowed] == origin["Origin"]
        answer = client.get("/branches", headers=origin)
        assert answer.headers[allowed] == origin["Origin"]
        assert "X-Request-Id" in answer.headers["access-control-expose-headers"]
        other = {"Origin": "https://other.example.org"}
        assert allowed not in client.get("/branches", headers=other).headers
        for refused in ({**asked, **other}, {**asked, "Access-Control-Request-Method": "PUT"}):
            answer = client.request("OPTIONS", "/read", headers=refused)
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
            assert refused["Origin"] in answer.json()["error"]
            assert answer.json()["request_id"] == answer.headers["x-request-id"]
            assert allowed not in answer.headers
        assert client.request("OPTIONS", "/read", headers=origin).status_code == 204
        made = client.post("/branches", {"name": "from-a-browser"}).json()
        assert made["uri"] == "default"
