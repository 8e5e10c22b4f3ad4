"""Maintenance of a graph behind a server: optimize, cleanup and verify.

What changes something and may take long is done as a job, so that no connection has to stay open
for it. Reports are made
by modules that load the storage, which are imported where they are needed.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from omnigraph_core.client.decode.reading import understood
from omnigraph_core.client.jobs import Jobs
from omnigraph_core.client.places import refuse_actor, refuse_engine
from omnigraph_core.client.requests import ask, write
from omnigraph_core.history.retention import retention
from omnigraph_core.manifest.image import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.engine.verifying.model import VerifyReport
    from omnigraph_core.job_report import SparkResults


class Upkeep(Jobs):
    """What keeps a graph fast, small and sound; no row changes."""

    def optimize(
        self,
        *,
        branch: str = MAIN,
        include_inherited: bool = False,
        engine: str = "auto",
        actor: str | None = None,
    ) -> SparkResults[TableOptimizeStats]:
        """Compact tables and complete their indexes; the rows stay the same."""
        from omnigraph_core.client.decode.upkeep import decode_optimized

        refuse_actor(actor)
        refuse_engine(engine)
        given: dict[str, object] = {"branch": branch, "include_inherited": include_inherited}
        return understood(decode_optimized, self._worked(write("POST", "/optimize", given)))

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta | None = None,
        branches: Collection[str] | None = None,
        is_preview: bool = False,
        engine: str = "auto",
    ) -> CleanupReport:
        """Remove versions that are neither among the newest `keep` nor younger than that."""
        from omnigraph_core.client.decode.upkeep import decode_cleanup

        refuse_engine(engine)
        _check(keep, older_than, grace)
        given: dict[str, object] = {
            "keep": keep,
            "older_than_secs": _seconds(older_than),
            "grace_secs": _seconds(grace),
            "branches": None if branches is None else list(branches),
            "confirm": not is_preview,
        }
        if is_preview:
            return understood(decode_cleanup, self._http.fetch(ask("/cleanup", **given)))
        return understood(decode_cleanup, self._worked(write("POST", "/cleanup", given)))

    def verify(self, branch: str | None = None, *, is_deep: bool = False) -> VerifyReport:
        """Check that a branch, or all branches and tags, are whole. Nothing is changed."""
        from omnigraph_core.client.decode.upkeep import decode_verified

        # Not as a job: a check should find the graph as it is, without a run that it made itself.
        given: dict[str, object] = {"branch": branch, "deep": is_deep}
        return understood(decode_verified, self._http.fetch(ask("/verify", **given)))


def _check(keep: int | None, older_than: timedelta | None, grace: timedelta | None) -> None:
    """What no graph can do is refused as a graph at hand refuses it.

    How long the grace must be at least is known to the server alone.
    """
    is_negative = grace is not None and grace < timedelta()
    retention(keep, older_than, grace if is_negative else None)


def _seconds(span: timedelta | None) -> int | None:
    """Whole seconds, rounded up: what is kept longer can still be removed."""
    return None if span is None else math.ceil(span.total_seconds())
