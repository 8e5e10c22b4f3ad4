"""Pages of other sites: which of them a browser lets call, asked by it before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware

from omnigraph_core.server.errors import failure, request_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

_METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "POST")
_EXPOSED: Final = (
    "Accept-Ranges", "Content-Range", "ETag", "Idempotency-Replayed", "Location",
    "Omnigraph-Branch", "Omnigraph-Commit", "Omnigraph-Manifest-Version", "Omnigraph-Query-Name",
    "Preference-Applied", "Retry-After", "Server-Timing", "X-Request-Id",
)  # fmt: skip
"""Headers of answers that scripts of those pages may read."""


class Cors(CORSMiddleware):
    """As the framework has it, with refusals in the one shape."""

    def __init__(self, app: ASGIApp, origins: Iterable[str]) -> None:
        super().__init__(
            app,
            allow_origins=list(origins),
            allow_methods=_METHODS,
            allow_headers=["*"],
            expose_headers=list(_EXPOSED),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        is_asked = "origin" in headers and "access-control-request-method" in headers
        if is_asked and scope["method"] == "OPTIONS":
            response = self.preflight_response(headers)
            if response.status_code >= 400:
                why = bytes(response.body).decode().removeprefix("Disallowed ")
                told = f"pages of {headers['origin']} may not call this: {why}"
                request_id, vary = request_id_of(scope), response.headers["vary"]
                response = failure(400, told, request_id=request_id, headers={"Vary": vary})
            await response(scope, receive, send)
            return
        await super().__call__(scope, receive, send)
