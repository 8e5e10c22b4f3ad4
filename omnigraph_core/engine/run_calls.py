"""Runs as `Omnigraph` offers them: work begun beside a branch, published or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine import runs
from omnigraph_core.engine.loading import is_audited as is_load_audited
from omnigraph_core.engine.loading import is_read as is_load_read
from omnigraph_core.engine.merging import merge_options
from omnigraph_core.engine.run_ends import find_loaded, judged
from omnigraph_core.history.runs import RunRegistry
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.names import RUN_PREFIX
from omnigraph_core.merge.model import MergeStrategy
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.runs import RunRecord, RunStatus
    from omnigraph_core.merge.model import MergeResult, MergeSide


class Runs:
    """Work on a branch of its own, out of sight of its target until it is published."""

    _context: GraphContext
    _rights: Rights

    def begin_run(
        self,
        target_branch: str = MAIN,
        *,
        operation_hash: str | None = None,
        actor: str | None = None,
    ) -> RunRecord:
        """Begin work on a branch of its own, out of sight of the target.

        Args:
            operation_hash: names the work; a run of that name that is running or published is
                returned in place of another one.

        Raises:
            ConfigError: the target is a branch of OmniGraph's own.
            BranchNotFound: no such target.
        """
        run_id = new_ulid()
        actor = self._rights.demand(
            Action.BRANCH_CREATE,
            branch=target_branch,
            target_branch=f"{RUN_PREFIX}{run_id}",
            actor=actor,
        )
        return runs.begin_run(
            self._context, target_branch, run_id=run_id, operation_hash=operation_hash, actor=actor
        )

    def publish_run(
        self,
        run_id: str,
        *,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
        actor: str | None = None,
    ) -> RunRecord:
        """Merge a run's work into its target, with one commit; once, however often it is asked.

        An expired run is published like any other while its branch is there.

        Raises:
            RunNotFound: there is none of that id.
            MergeConflicts: it cannot be merged as it is; the run goes on.
            ConflictError: it failed or was aborted, or others wrote to the target every time.
            BranchNotFound: its branch, or its target, is gone.
        """
        actor = self._rights.demand_run(self._context, Action.RUN_PUBLISH, run_id, actor=actor)
        options = merge_options(strategy, resolve, choices, is_dry_run=False)
        return runs.publish_run(self._context, run_id, options, actor=actor)

    def preview_run(
        self,
        run_id: str,
        *,
        strategy: MergeStrategy | str = MergeStrategy.ROW,
        resolve: MergeSide | str | None = None,
        choices: Mapping[tuple[str, str], str] | None = None,
    ) -> MergeResult:
        """What publishing a run would do, conflicts included; nothing is written.

        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it is not running.
            BranchNotFound: its branch, or its target, is gone.
        """
        self._rights.demand(Action.READ)
        options = merge_options(strategy, resolve, choices, is_dry_run=True)
        return runs.preview_run(self._context, run_id, options)

    def abort_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it was published, or aborted before.
        """
        self._rights.demand_run(self._context, Action.RUN_ABORT, run_id)
        return runs.abort_run(self._context, run_id)

    def fail_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
            ConflictError: it was published or aborted.
        """
        self._rights.demand_run(self._context, Action.RUN_ABORT, run_id)
        return runs.fail_run(self._context, run_id)

    def get_run(self, run_id: str) -> RunRecord:
        """
        Raises:
            RunNotFound: there is none of that id.
        """
        self._rights.demand(Action.READ)
        (run,) = judged(self._context, [RunRegistry(self._context.store).get(run_id)])
        return run

    def list_runs(
        self, *, target_branch: str | None = None, status: RunStatus | None = None
    ) -> tuple[RunRecord, ...]:
        """Runs, oldest first."""
        self._rights.demand(Action.READ)
        return judged(self._context, RunRegistry(self._context.store).list(target_branch, status))


def begin_load(graph: Runs, target_branch: str, *, operation_hash: str) -> RunRecord:
    """Register a load in steps as a run: `plan_load` takes its id, `publish_load` ends it.

    Raises:
        BranchNotFound: no such target.
    """
    actor = graph._rights.demand(Action.CHANGE, branch=target_branch)
    return runs.begin_load(
        graph._context,
        target_branch,
        run_id=new_ulid(),
        operation_hash=operation_hash,
        actor=actor,
    )


def publish_load(graph: Runs, run_id: str, *, engine: str) -> RunRecord:
    """Publish a load in steps with one commit; once, however often it is asked.

    Raises:
        RunNotFound: there is none of that id.
        DataError: its rows break a rule now that the target has moved; the run goes on.
        ConflictError: it failed or was aborted, or others wrote to the target every time.
        BranchNotFound: its target is gone.
    """
    graph._rights.demand_run(graph._context, Action.RUN_PUBLISH, run_id)
    return runs.publish_load(graph._context, run_id, engine)


def is_landed(graph: Runs, run: RunRecord) -> bool:
    """Whether a load in steps is committed, also if who did it was killed before it said so."""
    graph._rights.demand(Action.READ)
    return find_loaded(graph._context, run) is not None


def is_audited(graph: Runs, run_id: str) -> bool:
    """Whether a load in steps was checked as a whole, and may be published."""
    graph._rights.demand(Action.READ)
    return is_load_audited(graph._context, run_id)


def is_read(graph: Runs, run_id: str) -> bool:
    """Whether to publish a load in steps reads none of its files again."""
    graph._rights.demand(Action.READ)
    return is_load_read(graph._context, run_id)


def runs_moved_since(graph: Runs, since: int, status: RunStatus) -> tuple[RunRecord, ...]:
    """Runs that came into a state after a time in microseconds."""
    graph._rights.demand(Action.READ)
    found = RunRegistry(graph._context.store).list(status=status, since=since)
    return judged(graph._context, found)


def runs_of_operations(
    graph: Runs, target_branch: str, status: RunStatus, is_sought: Callable[[str], bool]
) -> tuple[RunRecord, ...]:
    """The runs of a target in one state, of those operation hashes, oldest first.

    Costs a look at each hash, where a list of all runs makes a record of each.
    """
    graph._rights.demand(Action.READ)
    found = RunRegistry(graph._context.store).list(target_branch, status, is_sought=is_sought)
    return judged(graph._context, found)
