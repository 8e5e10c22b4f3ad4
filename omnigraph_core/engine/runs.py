"""Runs: a record and an ordinary branch that work is done on, out of sight of its target.

A run is published by the ordinary merge of its branch. That merge decides: a publish that was
killed before it could record it is recorded by the next one, which finds the work in the target.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.engine.branching import create_branch
from omnigraph_core.engine.loading import LoadSteps
from omnigraph_core.engine.merge_branches import merge_into
from omnigraph_core.engine.run_ends import (
    drop_branch,
    find_landing,
    find_loaded,
    give_up,
    give_up_expired,
    judged,
    settle,
)
from omnigraph_core.errors import BranchNotFound, ConfigError
from omnigraph_core.failpoints import declare
from omnigraph_core.history import refs
from omnigraph_core.history.runs import (
    RunRegistry,
    RunStatus,
    check_running,
    mark_aborted,
    mark_active,
    mark_failed,
    mark_landed,
    mark_published,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.names import RUN_PREFIX, is_internal

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.merge.model import MergeOptions, MergeResult

_MERGED: Final = declare("run.after_merge", "a run's work is visible, its record says running")

OPERATION: Final = "run_publish"
"""What the commit that publishes a run is called."""


def begin_run(
    context: GraphContext,
    target_branch: str,
    *,
    run_id: str,
    operation_hash: str | None,
    actor: str | None,
) -> RunRecord:
    """Fork a run's branch from its target and register the run.

    With an operation hash that is running or published, that run is the answer: beginning again
    after a lost answer begins nothing.

    Raises:
        ConfigError: the target is a branch of OmniGraph's own.
        BranchNotFound: no such target.
    """
    registry = RunRegistry(context.store)
    target_branch = target_branch.strip()  # as branches are found
    if is_internal(target_branch):
        raise ConfigError(f"the branch `{target_branch}` is reserved for internal use")
    source = ReadTarget(branch=target_branch)
    ref = create_branch(
        context, f"{RUN_PREFIX}{run_id}", source, is_internal_allowed=True, actor=actor
    )
    fork = ref.forked_from
    run = registry.begin(
        target_branch,
        fork.commit_id if fork else "",
        fork.manifest_version if fork else 0,
        run_id=run_id,
        operation_hash=operation_hash,
        actor=actor,
    )
    if run.run_id == run_id:
        return run
    drop_branch(context, ref.branch)
    return _revived(context, run)


def begin_load(
    context: GraphContext,
    target_branch: str,
    *,
    run_id: str,
    operation_hash: str,
    actor: str | None,
) -> RunRecord:
    """Register the run of a load in steps, which bears its id and needs no branch.

    Raises:
        BranchNotFound: no such target.
    """
    snapshot = context.head(target_branch)[1].snapshot
    run = RunRegistry(context.store).begin(
        target_branch,
        snapshot.commit.graph_commit_id,
        snapshot.manifest_version,
        run_id=run_id,
        operation_hash=operation_hash,
        actor=actor,
        has_branch=False,
    )
    return _revived(context, run)


def publish_load(context: GraphContext, run_id: str, engine: str) -> RunRecord:
    """Commit a load in steps to its target and record it. A published run is returned as it is.

    Raises:
        RunNotFound: there is none of that id.
        DataError: its rows break a rule now that the target has moved; the run goes on.
        ConflictError: it failed or was aborted, or others wrote to the target every time.
        BranchNotFound: its target is gone.
    """
    run = RunRegistry(context.store).get(run_id)
    if run.status is RunStatus.PUBLISHED:
        return run
    check_running(run, "publish")
    landed = find_loaded(context, run)
    if landed is None:
        loaded = LoadSteps(context, run.target_branch, run_id, engine).commit()
        # Without rows there is nothing to commit: what the branch has is what the load made.
        commit = loaded.commit or context.head(run.target_branch)[1].snapshot.commit
        landed = commit.graph_commit_id
        _MERGED.hit()
    return settle(context, run_id, partial(mark_landed, snapshot_id=landed))


def _revived(context: GraphContext, run: RunRecord) -> RunRecord:
    """The run; one that was taken for left behind counts as active from now on."""
    (run,) = judged(context, [run])
    if not run.is_expired:
        return run
    return RunRegistry(context.store).transition(run.run_id, partial(mark_active, now=now_us()))


def publish_run(
    context: GraphContext, run_id: str, options: MergeOptions, *, actor: str | None
) -> RunRecord:
    """Merge a run's work into its target and record it. A published run is returned as it is.

    Without an actor the commit is that of whoever began the run.

    Raises:
        RunNotFound: there is none of that id.
        MergeConflicts: it cannot be merged as it is; the run goes on.
        ConflictError: it failed or was aborted, or others wrote to the target every time.
        BranchNotFound: its branch, or its target, is gone.
    """
    registry = RunRegistry(context.store)
    run = registry.get(run_id)
    if run.status is RunStatus.PUBLISHED:
        return run
    check_running(run, "publish")
    try:
        merged = _merge(context, run, options, actor=actor or run.actor_id)
    except BranchNotFound:
        run = registry.get(run_id)
        if run.status is RunStatus.PUBLISHED:
            return run  # another process was first, and has dropped the branch
        raise
    _MERGED.hit()
    return _record(context, run, merged)


def preview_run(context: GraphContext, run_id: str, options: MergeOptions) -> MergeResult:
    """What publishing a run would do, conflicts included; nothing is written.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: it is not running.
        BranchNotFound: its branch, or its target, is gone.
    """
    run = RunRegistry(context.store).get(run_id)
    check_running(run, "publish")
    return _merge(context, run, replace(options, is_dry_run=True), actor=None)


def _merge(
    context: GraphContext, run: RunRecord, options: MergeOptions, *, actor: str | None
) -> MergeResult:
    return merge_into(
        context,
        run.run_branch,
        run.target_branch,
        options,
        is_internal_allowed=True,
        operation=OPERATION,
        if_commit=None,
        actor=actor,
    )


def _record(context: GraphContext, run: RunRecord, merged: MergeResult) -> RunRecord:
    if merged.source_commit_id == run.base_snapshot_id:  # nothing was written
        mark = partial(mark_published, snapshot_id=merged.target_commit_id)
        return settle(context, run.run_id, mark)
    if merged.commit is not None:
        landed = merged.commit.graph_commit_id
    else:  # by an earlier publish, or within another branch that was merged
        found = find_landing(context, run, merged.source_commit_id)
        landed = found or merged.target_commit_id
    return settle(context, run.run_id, partial(mark_landed, snapshot_id=landed))


def abort_run(context: GraphContext, run_id: str) -> RunRecord:
    """Give a run up.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: it was published, or aborted before.
    """
    return give_up(context, run_id, mark_aborted)


def fail_run(context: GraphContext, run_id: str) -> RunRecord:
    """Record that a run's work has failed.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: it was published or aborted.
    """
    return give_up(context, run_id, mark_failed)


def drop_run_branches(context: GraphContext, *, older_than: int) -> None:
    """Remove branches whose run has ended, has expired or was never registered.

    Runs that have expired are failed: their owner was killed, or has forgotten them. Loads in steps
    are aborted: one that has failed is one whose rows were refused, and theirs may be good.

    Args:
        older_than: in microseconds; a younger branch may be about to be registered.
    """
    registry = RunRegistry(context.store)
    left = judged(context, registry.list(status=RunStatus.RUNNING))
    give_up_expired(context, [run for run in left if run.run_branch], mark_failed)
    give_up_expired(context, [run for run in left if not run.run_branch], mark_aborted)
    running = {run.run_branch for run in registry.list(status=RunStatus.RUNNING)}
    for ref in refs.list_branch_refs(context.store):
        is_left = ref.branch.startswith(RUN_PREFIX) and ref.branch not in running
        if is_left and ref.created_at < older_than:
            drop_branch(context, ref.branch)
