"""The outermost layer: gives a request its id, measures it, logs it, counts it and traces it.

Neither query strings nor headers are logged: tokens may be in them.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from omnigraph_core.ids import new_ulid
from omnigraph_core.server.telemetry import request_span

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from omnigraph_core.server.metrics import Metrics

_LOG: Final = logging.getLogger("omnigraph.access")
_HEADER: Final = b"x-request-id"
_TIMING: Final = b"server-timing"
_LONGEST_ID: Final = 128
_UNMATCHED: Final = "(none)"
_GONE: Final = 499
"""The client went before it had an answer."""


class Observe:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = _Seen(scope, send)
        self._metrics.began()
        with request_span(scope) as span:
            try:
                await self._app(scope, receive, seen.send)
            finally:
                seconds = time.perf_counter() - seen.began
                span.end(seen.route, seen.status)
                self._metrics.ended(seen.method, seen.route, seen.status, seconds)
                _log(seen, seconds)


class _Seen:
    """What is noticed of one request on its way."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.began = time.perf_counter()
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.status = _GONE
        self.scope = scope
        self.request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = self.request_id
        self._send = send

    @property
    def route(self) -> str:
        """The template of the route, known once the request has been handled."""
        return getattr(self.scope.get("route"), "path_format", _UNMATCHED)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (_HEADER, self.request_id.encode())]
            self._tell_time(message)
        await self._send(message)

    def _tell_time(self, message: Message) -> None:
        """To what the engine needed the whole time so far is added."""
        whole = f", server;dur={(time.perf_counter() - self.began) * 1000:.3f}".encode()
        message["headers"] = [
            (name, value + whole) if name == _TIMING else (name, value)
            for name, value in message["headers"]
        ]


def _request_id(scope: Scope) -> str:
    """The one the client gave, if it is one, else a new one."""
    for name, value in scope["headers"]:
        if name == _HEADER:
            is_id = 0 < len(value) <= _LONGEST_ID and all(0x21 <= byte <= 0x7E for byte in value)
            return value.decode() if is_id else new_ulid()
    return new_ulid()


def _log(seen: _Seen, seconds: float) -> None:
    state = seen.scope["state"]
    facts = {
        "method": seen.method,
        "path": seen.path,
        "status": seen.status,
        "ms": round(seconds * 1000, 3),
        "actor": state.get("actor") or "",
        "request_id": seen.request_id,
    }
    level = logging.ERROR if 500 <= seen.status < 600 else logging.INFO
    _LOG.log(level, "request", extra=facts)
