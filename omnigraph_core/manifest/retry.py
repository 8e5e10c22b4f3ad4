"""How often and how patiently a lost race is run again."""

from __future__ import annotations

import contextlib
import random
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.constants import PREPARE_BUDGET
from omnigraph_core.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_FIRST_WAIT: Final = 0.005
_LONGEST_WAIT: Final = 0.5
_PATIENCE: Final = 2.0
"""Seconds a writer waits for its turn."""


def back_off(attempt: int) -> None:
    """Wait before attempt `attempt` + 1: longer each time, and never in step with the others."""
    # Jitter needs no secrecy.
    time.sleep(random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)))


def prepare_again(attempt_once: Callable[[], T], *, retries: int = PREPARE_BUDGET.value) -> T:
    """Run a whole prepare-and-publish, again if what it was prepared on has moved.

    For writes whose meaning does not depend on the moved rows, as inserts and upserts. The callable
    reads, stages and publishes from scratch each time. That may be more often than a swap is
    repeated: writers of one table lose to each other, a swap only to who comes in between.

    Raises:
        ConflictError: it lost every time, or for a reason that trying again cannot mend.
    """
    for attempt in range(retries):
        try:
            return attempt_once()
        except ConflictError as conflict:
            if not conflict.retryable:
                raise
        back_off(attempt)
    return attempt_once()


class Turns:
    """Lets writers of one process that have lost a race go one after the other.

    A courtesy, not a lock: who waits too long, as behind a big load, goes all the same, and the
    swap decides as ever.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._turns: weakref.WeakValueDictionary[str, threading.Lock] = (
            weakref.WeakValueDictionary()
        )

    @contextlib.contextmanager
    def turn(self, name: str, *, patience: float = _PATIENCE) -> Iterator[None]:
        """A turn among those who ask for one under this name."""
        with self._guard:
            turn = self._turns.get(name) or threading.Lock()
            self._turns[name] = turn
        is_ours = turn.acquire(timeout=patience)
        try:
            yield
        finally:
            if is_ours:
                turn.release()
