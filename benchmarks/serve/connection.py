"""A connection that stays open: requests as bytes go out, answers as bytes come in.

Only as much of HTTP is read as the answers of this server need, so that whoever asks costs little
beside whoever answers.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Final, cast

_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_TIMING: Final = re.compile(rb"\r\nserver-timing: engine;dur=([\d.]+), server;dur=([\d.]+)", re.I)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    head: bytes
    body: bytes

    @property
    def timing(self) -> tuple[float, float] | None:
        """Milliseconds in the engine and in the server, if it told them."""
        found = _TIMING.search(self.head)
        return None if found is None else (float(found[1]), float(found[2]))


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._waiting: asyncio.Future[Answer] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        answer = _parsed(self._received)
        if answer is not None and self._waiting is not None:
            self._received.clear()
            self._waiting.set_result(answer)

    def connection_lost(self, problem: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(problem or ConnectionResetError("the server hung up"))

    async def ask(self, request: bytes) -> Answer:
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(host: str, port: int) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, host, port)
    return connection


def _parsed(received: bytearray) -> Answer | None:
    end = received.find(_END)
    if end < 0:
        return None
    head = bytes(received[:end])
    length = _LENGTH.search(head)
    assert length is not None, "answers of this size come in one piece"
    body = end + len(_END)
    if len(received) < body + int(length[1]):
        return None
    return Answer(int(head[9:12]), head, bytes(received[body : body + int(length[1])]))
