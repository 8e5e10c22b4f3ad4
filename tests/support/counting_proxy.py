"""An HTTP/1.1 proxy before the S3 server: it counts requests and injects failures.

Runs on a thread of its own. Every request is forwarded byte for byte over a fresh connection and
recorded when the store has answered, before the client sees the answer: what a test reads after a
call is complete.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.s3 import presigned_put

if TYPE_CHECKING:
    from types import TracebackType

_MAX_HEAD: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request the store answered; sizes are of the bodies. A lost answer counts as answered."""

    method: str
    path: str
    status: int
    sent: int
    received: int

    @property
    def kind(self) -> str:
        """The method, and what it does where the method alone does not say."""
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        if self.method == "GET" and "list-type" in query:
            return "GET list"
        if self.method == "POST" and "delete" in query:
            return "POST delete"
        return self.method


@dataclass(slots=True)
class _Loss:
    method: str
    path_substring: str
    remaining: int | None

    def takes(self, method: str, path: str) -> bool:
        if self.remaining == 0 or method != self.method or self.path_substring not in path:
            return False
        if self.remaining is not None:
            self.remaining -= 1
        return True


@dataclass(frozen=True, slots=True)
class _Message:
    """A request or an answer as it stood on the wire."""

    first_line: str
    head: bytes
    headers: dict[str, str]
    body: bytes = b""


class CountingProxy:
    """A proxy to a port of this machine, open for the length of a `with` block."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._port = 0
        self._guard = threading.Lock()
        self._requests: list[Request] = []
        self._losses: list[_Loss] = []
        self._clients: set[asyncio.StreamWriter] = set()
        self._delay = 0.0
        self.held = 0
        """Requests that have come and that the store has not seen yet."""
        self._is_refusing = False
        self._ignores_if_none_match = False
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> CountingProxy:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> tuple[Request, ...]:
        with self._guard:
            return tuple(self._requests)

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._guard:
            self._requests.clear()

    def summary(self) -> dict[str, int]:
        """How many requests of each kind: `{"GET": 2, "GET list": 1, "PUT": 3}`."""
        return dict(sorted(Counter(request.kind for request in self.requests).items()))

    def lose_next_response(
        self, method: str, path_substring: str, *, times: int | None = 1
    ) -> None:
        """The store does the work, the client gets no answer; None means every time."""
        with self._guard:
            self._losses.append(_Loss(method, path_substring, times))

    def refuse_all(self) -> None:
        """The store is gone: open connections break, new ones are closed at once."""
        assert self._loop is not None
        self._is_refusing = True
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._break_connections, done)
        done.wait()

    def ignore_if_none_match(self) -> None:
        """Behave like a store without conditional writes: the condition is taken off, then lost."""
        self._ignores_if_none_match = True

    def delay(self, seconds: float) -> None:
        """Hold every request this long before the store sees it."""
        self._delay = seconds

    def restore(self) -> None:
        """No more failures."""
        with self._guard:
            self._losses.clear()
        self._is_refusing = False
        self._ignores_if_none_match = False
        self._delay = 0.0

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, limit=_MAX_HEAD)
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        self._break_connections(threading.Event())

    def _break_connections(self, done: threading.Event) -> None:
        for writer in self._clients:
            writer.transport.abort()
        done.set()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while not self._is_refusing and await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # either side hung up: so does the proxy
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False when the client is to be left without one."""
        request = await _read_request(reader, writer)
        method, path, _ = request.first_line.split(" ")
        self.held += 1
        try:
            await asyncio.sleep(self._delay)
        finally:
            self.held -= 1
        if self._is_refusing:
            return False
        answer = await self._forward(method, request)
        if self._is_lost(method, path, request, answer):
            return False
        writer.write(answer.head + answer.body)
        await writer.drain()
        return answer.headers.get("connection", "").lower() != "close"

    async def _forward(self, method: str, request: _Message) -> _Message:
        if self._ignores_if_none_match and "if-none-match" in request.headers:
            request = _without_condition(request, f"http://127.0.0.1:{self._upstream_port}")
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._upstream_port, limit=_MAX_HEAD
        )
        try:
            writer.write(request.head + request.body)
            await writer.drain()
            return await _read_answer(reader, has_body=method != "HEAD")
        finally:
            writer.close()

    def _is_lost(self, method: str, path: str, request: _Message, answer: _Message) -> bool:
        """Record the exchange; a lost answer was received by nobody."""
        status = int(answer.first_line.split(" ")[1])
        with self._guard:
            is_lost = any(loss.takes(method, path) for loss in self._losses)
            received = 0 if is_lost else len(answer.body)
            self._requests.append(Request(method, path, status, len(request.body), received))
        return is_lost


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Message:
    message = await _read_head(reader)
    if message.headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return await _with_body(message, reader)


async def _read_answer(reader: asyncio.StreamReader, *, has_body: bool) -> _Message:
    message = await _read_head(reader)
    while message.first_line.split(" ")[1].startswith("1"):  # 100 Continue: the answer follows
        message = await _read_head(reader)
    if not has_body or message.first_line.split(" ")[1] in {"204", "304"}:
        return message
    return await _with_body(message, reader)


async def _read_head(reader: asyncio.StreamReader) -> _Message:
    head = await reader.readuntil(b"\r\n\r\n")
    first_line, *lines = head.decode("latin1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return _Message(first_line, head, {name.lower(): value.strip() for name, _, value in pairs})


async def _with_body(message: _Message, reader: asyncio.StreamReader) -> _Message:
    if message.headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(message.headers.get("content-length", "0")))
    return _Message(message.first_line, message.head, message.headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    """The chunks as they stand on the wire, sizes included: they are passed on, not read."""
    wire = b""
    while True:
        size_line = await reader.readuntil(b"\r\n")
        size = int(size_line.split(b";")[0], 16)
        wire += size_line + await reader.readexactly(size + 2)
        if size == 0:
            return wire


def _without_condition(request: _Message, upstream: str) -> _Message:
    """The condition is part of the signature, so the request is signed anew, in its URL."""
    _, bucket, key = urlsplit(request.first_line.split(" ")[1]).path.split("/", 2)
    target = urlsplit(presigned_put(bucket, unquote(key), upstream))
    head = (
        f"PUT {target.path}?{target.query} HTTP/1.1\r\n"
        f"host: {target.netloc}\r\n"
        f"content-length: {len(request.body)}\r\n\r\n"
    )
    return _Message(request.first_line, head.encode("latin1"), request.headers, request.body)
