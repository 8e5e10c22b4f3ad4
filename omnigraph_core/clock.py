"""Time as the kernel needs it: moments to record, and ages that no clock change can shorten."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

_ELAPSED: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Runs on while the machine sleeps, where the platform has such a clock."""


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time of this process."""

    wall: float = field(default_factory=time.time)
    elapsed: float = field(default_factory=lambda: time.clock_gettime(_ELAPSED))

    def age(self) -> float:
        """Seconds since then, by whichever clock says more: neither a clock put back nor a machine
        put to sleep makes something younger than it is."""
        return max(time.time() - self.wall, time.clock_gettime(_ELAPSED) - self.elapsed)
