"""Answers in fewer bytes, if the client can read them: zstd, else gzip.

Short answers, and those that are compressed already, stay as they are. A stream is flushed with
every chunk, so that its reader is never left waiting for what has been made.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from omnigraph_core.server.threads import reading

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SHORTEST: Final = 1_024
_LARGE: Final = 65_536
"""Bytes from which on compressing would hold up other requests."""
_KINDS: Final = ("application/json", "application/x-ndjson", "text/")
_GZIP: Final = 16 + zlib.MAX_WBITS


class Compress:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        coding = _coding(scope) if scope["type"] == "http" else None
        if coding is None:
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _Compressed(send, coding))


class Packer(Protocol):
    def pack(self, data: bytes, *, is_last: bool) -> bytes: ...


class GzipPacker:
    def __init__(self) -> None:
        self._state = zlib.compressobj(1, wbits=_GZIP)

    def pack(self, data: bytes, *, is_last: bool) -> bytes:
        end = zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH
        return self._state.compress(data) + self._state.flush(end)


class ZstdPacker:
    """Every chunk is a frame of its own, which readers put together."""

    def __init__(self) -> None:
        self._codec = pa.Codec("zstd", compression_level=1)

    def pack(self, data: bytes, *, is_last: bool) -> bytes:
        return self._codec.compress(data, asbytes=True) if data else b""


class _Compressed:
    """Holds the headers back until it is known whether the body is worth it."""

    def __init__(self, send: Send, coding: str) -> None:
        self._send = send
        self._coding = coding
        self._start: Message | None = None
        self._packer: Packer | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] != "http.response.body":
            await self._send(message)
        else:
            if self._start is not None:
                start, self._start = self._start, None
                await self._begin(start, message)
            await self._body(message)

    async def _begin(self, start: Message, first: Message) -> None:
        is_whole = not first.get("more_body", False)
        is_short = is_whole and len(first.get("body", b"")) < _SHORTEST
        if not is_short and _is_worth(start):
            self._packer = ZstdPacker() if self._coding == "zstd" else GzipPacker()
            start["headers"] = [
                *(item for item in start["headers"] if item[0] != b"content-length"),
                (b"content-encoding", self._coding.encode()),
                (b"vary", b"Accept-Encoding"),
            ]
            if is_whole:
                first["body"] = await self._packed(first["body"], is_last=True)
                length = str(len(first["body"])).encode()
                start["headers"].append((b"content-length", length))
                self._packer = None
        await self._send(start)

    async def _body(self, message: Message) -> None:
        if self._packer is not None:
            is_last = not message.get("more_body", False)
            message["body"] = await self._packed(message.get("body", b""), is_last=is_last)
        await self._send(message)

    async def _packed(self, data: bytes, *, is_last: bool) -> bytes:
        packer = self._packer
        assert packer is not None
        if len(data) < _LARGE:
            return packer.pack(data, is_last=is_last)
        return await reading(lambda: packer.pack(data, is_last=is_last))


def _coding(scope: Scope) -> str | None:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept-encoding")
    offered = {}
    for part in accepted.decode("latin-1").lower().split(","):
        name, _, rest = part.partition(";")
        offered[name.strip()] = rest.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return next((name for name in ("zstd", "gzip") if offered.get(name)), None)


def _is_worth(start: Message) -> bool:
    headers = dict(start["headers"])
    kind = headers.get(b"content-type", b"").decode("latin-1")
    has_body = start["status"] not in (204, 206, 304)
    return has_body and b"content-encoding" not in headers and kind.startswith(_KINDS)
