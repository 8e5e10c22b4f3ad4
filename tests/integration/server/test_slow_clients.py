"""Clients that take their time, do not go on, or go: nobody is held up, nothing is left behind."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.server.protocol import Protocol
from tests.support.raw_http import (
    answers,
    check_refusal,
    connected,
    exchange,
    read_all,
    request,
)
from tests.support.served import new_stock, part, state_of, stock_server, until
from tests.support.server import server_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.server import Client

JSON: Final = {"Content-Type": "application/json"}
READ: Final = "query skus() { match { $p: Part } return { $p.sku } }"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slow")


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
    until(lambda: not uploads.exists() or not any(uploads.iterdir()))


def send_until_cut_off(connection: socket.socket, data: bytes, *, pause: float) -> bool:
    try:
        for _ in range(1_000):
            connection.sendall(data)
            time.sleep(pause)
    except ConnectionError:
        return True
    return False


# Clients that take their time


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("head_seconds", "body_seconds", "rest_seconds"):
        monkeypatch.setattr(Protocol, name, 0.2)


HALF_A_HEAD: Final = b"POST /change HTTP/1.1\r\nHost: x\r\nX-"
HALF_A_BODY: Final = (
    b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("data", [HALF_A_HEAD, HALF_A_BODY])
def test_who_does_not_go_on_is_cut_off(server: Client, data: bytes) -> None:
    check_refusal(exchange(server.url, data)[0], 408)
    again = b"GET /branches HTTP/1.1\r\nHost: x\r\n\r\n" + data
    first, second = exchange(server.url, again)
    assert first.status == 200
    check_refusal(second, 408)


@pytest.mark.usefixtures("_impatient")
def test_who_says_nothing_is_hung_up_on(server: Client) -> None:
    assert exchange(server.url, b"") == []


@pytest.mark.usefixtures("_impatient")
def test_headers_byte_by_byte_win_no_time(server: Client) -> None:
    with connected(server.url) as connection:
        connection.sendall(HALF_A_HEAD)
        assert send_until_cut_off(connection, b"x", pause=0.02)


@pytest.mark.usefixtures("_impatient")
def test_a_body_nobody_reads_holds_no_connection(server: Client) -> None:
    """Answered at once, and the rest of the body only drips."""
    head = (
        b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 9000000\r\n\r\n"
    )
    with connected(server.url) as connection:
        connection.sendall(head)
        assert connection.recv(12) == b"HTTP/1.1 413"
        assert send_until_cut_off(connection, b"x", pause=0.02)


def test_a_slow_request_is_a_request(server: Client) -> None:
    body = json.dumps({"query_source": READ}).encode()
    data = request("POST", "/read", body)
    with connected(server.url) as connection:
        for start in range(0, len(data), 23):
            connection.sendall(data[start : start + 23])
            time.sleep(0.005)
        (answer,) = answers(read_all(connection))
    assert answer.json()["row_count"] == 4


# Clients that go


ROWS: Final = b"".join(json.dumps(part(f"half{n}")).encode() + b"\n" for n in range(20_000))


@pytest.mark.parametrize("path", ["/load/ndjson", "/ingest", "/load/files"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_half_of_an_upload_is_nothing(server: Client, path: str, is_chunked: bool) -> None:
    kind = {
        "/load/ndjson": "application/x-ndjson",
        "/ingest": "application/json",
        "/load/files": "multipart/form-data; boundary=x",
    }[path]
    start = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
    body = (start if path == "/load/files" else b"") + ROWS
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body) + 9}"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{length}\r\n\r\n"
    if is_chunked:
        body = f"{len(body):x}\r\n".encode() + body + b"\r\n"
    assert exchange(server.url, head.encode() + body, is_half_closed=True) == []


def test_a_query_nobody_waits_for_is_stopped(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = threading.Event(), threading.Event()
    query = Omnigraph.query

    def waiting(self: Omnigraph, *args: Any, cancellation: Any, **options: Any) -> Any:
        begun.set()
        until(lambda: cancellation.is_cancelled)
        stopped.set()
        return query(self, *args, cancellation=cancellation, **options)

    monkeypatch.setattr(Omnigraph, "query", waiting)
    body = json.dumps({"query_source": READ}).encode()
    with connected(server.url) as connection:
        connection.sendall(request("POST", "/read", body))
        assert begun.wait(120)
        assert not stopped.wait(0.1)
    assert stopped.wait(120)
    monkeypatch.undo()
    assert server.post("/read", {"query_source": READ}).json()["row_count"] == 4


def test_no_more_is_made_than_is_read(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads nothing gets what fits the buffers on the way, and no more is made."""
    made: list[int] = []
    closed = threading.Event()
    chunk = b'{"type": "Part"}\n' * 60_000

    def lines(*_: object, **__: object) -> Iterator[bytes]:
        try:
            for number in range(1_000):
                made.append(number)
                yield chunk
        finally:
            closed.set()

    monkeypatch.setattr(Omnigraph, "export_jsonl", lines)
    with connected(server.url, window=4_096) as connection:
        connection.sendall(request("POST", "/export", b"{}"))
        assert connection.recv(12) == b"HTTP/1.1 200"
        seen = -1
        while seen != len(made):  # until it stands still
            seen = len(made)
            time.sleep(0.2)
        assert len(made) < 20
        connection.shutdown(socket.SHUT_RDWR)
    assert closed.wait(120)
    assert len(made) < 30


def test_who_takes_nothing_of_an_answer_is_cut_off(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()

    def lines(*_: object, **__: object) -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * 1_000_000
        finally:
            closed.set()

    monkeypatch.setattr(Omnigraph, "export_jsonl", lines)
    monkeypatch.setattr(Protocol, "take_seconds", 0.3)
    with connected(server.url, window=4_096) as connection:
        connection.sendall(request("POST", "/export", b"{}"))
        assert connection.recv(12) == b"HTTP/1.1 200"
        assert closed.wait(120)  # and what it held is given back


def test_who_takes_an_answer_slowly_gets_all_of_it(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every time it is looked at, more has been taken."""
    chunk = b"x" * 32_000_000
    paused: list[Protocol] = []
    pause = Protocol.pause_writing

    def pausing(self: Protocol) -> None:
        pause(self)
        paused.append(self)

    monkeypatch.setattr(Omnigraph, "export_jsonl", lambda *_, **__: iter([chunk]))
    monkeypatch.setattr(Protocol, "pause_writing", pausing)
    with connected(server.url) as connection:
        connection.sendall(request("POST", "/export", b"{}"))
        until(lambda: paused)
        (slow,) = paused
        for _ in range(3):
            before = slow.transport.get_write_buffer_size()
            taken = sum(len(connection.recv(65_536)) for _ in range(100))
            until(lambda least=before: slow.transport.get_write_buffer_size() < least - 65_536)
            slow.loop.call_soon_threadsafe(slow._look_at_taking, before)
        assert taken + len(read_all(connection)) > 10_000_000
        assert not slow.transport.is_closing() or not slow.transport.get_write_buffer_size()


LONG: Final = "x" * 200
MANY: Final = 100_000


def test_a_huge_answer_needs_little_memory(tmp_path: Path) -> None:
    """The rows are small, their text is not: it is made as it is read, by whoever is slow."""
    graph = new_stock(tmp_path)
    names = [f"s{n}" for n in range(MANY)]
    graph.load(pa.table({"sku": names, "name": names, "stock": list(range(MANY))}), type="Part")
    columns = ", ".join(f"$p.stock as {LONG}{n}" for n in range(5))
    text = f"query wide() {{ match {{ $p: Part }} return {{ {columns} }} }}"
    body = json.dumps({"query_source": text}).encode()
    with server_process(graph.uri) as running, running.client() as client:
        warm = {"query_source": text.replace("} }", "} limit 1 }")}
        assert client.post("/read", warm).json()["row_count"] == 1
        before = running.peak_megabytes()
        with ExitStack() as open_connections:
            for _ in range(3):
                slow = open_connections.enter_context(connected(running.url, window=4_096))
                slow.sendall(request("POST", "/read", body))
                assert slow.recv(12) == b"HTTP/1.1 200"
            with client.stream("POST", "/read", content=body, headers=JSON) as answer:
                size = sum(len(piece) for piece in answer.iter_bytes())
        after = running.peak_megabytes()
    assert size > MANY * 5 * len(LONG)
    assert after - before < size / 2**20  # four answers of that size were under way


def test_a_head_without_an_end_is_cut_off(server: Client) -> None:
    with connected(server.url) as connection:
        connection.sendall(b"GET /branches HTTP/1.1\r\nHost: x\r\nX-Long: ")
        assert send_until_cut_off(connection, b"a" * 65_536, pause=0)
