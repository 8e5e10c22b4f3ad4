"""Writes that would be lost to each other take turns; whatever else runs does not wait for them."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from omnigraph_core.server import threads
from omnigraph_core.server.threads import reading, writing

if TYPE_CHECKING:
    import pytest

SECONDS = 120


def test_writes_of_one_turn_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one goes on only when all others wait for their turn."""
    monkeypatch.setattr(threads, "_PATIENCE", 3_600.0)
    under_way, most, order = 0, 0, []
    all_wait = threading.Event()

    def write(number: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        assert all_wait.wait(SECONDS)
        order.append(number)
        under_way -= 1

    async def run() -> None:
        writes = asyncio.gather(*(writing(lambda n=n: write(n), turn="main") for n in range(8)))
        for _ in range(8):  # each goes as far as it can
            await asyncio.sleep(0)
        all_wait.set()
        await writes

    asyncio.run(run())
    assert most == 1
    assert order == list(range(8))


def test_other_turns_and_reads_do_not_wait() -> None:
    """Each call waits for all others: they have to be under way together."""
    meeting = threading.Barrier(4)

    async def run() -> None:
        await asyncio.gather(
            writing(lambda: meeting.wait(SECONDS), turn="main"),
            writing(lambda: meeting.wait(SECONDS), turn="other"),
            writing(lambda: meeting.wait(SECONDS)),
            reading(lambda: meeting.wait(SECONDS)),
        )

    asyncio.run(run())
    assert not meeting.broken


def test_nobody_waits_long_behind_a_long_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    is_second_done = threading.Event()

    async def run() -> tuple[bool, None]:
        return await asyncio.gather(
            writing(lambda: is_second_done.wait(SECONDS), turn="main"),
            writing(is_second_done.set, turn="main"),
        )

    assert asyncio.run(run())[0], "the first one ended only because the second had gone ahead"


def test_a_failed_write_ends_its_turn() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def run() -> list[object]:
        return await asyncio.gather(
            writing(fail, turn="main"),
            writing(lambda: "done", turn="main"),
            return_exceptions=True,
        )

    failed, done = asyncio.run(run())
    assert isinstance(failed, ValueError)
    assert done == "done"
    assert not threads._TURNS, "nothing is kept of names that nobody writes under"
