"""A query whose client has gone is told to stop; others are left alone."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request

from omnigraph_core.errors import QueryCancelled
from omnigraph_core.server.answers import stream
from omnigraph_core.server.reads import cancellable
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.guard import Cancellation

GONE = {"type": "http.disconnect"}


def request_of(*, is_gone: bool, listening: threading.Event | None = None) -> Request:
    """A request whose client goes or stays; the event tells that the server looks which."""

    async def receive() -> Any:
        if listening is not None:
            listening.set()
        if not is_gone:
            await asyncio.Event().wait()
        return GONE

    return Request({"type": "http", "headers": []}, receive)


def until_stopped(token: Cancellation) -> str:
    wait_until(lambda: token.is_cancelled, "the query to be stopped", interval=0.001)
    raise QueryCancelled


def test_a_client_that_goes_stops_its_query() -> None:
    with pytest.raises(QueryCancelled):
        asyncio.run(cancellable(request_of(is_gone=True), until_stopped))


def test_a_server_that_gives_up_stops_the_query() -> None:
    seen = []
    begun = threading.Event()

    def run(token: Cancellation) -> str:
        seen.append(token)
        begun.set()
        return until_stopped(token)

    async def given_up() -> None:
        reading = asyncio.ensure_future(cancellable(request_of(is_gone=False), run))
        assert await asyncio.to_thread(begun.wait, 120)
        reading.cancel()
        await reading

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(given_up())
    assert seen[0].is_cancelled


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_client_that_stays_gets_its_answer(*, is_slow: bool) -> None:
    """A slow query answers when the server has begun to look whether the client is there."""
    listening = threading.Event()

    def run(_: Cancellation) -> str:
        assert not is_slow or listening.wait(120)
        return "rows"

    request = request_of(is_gone=False, listening=listening)
    assert asyncio.run(cancellable(request, run)) == "rows"


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
                for _ in range(20):  # a slow reader: there is time to take as many chunks
                    await asyncio.to_thread(lambda: None)
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
            stream(broken(), "text/plain")(
                {"type": "http"}, request_of(is_gone=False).receive, send
            )
        )
    assert sent == []
