"""`HEAD` wherever `GET` is: the same headers, and no body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OWN: Final = frozenset({"/blob"})
"""Paths that answer `HEAD` themselves, without reading what they would send."""


class Head:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asked = scope["type"] == "http" and scope["method"] == "HEAD"
        if not is_asked or scope["path"] in _OWN:
            await self._app(scope, receive, send)
            return
        scope["method"] = "GET"

        async def sending(message: Message) -> None:
            scope["method"] = "HEAD"  # so that whoever writes the answer leaves the body out
            await send(message)

        await self._app(scope, receive, sending)
