"""Answers as bytes: documents come in, responses go out; streams are pulled as they are read.

A stream is one chunk ahead of its client at most. What it is made of is closed when the last chunk
is sent or the client has gone.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from omnigraph_core.server.threads import reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
NDJSON: Final = f"{_LINES}; charset=utf-8"
ARROW: Final = "application/vnd.apache.arrow.stream"


def compact(document: object) -> bytes:
    """One JSON document in UTF-8, without blanks."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which somebody sent escaped
        return json.dumps(document, separators=(",", ":"), default=str).encode()


def answer(
    document: object,
    *,
    status: int = 200,
    commit_id: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A document as the answer; with a commit it can be asked for again cheaply."""
    return answer_bytes(compact(document), status=status, commit_id=commit_id, headers=headers)


def answer_bytes(
    body: bytes,
    *,
    status: int = 200,
    commit_id: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The same for a document that is JSON text already."""
    tags = {} if commit_id is None else _tags(commit_id)
    return Response(body, status, {**tags, **(headers or {})}, JSON)


def not_modified(request: Request, commit_id: str) -> Response | None:
    """The answer to a client that has this commit already; None if it has not."""
    known = request.headers.get("if-none-match")
    if known is None:
        return None
    tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
    if _tag(commit_id) not in tags and "*" not in tags:
        return None
    return Response(status_code=304, headers=_tags(commit_id))


def _tags(commit_id: str) -> dict[str, str]:
    return {"ETag": _tag(commit_id), "Cache-Control": "private, no-cache"}


def _tag(commit_id: str) -> str:
    return f'"{commit_id}"'


def accepts(request: Request, media_type: str) -> bool:
    """Whether a client names this very form of an answer."""
    named = request.headers.get("accept", "").split(",")
    return media_type in (part.partition(";")[0].strip().lower() for part in named)


def wants_lines(request: Request) -> bool:
    """Whether a client wants lines: one that takes a document, too, gets that."""
    return accepts(request, _LINES) and not accepts(request, JSON)


def stream(
    chunks: Iterator[bytes],
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Chunks as the answer. The first one is made before anything is answered, so that what is
    wrong with the request is told as an error."""
    return StreamedResponse(chunks, media_type, headers)


class StreamedResponse(Response):
    """An answer that is made while it is sent."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(b"", 200, headers, media_type)
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            chunk = await self._next()
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while chunk is not None and not gone.done():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await self._next()
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await _close(self._chunks)

    async def _next(self) -> bytes | None:
        return await reading(lambda: next(self._chunks, None))


async def disconnected(receive: Receive) -> None:
    """Ends when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _close(chunks: Iterator[bytes]) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        # A task of its own: the request may be cancelled just now.
        await asyncio.shield(reading(close))
