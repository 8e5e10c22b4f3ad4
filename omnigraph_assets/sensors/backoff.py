"""When work whose runs fail is tried again: at once, then after pauses, for ever.

An outage may outlast the first attempts, and nobody has to be there when it ends.
"""

import time
from typing import Final

import dagster as dg

from omnigraph_assets.instance import last_run

ATTEMPTS: Final = 3
"""Runs of the same work that follow one another at once."""
BACKOFF_SECONDS: Final = (60.0, 240.0, 960.0, 3840.0)
"""Pauses before further ones; the last one is repeated."""


def seconds_to_wait(instance: dg.DagsterInstance, tag: str, value: str, attempt: int) -> float:
    """How long work waits for its next run; 0 or less if it need not.

    Args:
        tag: what the runs of the work bear, with this value.
        attempt: how many of them there were.
    """
    last = last_run(instance, tag, value) if attempt >= ATTEMPTS else None
    if last is None:
        return 0.0
    pause = BACKOFF_SECONDS[min(attempt - ATTEMPTS, len(BACKOFF_SECONDS) - 1)]
    return last.update_timestamp.timestamp() + pause - time.time()
