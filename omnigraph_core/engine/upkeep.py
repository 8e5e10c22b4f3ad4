"""Maintenance as `Omnigraph` offers it: optimize, cleanup and verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.cleanup import cleanup
from omnigraph_core.engine.indexing import ensure_indices
from omnigraph_core.engine.optimize import optimize
from omnigraph_core.engine.verify import verify
from omnigraph_core.history.retention import retention
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.engine.indexing import IndexReport
    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.engine.verifying.model import VerifyReport
    from omnigraph_core.engine.workers import Workers
    from omnigraph_core.history.context import GraphContext


class Upkeep:
    """What keeps a graph fast, small and sound; no row changes."""

    _context: GraphContext
    _rights: Rights

    def optimize(
        self, *, branch: str = MAIN, include_inherited: bool = False, actor: str | None = None
    ) -> tuple[TableOptimizeStats, ...]:
        """Compact tables and complete their indexes; the rows stay the same.

        Args:
            include_inherited: also tables of a branch that are as another branch made them. They
                are left alone otherwise: rewritten, they would share no files any more.

        Returns:
            What was done to each table, or why nothing was.

        Raises:
            BranchNotFound: there is none of that name.
            ConflictError: schema or branch moved meanwhile; nothing was committed.
        """
        actor = self._rights.demand(Action.ADMIN, actor=actor)
        return optimize(self._context, branch, include_inherited=include_inherited, actor=actor)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta | None = None,
        branches: Collection[str] | None = None,
        is_preview: bool = False,
    ) -> CleanupReport:
        """Remove versions that are neither among the newest `keep` nor younger than `older_than`.

        Heads, tags, held snapshots, merge bases of branches and whatever is younger than `grace`
        stay in any case.

        Args:
            branches: the only ones that versions are taken from; those of the others all stay.
                Files that nothing needs go in any case.

        Raises:
            ConfigError: neither is given, or `grace` is too short for running writers.
            BranchNotFound: one of the branches is not there, nor was.
        """
        self._rights.demand(Action.ADMIN)
        policy = retention(keep, older_than, grace)
        chosen = None if branches is None else {name.strip() for name in branches}
        return cleanup(self._context, policy, branches=chosen, is_preview=is_preview)

    def verify(self, branch: str | None = None, *, is_deep: bool = False) -> VerifyReport:
        """Check that a branch, or all branches and tags, are whole. Nothing is changed.

        Args:
            is_deep: every version that is kept, what indexes find, and all rows by the rules of
                the schema; otherwise heads alone, and no rows are read.

        Raises:
            BranchNotFound: there is none of that name.
        """
        self._rights.demand(Action.READ)
        return verify(self._context, branch, is_deep=is_deep)


def optimize_by(
    graph: Upkeep,
    workers: Workers,
    *,
    branch: str = MAIN,
    include_inherited: bool = False,
    actor: str | None = None,
) -> tuple[TableOptimizeStats, ...]:
    """As `Omnigraph.optimize`, with the heavy part done by others."""
    actor = graph._rights.demand(Action.ADMIN, actor=actor)
    return optimize(
        graph._context,
        branch,
        include_inherited=include_inherited,
        actor=actor,
        workers=workers,
    )


def ensure_indices_by(
    graph: Upkeep, workers: Workers, *, branch: str = MAIN, actor: str | None = None
) -> tuple[IndexReport, ...]:
    """As `Omnigraph.ensure_indices`, with the heavy part done by others."""
    actor = graph._rights.demand(Action.ADMIN, actor=actor)
    return ensure_indices(graph._context, branch, actor=actor, workers=workers)
