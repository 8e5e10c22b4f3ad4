"""Which graph a path is about: `/graphs/{id}/rest` goes on as `/rest` with the id beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PREFIX: Final = "/graphs/"


class GraphPrefix:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(_PREFIX):
            graph_id, slash, rest = scope["path"][len(_PREFIX) :].partition("/")
            if graph_id and slash:
                # In place: the layers around this one read the route that is found.
                scope["path"] = f"/{rest}"
                scope["raw_path"] = quote(scope["path"]).encode()
                scope["state"]["graph_id"] = graph_id
        await self._app(scope, receive, send)
