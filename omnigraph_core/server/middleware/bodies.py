"""How long a body may be, told by its header or counted as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastapi import HTTPException

from omnigraph_core.server.errors import failure, request_id_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

USUAL: Final = 1_048_576
_OTHERS: Final[dict[str, int | None]] = {
    "/ingest": 33_554_432,
    "/load": 33_554_432,
    "/load/ndjson": None,  # these go to disk as they come
    "/load/files": None,
}
SPOOLED: Final = frozenset(path for path, limit in _OTHERS.items() if limit is None)
"""Paths whose bodies are never in memory as a whole."""


class BodyLimits:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = _OTHERS.get(scope["path"], USUAL) if scope["type"] == "http" else None
        if limit is None or "refusal" in scope["state"]:  # of a refused request nothing is read
            await self._app(scope, receive, send)
            return
        if (declared_length(scope) or 0) > limit:
            response = failure(413, _told(limit), request_id=request_id_of(scope))
            await response(scope, receive, send)
            return
        await self._app(scope, _counted(receive, limit), send)


def declared_length(scope: Scope) -> int | None:
    """What a request says of the length of its body; None if it says nothing."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
    return None


def _counted(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413, _told(limit))
        return message

    return receiving


def _told(limit: int) -> str:
    return f"the body is longer than {limit:,} bytes, which is the most here"
