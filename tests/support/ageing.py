"""Time for tests of cleanup: a moved clock, or a short grace where a store keeps its own clock.

Cleanup spares what is younger than twice the publish lease. Nobody writes while a test cleans up,
so the lease is short just then and as always otherwise.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from omnigraph_core.clock import Moment
from omnigraph_core.manifest.snapshot import Snapshot
from omnigraph_core.settings import PUBLISH_LEASE
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.engine.omnigraph import Omnigraph

GRACE: Final = timedelta(milliseconds=100)


def grow_old(grace: timedelta = GRACE) -> None:
    """Return once whatever was done so far is older than the grace period.

    Cleanup compares times of files with the time of day, so this waits for the time of day.
    """
    old = time.time() + grace.total_seconds()
    wait_until(lambda: time.time() > old, "the end of the grace period", interval=0.01)


def clean_up(
    og: Omnigraph,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    grace: timedelta = GRACE,
    branches: Collection[str] | None = None,
    is_preview: bool = False,
    engine: str = "auto",
    is_aged: bool = True,
) -> CleanupReport:
    """Clean a graph up; unless said otherwise, after all that was done has become old."""
    if is_aged:
        grow_old(grace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PUBLISH_LEASE.name, str(grace.total_seconds() / 2))
        return og.cleanup(
            keep=keep,
            older_than=older_than,
            grace=grace,
            branches=branches,
            is_preview=is_preview,
            engine=engine,
        )


class Clock:
    """The clock of this process and of the files below a directory, moved forward at will."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path) -> None:
        self._root = root
        self._ahead_ns = 0
        self._seen: set[Path] = set()
        real, elapsed = time.time_ns, time.clock_gettime
        patch.setattr(time, "time_ns", lambda: real() + self._ahead_ns)
        patch.setattr(time, "time", lambda: (real() + self._ahead_ns) / 1e9)
        patch.setattr(time, "clock_gettime", lambda kind: elapsed(kind) + self._ahead_ns / 1e9)
        for kind, field in ((Snapshot, "read_at"), (Moment, "wall")):
            patch.setattr(kind, "__init__", _dated_by_this_clock(kind.__init__, field))

    def advance(self, by: timedelta) -> None:
        """Later. Files written so far keep the time they were written at."""
        self.stamp()
        self._ahead_ns += round(by.total_seconds() * 1e9)

    def stamp(self) -> None:
        """New files get the time of this clock: the disk knows only the real one."""
        now = time.time_ns()
        for path in self._root.rglob("*"):
            if path not in self._seen and path.is_file():
                self._seen.add(path)
                os.utime(path, ns=(now, now))


def _dated_by_this_clock(init: Callable[..., None], field: str) -> Callable[..., None]:
    """The default of a field holds on to the clock it was declared with."""

    def dated(self: object, *args: Any, **given: Any) -> None:
        init(self, *args, **{field: time.time(), **given})

    return dated
