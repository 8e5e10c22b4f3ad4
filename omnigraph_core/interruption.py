"""A way to stop long work from above: whoever starts it says when to ask, whoever does it asks.

Work that many share, such as reading a column or linking edges, does not know for whom it is done.
It calls `pause` between portions; if that raises, the work is dropped and the next in need does it.
What cannot ask, because it waits for others, is done `aside`.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.errors import InvariantBroken, OmnigraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_SECONDS: Final = 0.05
"""Between two questions while waiting."""

_CHECK: Final[ContextVar[Callable[[], None] | None]] = ContextVar("check", default=None)


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Have `check` asked by all work of this thread inside the block; it raises to stop it."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def pause() -> None:
    """Let whoever waits for the work stop it."""
    check = _CHECK.get()
    if check is not None:
        check()


def wait_for(event: threading.Event) -> None:
    """Wait for something that others do; whoever waits for us may stop the waiting."""
    while not event.wait(_SECONDS):
        pause()


@contextmanager
def turn(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock inside the block; whoever waits for us may stop the waiting for it."""
    while not lock.acquire(timeout=_SECONDS):
        pause()
    try:
        yield
    finally:
        lock.release()


def aside(work: Callable[[], T]) -> T:
    """The result of work in a thread of its own; if we are stopped, nobody waits for it."""
    if _CHECK.get() is None:
        return work()
    done, ended = Future[T](), threading.Event()

    def do() -> None:
        try:
            done.set_result(work())
        except (OmnigraphError, RuntimeError) as problem:  # the latter of what was closed meanwhile
            done.set_exception(problem)
        finally:
            ended.set()

    threading.Thread(target=do, daemon=True).start()
    wait_for(ended)
    if not done.done():
        raise InvariantBroken("work that is done aside fails with an error of ours")
    return done.result()
