"""How often and how patiently a lost race is run again."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.errors import ConflictError
from omnigraph_core.settings import PUBLISHER_RETRY_BUDGET

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_FIRST_WAIT: Final = 0.005
_LONGEST_WAIT: Final = 0.5


def back_off(attempt: int) -> None:
    """Wait before attempt `attempt` + 1: longer each time, and never in step with the others."""
    # Jitter needs no secrecy.
    time.sleep(random.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)))


def prepare_again(
    attempt_once: Callable[[], T], *, retries: int = PUBLISHER_RETRY_BUDGET.value
) -> T:
    """Run a whole prepare-and-publish, again if what it was prepared on has moved.

    For writes whose meaning does not depend on the moved rows, as inserts and upserts. The callable
    reads, stages and publishes from scratch each time.

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
