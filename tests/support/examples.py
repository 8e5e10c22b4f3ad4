"""How many examples a law is tried on: its number in the long run times ten, else two fifths of it.

The examples of the usual run are the same each time, so that more of them would tell little more.
"""

from __future__ import annotations

import os

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_LEAST = 16


def examples(number: int) -> int:
    """The number for this run, for `@settings(max_examples=…)`."""
    return number * 10 if LONG else max(min(number, _LEAST), number * 2 // 5)
