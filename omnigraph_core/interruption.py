"""A way to stop long work from above: whoever starts it says when to ask, whoever does it asks.

Work that many share, such as reading a column or linking edges, does not know for whom it is done.
It calls `pause` between portions; if that raises, the work is dropped and the next in need does it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
