"""How much one actor may have under way in a process; on an open server, one client address."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from omnigraph_core.server.errors import failure, request_id_of
from omnigraph_core.server.middleware.bodies import SPOOLED, declared_length
from omnigraph_core.server.wire import ErrorCode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PUBLIC: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that are open to everybody and cost next to nothing."""


class Admission:
    def __init__(self, app: ASGIApp, *, requests: int, byte_count: int) -> None:
        self._app = app
        self._most_requests = requests
        self._most_bytes = byte_count
        self._requests: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PUBLIC or "refusal" in scope["state"]:
            await self._app(scope, receive, send)
            return
        who = _who(scope)
        announced = 0 if scope["path"] in SPOOLED else declared_length(scope) or 0
        if self._is_full(who, announced):
            await _refuse(scope, receive, send)
            return
        await self._admitted(who, announced, scope, receive, send)

    def _is_full(self, who: str, announced: int) -> bool:
        return (
            self._requests[who] >= self._most_requests
            or self._bytes[who] + announced > self._most_bytes
        )

    async def _admitted(
        self, who: str, announced: int, scope: Scope, receive: Receive, send: Send
    ) -> None:
        held = announced
        self._requests[who] += 1
        self._bytes[who] += held

        async def receiving() -> Message:
            """A body of unknown length counts as it comes."""
            nonlocal held
            message = await receive()
            if not announced and scope["path"] not in SPOOLED:
                length = len(message.get("body", b""))
                held += length
                self._bytes[who] += length
            return message

        try:
            await self._app(scope, receiving, send)
        finally:
            _give_back(self._requests, who, 1)
            _give_back(self._bytes, who, held)


def _who(scope: Scope) -> str:
    actor = scope["state"].get("actor")
    if actor is not None:
        return f"actor {actor}"
    client = scope.get("client")
    return f"client {client[0]}" if client else "client"


def _give_back(counts: Counter[str], who: str, amount: int) -> None:
    counts[who] -= amount
    if counts[who] <= 0:
        del counts[who]


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    response = failure(
        429,
        "too many requests of this actor are under way",
        code=ErrorCode.TOO_MANY_REQUESTS,
        request_id=request_id_of(scope),
        headers={"Retry-After": "1"},
    )
    await response(scope, receive, send)
