"""How many examples a law is tried on: in the long run ten times those of the usual one.

The examples of the usual run are the same each time, so that more of them would show little more.
"""

from __future__ import annotations

import os

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_LEAST = 6


def examples(number: int) -> int:
    """A tenth of the number, but no fewer than some; in the long run ten times that."""
    usual = max(min(number, _LEAST), number // 10)
    return usual * 10 if LONG else usual


def seeds(first: int, number: int) -> range:
    """Seeds of worlds that take seconds each: the number is that of the usual run."""
    return range(first, first + (number * 10 if LONG else number))
