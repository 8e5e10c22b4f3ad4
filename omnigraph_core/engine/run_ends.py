"""How runs end: a run comes in, its record with what became of it goes out.

The record decides, and before it says that a run was given up the target is asked: work that is
visible there was published, even if whoever published it could not record it. Branches go last.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.engine.removal import remove_branch
from omnigraph_core.errors import BranchNotFound, ConflictError, StorageError
from omnigraph_core.failpoints import declare
from omnigraph_core.history.branches import find_branch
from omnigraph_core.history.runs import RunRegistry, RunStatus, mark_landed
from omnigraph_core.settings import RUN_EXPIRY
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.runs import RunRecord

_ENDED: Final = declare("run.after_end", "the run has ended, its branch is still there")


def settle(context: GraphContext, run_id: str, mark: Callable[..., RunRecord]) -> RunRecord:
    """Move a run to its last state, then drop its branch.

    Args:
        mark: what to make of the run, told the time as `now`.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: raised by `mark`.
    """
    run = RunRegistry(context.store).transition(run_id, partial(mark, now=now_us()))
    _ENDED.hit()
    if run.run_branch:
        drop_branch(context, run.run_branch)
    else:
        Scratch(context.store, run_id).clear()
    return run


def give_up(context: GraphContext, run_id: str, mark: Callable[..., RunRecord]) -> RunRecord:
    """Settle a run whose work is not to be seen.

    Raises:
        RunNotFound: there is none of that id.
        ConflictError: raised by `mark`, also because the work turns out to be published.
    """
    run = RunRegistry(context.store).get(run_id)
    if (landed := _find_landed(context, run)) is not None:
        settle(context, run_id, partial(mark_landed, snapshot_id=landed))
    return settle(context, run_id, mark)


def _find_landed(context: GraphContext, run: RunRecord) -> str | None:
    if run.status is not RunStatus.RUNNING:
        return None
    if not run.run_branch:
        return find_loaded(context, run)
    try:
        head = context.head(run.run_branch)[1].snapshot.commit.graph_commit_id
        return find_landing(context, run, head)
    except BranchNotFound:
        return None


def find_landing(context: GraphContext, run: RunRecord, head_id: str) -> str | None:
    """The commit of the target that merged a run's work up to a commit; None if there is none.

    Raises:
        BranchNotFound: the target is gone.
    """
    if head_id == run.base_snapshot_id:
        return None  # nothing was written
    line = context.commits.lineage(*context.head(run.target_branch))
    merges = (commit for commit in line if commit.merged_parent_commit_id == head_id)
    found = next(merges, None)
    return None if found is None else found.graph_commit_id


def find_loaded(context: GraphContext, run: RunRecord) -> str | None:
    """The commit that published a load in steps; None if there is none, or its target is gone."""
    try:
        ref, state = context.head(run.target_branch)
    except BranchNotFound:
        return None
    commit = context.commits.find_keyed(ref, state, run.run_id)
    return None if commit is None else commit.graph_commit_id


def drop_branch(context: GraphContext, branch: str) -> None:
    """The record decides; a branch that stays behind is hidden and harmless."""
    try:
        ref = find_branch(context.store, branch)
        remove_branch(context, ref, is_internal_allowed=True, actor=None)
    except (BranchNotFound, ConflictError, StorageError):
        return


def give_up_expired(
    context: GraphContext, runs: Iterable[RunRecord], mark: Callable[..., RunRecord]
) -> None:
    """Settle those of the runs that are expired, as far as the store lets it."""
    for run in runs:
        if run.is_expired:
            with contextlib.suppress(ConflictError, StorageError):  # the next cleanup does it
                give_up(context, run.run_id, mark)


def judged(context: GraphContext, runs: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    """The runs, each told whether it is expired. Only old records need a look at their branch."""
    oldest = now_us() - round(RUN_EXPIRY.read() * 1_000_000)
    return tuple(replace(run, is_expired=_is_idle(context, run, since=oldest)) for run in runs)


def _is_idle(context: GraphContext, run: RunRecord, *, since: int) -> bool:
    if run.status is not RunStatus.RUNNING or run.updated_at >= since:
        return False
    if not run.run_branch:
        return True
    try:
        commit = context.head(run.run_branch)[1].snapshot.commit
    except BranchNotFound:
        return True
    # A branch nothing was written to has the commit it was forked from as its head.
    return commit.graph_commit_id == run.base_snapshot_id or commit.created_at < since
