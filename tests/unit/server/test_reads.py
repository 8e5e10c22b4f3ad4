"""A query whose client has gone is told to stop; others are left alone."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request

from omnigraph_core.errors import QueryCancelled
from omnigraph_core.server.answers import stream
from omnigraph_core.server.reads import cancellable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.guard import Cancellation

GONE = {"type": "http.disconnect"}


def request_of(patience: float | None) -> Request:
    """A request whose client goes after a while, or stays."""

    async def receive() -> Any:
        await asyncio.sleep(3_600 if patience is None else patience)
        return GONE

    return Request({"type": "http", "headers": []}, receive)


def until_stopped(token: Cancellation) -> str:
    while not token.is_cancelled:
        time.sleep(0.001)
    raise QueryCancelled


def test_a_client_that_goes_stops_its_query() -> None:
    with pytest.raises(QueryCancelled):
        asyncio.run(cancellable(request_of(0.0), until_stopped))


def test_a_server_that_gives_up_stops_the_query() -> None:
    seen = []

    def run(token: Cancellation) -> str:
        seen.append(token)
        return until_stopped(token)

    async def given_up() -> None:
        async with asyncio.timeout(0.05):
            await cancellable(request_of(None), run)

    with pytest.raises(TimeoutError):
        asyncio.run(given_up())
    assert seen[0].is_cancelled


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_client_that_stays_gets_its_answer(seconds: float) -> None:
    def run(_: Cancellation) -> str:
        time.sleep(seconds)
        return "rows"

    assert asyncio.run(cancellable(request_of(None), run)) == "rows"


class Chunks:
    """Chunks without end; knows how many were taken and whether it was closed."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self.taken += 1
        return b"x"

    def close(self) -> None:
        self.is_closed = True


def test_a_stream_waits_for_its_reader_and_ends_with_it() -> None:
    chunks = Chunks()
    sent: list[Any] = []

    async def run() -> None:
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return GONE

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) == 4:
                await asyncio.sleep(0.05)  # a reader that is slow
                assert chunks.taken == 3
                gone.set()
                await asyncio.sleep(0)

        await stream(chunks, "text/plain")({"type": "http"}, receive, send)

    asyncio.run(run())
    assert chunks.is_closed
    assert len(sent) <= 5


def test_what_fails_before_the_first_chunk_is_told_as_an_error() -> None:
    def broken() -> Iterator[bytes]:
        raise QueryCancelled
        yield b""

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(QueryCancelled):
        asyncio.run(
            stream(broken(), "text/plain")({"type": "http"}, request_of(None).receive, send)
        )
    assert sent == []
