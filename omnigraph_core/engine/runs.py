"""Runs: a record and an ordinary branch that work is done on, out of sight of its target."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from omnigraph_core.clock import now_us
from omnigraph_core.engine.branching import create_branch, delete_branch
from omnigraph_core.errors import BranchNotFound, ConflictError, StorageError
from omnigraph_core.history import refs
from omnigraph_core.history.runs import RunRegistry, RunStatus, mark_aborted, mark_failed
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.names import RUN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.runs import RunRecord


def begin_run(
    context: GraphContext, target_branch: str, *, operation_hash: str | None, actor: str | None
) -> RunRecord:
    """Fork a run's branch from its target and register the run.

    With an operation hash that is running or published, that run is the answer: beginning again
    after a lost answer begins nothing.

    Raises:
        BranchNotFound: no such target.
    """
    registry = RunRegistry(context.store)
    run_id = new_ulid()
    target_branch = target_branch.strip()  # as branches are found
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
    if run.run_id != run_id:
        _drop_branch(context, ref.branch)
    return run


def abort_run(context: GraphContext, run_id: str) -> RunRecord:
    """Give a run up.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: it was published, or aborted before.
    """
    return _end(context, run_id, mark_aborted)


def fail_run(context: GraphContext, run_id: str) -> RunRecord:
    """Record that a run's work has failed.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: it was published or aborted.
    """
    return _end(context, run_id, mark_failed)


def _end(context: GraphContext, run_id: str, mark: Callable[..., RunRecord]) -> RunRecord:
    run = RunRegistry(context.store).transition(run_id, partial(mark, now=now_us()))
    _drop_branch(context, run.run_branch)
    return run


def drop_run_branches(context: GraphContext, *, older_than: int) -> None:
    """Remove branches whose run has ended or was never registered: their owner was killed.

    Args:
        older_than: in microseconds; a younger one may be about to be registered.
    """
    running = {run.run_branch for run in RunRegistry(context.store).list(status=RunStatus.RUNNING)}
    for ref in refs.list_branch_refs(context.store):
        is_left = ref.branch.startswith(RUN_PREFIX) and ref.branch not in running
        if is_left and ref.created_at < older_than:
            _drop_branch(context, ref.branch)


def _drop_branch(context: GraphContext, branch: str) -> None:
    """The record decides; a branch that stays behind is hidden and harmless."""
    try:
        delete_branch(context, branch, is_internal_allowed=True, actor=None)
    except (BranchNotFound, ConflictError, StorageError):
        return
