"""Maintenance as `Omnigraph` offers it: optimize, cleanup and verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.cleanup import cleanup
from omnigraph_core.engine.optimize import optimize
from omnigraph_core.history.retention import retention
from omnigraph_core.manifest.image import MAIN

if TYPE_CHECKING:
    from datetime import timedelta

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.history.context import GraphContext


class Upkeep:
    """What keeps a graph fast, small and sound; no row changes."""

    _context: GraphContext

    def optimize(
        self, *, branch: str = MAIN, actor: str | None = None
    ) -> tuple[TableOptimizeStats, ...]:
        """Compact tables and complete their indexes; the rows stay the same.

        Raises:
            BranchNotFound: there is none of that name.
        """
        return optimize(self._context, branch, actor=actor)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta | None = None,
        is_preview: bool = False,
    ) -> CleanupReport:
        """Remove versions that are neither among the newest `keep` nor younger than `older_than`.

        Heads, tags, held snapshots, merge bases of branches and whatever is younger than `grace`
        stay in any case.

        Raises:
            ConfigError: neither is given, or `grace` is too short for running writers.
        """
        policy = retention(keep, older_than, grace)
        return cleanup(self._context, policy, is_preview=is_preview)
