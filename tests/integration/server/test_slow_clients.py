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
from tests.support.served import new_stock, part, state_of, stock_server
from tests.support.server import server_process
from tests.support.waiting import wait_until

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
    wait_until(lambda: not uploads.exists() or not any(uploads.iterdir()), "an empty spool")


def send_until_cut_off(connection: socket.socket, data: bytes = b"x") -> None:
    """Send something every now and then until the server hangs up."""

    def is_cut_off() -> bool:
        try:
            connection.sendall(data)
        except ConnectionError:
            return True
        return False

    wait_until(is_cut_off, "the server to hang up")


# Clients that take their time


TIMES: Final = ("head_seconds", "body_seconds", "rest_seconds")


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TIMES:
        monkeypatch.setattr(Protocol, name, 0.2)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Protocol]:
    """The connections of a test as the server has them."""
    found: list[Protocol] = []
    begin = Protocol.connection_made

    def beginning(self: Protocol, transport: Any) -> None:
        found.append(self)
        begin(self, transport)

    monkeypatch.setattr(Protocol, "connection_made", beginning)
    return found


def has_begun(connection: Protocol) -> bool:
    """Whether a request has come in part."""
    return bool(connection._head_size) or connection._is_in_body


def run_out_of_time(connection: Protocol) -> None:
    """The server looks at a connection whose time has passed: so no test depends on how long the
    machine takes for what comes before."""

    def look() -> None:
        for name in TIMES:
            setattr(connection, name, 0.0)
        if connection._watch is not None:
            connection._watch.cancel()
        connection._look()

    connection.loop.call_soon_threadsafe(look)


HALF_A_HEAD: Final = b"POST /change HTTP/1.1\r\nHost: x\r\nX-"
HALF_A_BODY: Final = (
    b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{"
)


@pytest.mark.parametrize("data", [HALF_A_HEAD, HALF_A_BODY])
@pytest.mark.parametrize("is_first", [True, False])
def test_who_does_not_go_on_is_cut_off(
    server: Client, served: list[Protocol], data: bytes, *, is_first: bool
) -> None:
    before = b"" if is_first else b"GET /branches HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(server.url) as connection:
        connection.sendall(before + data)
        found = b""
        while before and not found.endswith(b"}"):
            piece = connection.recv(65_536)
            assert piece, "the server has closed the connection"
            found += piece
        wait_until(lambda: served and has_begun(served[0]), "the server to read all of it")
        run_out_of_time(served[0])
        *earlier, last = answers(found + read_all(connection))
    assert [answer.status for answer in earlier] == ([] if is_first else [200])
    check_refusal(last, 408)


@pytest.mark.usefixtures("_impatient")
def test_who_says_nothing_is_hung_up_on(server: Client) -> None:
    assert exchange(server.url, b"") == []


@pytest.mark.usefixtures("_impatient")
def test_headers_byte_by_byte_win_no_time(server: Client) -> None:
    with connected(server.url) as connection:
        connection.sendall(HALF_A_HEAD)
        send_until_cut_off(connection)


def test_a_body_nobody_reads_holds_no_connection(server: Client, served: list[Protocol]) -> None:
    """Answered at once, and the rest of the body only drips."""
    head = (
        b"POST /change HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 9000000\r\n\r\n"
    )
    with connected(server.url) as connection:
        connection.sendall(head)
        assert connection.recv(12) == b"HTTP/1.1 413"
        connection.sendall(b"x")
        wait_until(lambda: served[0]._answered is not None, "the end of the answer")
        run_out_of_time(served[0])
        send_until_cut_off(connection)


def test_a_slow_request_is_a_request(server: Client) -> None:
    body = json.dumps({"query_source": READ}).encode()
    data = request("POST", "/read", body)
    with connected(server.url) as connection:
        for start in range(0, len(data), 23):
            connection.sendall(data[start : start + 23])
            time.sleep(0.005)  # a slow client is what this test is about
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
        wait_until(lambda: cancellation.is_cancelled, "the client to go")
        stopped.set()
        return query(self, *args, cancellation=cancellation, **options)

    monkeypatch.setattr(Omnigraph, "query", waiting)
    body = json.dumps({"query_source": READ}).encode()
    with connected(server.url) as connection:
        connection.sendall(request("POST", "/read", body))
        assert begun.wait(120)
        for _ in range(3):  # what the server does meanwhile does not stop it
            assert server.get("/branches").status_code == 200
        assert not stopped.is_set()
    assert stopped.wait(120)
    monkeypatch.undo()
    assert server.post("/read", {"query_source": READ}).json()["row_count"] == 4


def test_no_more_is_made_than_is_read(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads nothing gets what fits the buffers on the way, and no more is made."""
    made: list[int] = []
    paused, closed = threading.Event(), threading.Event()
    pause = Protocol.pause_writing

    def pausing(self: Protocol) -> None:
        pause(self)
        paused.set()

    chunk = b'{"type": "Part"}\n' * 60_000

    def lines(*_: object, **__: object) -> Iterator[bytes]:
        try:
            for number in range(1_000):
                made.append(number)
                yield chunk
        finally:
            closed.set()

    monkeypatch.setattr(Omnigraph, "export_jsonl", lines)
    monkeypatch.setattr(Protocol, "pause_writing", pausing)
    with connected(server.url, window=4_096) as connection:
        connection.sendall(request("POST", "/export", b"{}"))
        assert connection.recv(12) == b"HTTP/1.1 200"
        assert paused.wait(120)
        for _ in range(20):  # the server has time for others, and so it would have for this one
            assert server.get("/branches").status_code == 200
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
        wait_until(lambda: paused, "the server to wait for its client")
        (slow,) = paused
        for _ in range(3):
            before = slow.transport.get_write_buffer_size()
            taken = sum(len(connection.recv(65_536)) for _ in range(100))
            wait_until(
                lambda least=before: slow.transport.get_write_buffer_size() < least - 65_536,
                "the client to take more",
            )
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
        send_until_cut_off(connection, b"a" * 65_536)
