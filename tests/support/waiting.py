"""Waiting in tests: for a condition, up to a deadline; never for a time to pass."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T],
    what: str,
    *,
    seconds: float = 120,
    interval: float = 0.02,
    tell: Callable[[], object] | None = None,
) -> T:
    """Poll a condition until it holds, and return its value.

    Args:
        what: what the caller waits for; an overdue wait names it.
        seconds: the deadline. A generous one costs nothing, for nobody waits longer than needed.
        tell: what an overdue wait tells; by default the last value of the condition.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            seen = found if tell is None else tell()
            raise AssertionError(f"waited {seconds:g} s for {what}; found {seen!r}")
        time.sleep(interval)
    return found
