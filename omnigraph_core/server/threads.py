"""Where blocking work runs: two bounded sets of threads, so that writers never block readers.

A call that waits for a thread, and whoever waits for a call, hold up no other request. A call that
is under way goes on when nobody waits for it any more. Small writes of one branch take turns: at
the same time all but one would be lost to each other, and the work of the others with them.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar, cast

from omnigraph_core.server import settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable

T = TypeVar("T")

_PATIENCE: Final = 2.0
"""Seconds a write waits for its turn: behind a long one it goes all the same."""


class Threads:
    """The threads of a process, made when they are first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str, ThreadPoolExecutor] = {}
        self._under_way: set[Future[object]] = set()

    @property
    def is_busy(self) -> bool:
        return bool(self._under_way)

    def named(self, kind: str, size: Callable[[], int]) -> ThreadPoolExecutor:
        executor = self._made.get(kind)
        if executor is not None:
            return executor
        with self._lock:
            if kind not in self._made:
                self._made[kind] = ThreadPoolExecutor(size(), f"omnigraph-{kind}")
            return self._made[kind]

    def begin(self, executor: ThreadPoolExecutor, call: Callable[[], T]) -> Future[T]:
        future = executor.submit(contextvars.copy_context().run, call)  # traces go on there
        self._under_way.add(cast("Future[object]", future))
        future.add_done_callback(self._under_way.discard)
        return future

    def stop(self) -> None:
        """Take no more work; what has not begun is dropped, what has begun goes on."""
        with self._lock:
            stopped = list(self._made.values())
            self._made.clear()
        for executor in stopped:
            executor.shutdown(wait=False, cancel_futures=True)


_THREADS = Threads()
_TURNS: Final[weakref.WeakValueDictionary[Hashable, asyncio.Lock]] = weakref.WeakValueDictionary()
"""Of those who wait or write just now."""


async def reading(call: Callable[[], T]) -> T:
    """What a call returns that only reads."""
    return await begin_reading(call)


def begin_reading(call: Callable[[], T]) -> asyncio.Future[T]:
    """The same, to be waited for later."""
    return asyncio.wrap_future(_THREADS.begin(_THREADS.named("read", settings.READERS.read), call))


async def writing(call: Callable[[], T], *, turn: Hashable = None) -> T:
    """What a call returns that writes.

    Args:
        turn: calls of the same one go one after the other, in the order they came. A courtesy and
            no lock: the graph decides who has written first.
    """
    async with _in_turn(turn):
        return await asyncio.wrap_future(
            _THREADS.begin(_THREADS.named("write", settings.WRITERS.read), call)
        )


@asynccontextmanager
async def _in_turn(turn: Hashable) -> AsyncIterator[None]:
    if turn is None:
        yield
        return
    lock = _TURNS.setdefault((id(asyncio.get_running_loop()), turn), asyncio.Lock())
    is_ours = await _try_acquire(lock)
    try:
        yield
    finally:
        if is_ours:
            lock.release()


async def _try_acquire(lock: asyncio.Lock) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE):
            return await lock.acquire()
    except TimeoutError:
        return False


def stop_threads() -> bool:
    """Take no more work; whether all of it is done. What has begun goes on."""
    _THREADS.stop()
    return not _THREADS.is_busy
