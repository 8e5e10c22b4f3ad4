"""Who calls, looked up before any of the body is read.

A request without a good token goes on without its body: it is refused where its path is known to
exist, and a path that does not exist is answered as such to everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import Unauthenticated

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from omnigraph_core.server.auth import Tokens


class Identity:
    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not len(self._tokens):
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        try:
            scope["state"]["actor"] = self._tokens.actor_of(given)
        except Unauthenticated as refusal:
            scope["state"]["refusal"] = refusal
            await self._app(scope, _nothing, send)
        else:
            await self._app(scope, receive, send)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
