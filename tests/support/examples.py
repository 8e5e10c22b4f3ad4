"""How many examples a law is tried on: a number of its own, ten times that in the long run."""

from __future__ import annotations

import os

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def examples(number: int) -> int:
    """The number for this run, for `@settings(max_examples=…)`."""
    return number * 10 if LONG else number
