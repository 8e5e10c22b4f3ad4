"""One connection: how much a client may send before its request is known, and how long it may take.

Bytes that are no request are refused in the one shape of all refusals. Who begins something and
does not go on is cut off, so that no connection is held for nothing.
"""

from __future__ import annotations

import http
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omnigraph_core.ids import new_ulid

if TYPE_CHECKING:
    import asyncio

_LOG: Final = logging.getLogger("omnigraph.access")

HEAD_BYTES: Final = 65_536
"""The request line and all headers together."""
HEAD_SECONDS: Final = 30.0
"""From the first byte of a request to the end of its headers."""
BODY_SECONDS: Final = 60.0
"""Without a byte of a body that is awaited."""
REST_SECONDS: Final = 30.0
"""For the rest of a body whose request has been answered already."""
TAKE_SECONDS: Final = 120.0
"""For the next part of an answer that waits to be taken."""
TAKE_BYTES: Final = 16_384
"""That part: whoever takes less in that time is as good as gone."""

_REASONS: Final = {
    400: "http.bad_request",
    408: "http.request_timeout",
    431: "http.head_too_large",
}


class Protocol(HttpToolsProtocol):
    """As uvicorn speaks HTTP, within limits."""

    head_bytes = HEAD_BYTES
    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS
    rest_seconds = REST_SECONDS
    take_seconds = TAKE_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_head = True
        self._is_in_body = False
        self._head_size = 0
        self._began = self._heard = self.loop.time()
        self._answered: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._refusal: bytes | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_watch(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        for watch in (self._watch, self._taking):
            if watch is not None:
                watch.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        if not (self._is_in_head or self._is_in_body):  # the next request
            self._is_in_head, self._began = True, self._heard
        if self._is_in_head:
            self._head_size += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_size > self.head_bytes:
            self._refuse(431, _TOO_LONG)
        elif self._is_in_head or self._is_in_body:
            self._begin_watch(self.head_seconds if self._is_in_head else self.body_seconds)

    def on_message_begin(self) -> None:
        if not self._is_in_head:  # right behind the request before
            self._is_in_head, self._began, self._head_size = True, self._heard, 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._is_in_head, self._is_in_body = False, True
        self._head_size, self._answered = 0, None
        app = self.app
        if size > self.head_bytes:
            self.app = _too_long
        try:
            super().on_headers_complete()
        finally:
            self.app = app

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered = self.loop.time()
        super().on_response_complete()
        is_last = self.cycle.response_complete and not self.transport.is_closing()
        if self._refusal is not None and is_last:
            self.transport.write(self._refusal)
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "these bytes are no HTTP request")

    def _refuse(self, status: int, message: str) -> None:
        """Answer, after the request before if that is still being answered, and hang up."""
        if self.transport.is_closing():
            return
        self._is_in_head = self._is_in_body = False
        answer = _refusal(status, message)
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.write(answer)
        elif not cycle.more_body:
            self._refusal = answer
            return
        elif not (cycle.response_started or self.pipeline):
            self.transport.write(answer)
        self.transport.close()

    def _await_taking(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self.take_seconds, self._look_at_taking, left)

    def _look_at_taking(self, before: int) -> None:
        """Whether the client takes its answer: what makes it is held as long as it does not."""
        if before - self.transport.get_write_buffer_size() < TAKE_BYTES:
            self.transport.abort()
        else:
            self._await_taking()

    def _begin_watch(self, seconds: float) -> None:
        if self._watch is None:
            self._watch = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Whether the client still does its part."""
        self._watch = None
        if self.transport.is_closing() or not (self._is_in_head or self._is_in_body):
            return
        now = self.loop.time()
        if self.flow.read_paused:
            self._heard = now  # it is us who do not listen
        left = self._due() - now
        if left > 0:
            self._begin_watch(left)
        elif self._is_in_head and not self._head_size:
            self.transport.close()  # never said a word
        else:
            self._refuse(408, "the request did not come to its end in time")

    def _due(self) -> float:
        if self._is_in_head:
            return self._began + self.head_seconds
        due = self._heard + self.body_seconds
        return due if self._answered is None else min(due, self._answered + self.rest_seconds)


_TOO_LONG: Final = f"the headers are longer than {HEAD_BYTES:,} bytes, which is the most here"


def _document(status: int, message: str, request_id: str) -> bytes:
    return json.dumps(
        {
            "error": message,
            "code": "bad_request",
            "reason": _REASONS[status],
            "request_id": request_id,
        },
        separators=(",", ":"),
    ).encode()


def _headers(body: bytes, request_id: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"x-request-id", request_id.encode()),
    ]


def _refusal(status: int, message: str) -> bytes:
    request_id = _noted(status)
    body = _document(status, message, request_id)
    line = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n".encode()
    told = b"".join(name + b": " + value + b"\r\n" for name, value in _headers(body, request_id))
    return line + told + b"\r\n" + body


async def _too_long(_scope: Any, _receive: Any, send: Any) -> None:
    request_id = _noted(431)
    body = _document(431, _TOO_LONG, request_id)
    headers = _headers(body, request_id)
    await send({"type": "http.response.start", "status": 431, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _noted(status: int) -> str:
    """Log a request that nobody got to see, under a new id."""
    request_id = new_ulid()
    facts = {"method": "", "path": "", "status": status, "ms": 0.0, "actor": ""}
    _LOG.info("no request", extra={**facts, "request_id": request_id})
    return request_id
