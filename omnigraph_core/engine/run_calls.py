"""Runs as `Omnigraph` offers them: work begun beside a branch, published or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine import runs
from omnigraph_core.history.runs import RunRegistry
from omnigraph_core.manifest.image import MAIN

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.runs import RunRecord, RunStatus


class Runs:
    """Work on a branch of its own, out of sight of its target until it is published."""

    _context: GraphContext

    def begin_run(
        self,
        target_branch: str = MAIN,
        *,
        operation_hash: str | None = None,
        actor: str | None = None,
    ) -> RunRecord:
        """Begin work on a branch of its own, out of sight of the target.

        Raises:
            BranchNotFound: no such target.
        """
        return runs.begin_run(
            self._context, target_branch, operation_hash=operation_hash, actor=actor
        )

    def abort_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it was published, or aborted before.
        """
        return runs.abort_run(self._context, run_id)

    def fail_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it was published or aborted.
        """
        return runs.fail_run(self._context, run_id)

    def get_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
        """
        return RunRegistry(self._context.store).get(run_id)

    def list_runs(
        self, *, target_branch: str | None = None, status: RunStatus | None = None
    ) -> tuple[RunRecord, ...]:
        """Runs, oldest first."""
        return RunRegistry(self._context.store).list(target_branch, status)
