"""Merges of branches: two names come in, one commit with two parents goes out, or all conflicts.

The source is read once: what is committed there later is no part of the merge. When the target
moves before the merge lands, everything is decided again on its newest state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.constants import PREPARE_BUDGET
from omnigraph_core.engine.branching import delete_branch
from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    ConflictError,
    InvariantBroken,
    MergeConflicts,
    OmnigraphError,
    PreconditionFailed,
    SnapshotNotFound,
    StorageError,
)
from omnigraph_core.failpoints import declare
from omnigraph_core.history import door
from omnigraph_core.history.bases import find_base, nearest
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.snapshots import state_at_commit
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.catalog import load_latest
from omnigraph_core.manifest.changes import touched
from omnigraph_core.manifest.names import check_actor, is_internal
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import HeadIs, requirements_of
from omnigraph_core.manifest.retry import back_off, prepare_again
from omnigraph_core.merge.model import MergeOutcome, MergeResult, summary_of
from omnigraph_core.merge.three_way import refused, stage_merge
from omnigraph_core.merge.virtual_base import open_base

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from omnigraph_core.history.bases import MergeBase
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.requirements import Requirement
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.three_way import StagedMerge
    from omnigraph_core.merge.workers import MergeWorkers

T = TypeVar("T")

_STAGED: Final = declare("merge.after_stage", "all tables of a merge are staged, none is published")
_PUBLISHED: Final = declare("merge.after_publish", "a merge is published, its source still there")


def merge_into(
    context: GraphContext,
    source: str,
    target: str,
    options: MergeOptions,
    *,
    is_internal_allowed: bool,
    operation: str,
    if_commit: str | None,
    actor: str | None,
    workers: MergeWorkers | None = None,
) -> MergeResult:
    """Bring what a branch has and another lacks to the other, with one commit.

    Args:
        workers: who does what grows with the rows; None: this process.

    Raises:
        ConfigError: the same branch twice, one of OmniGraph's own, or choices that cannot be used.
        BranchNotFound: there is no such branch.
        MergeConflicts: something has to be decided first; carries everything. Nothing was written.
        ConflictError: the head is not `if_commit`, or the target moved every time.
        SnapshotNotFound: cleanup has removed the state in which the branches parted.
    """
    names = _check_names(source, target, is_internal_allowed=is_internal_allowed)
    check_actor(actor)
    ref, state = context.head(names[0])
    merge = _Merge(context, names, ref, state, options, operation, if_commit, actor, workers)
    with job_facts(operation="merge", commit=merge.source_id, branch=names[1]):
        if if_commit is not None or options.is_dry_run:
            return merge.attempt()
        return land(context, names[1], merge.attempt)


def land(context: GraphContext, branch: str, attempt: Callable[[], T]) -> T:
    """Prepare and publish, again from the newest state for as long as a race is lost."""
    try:
        return attempt()
    except ConflictError as conflict:
        if not conflict.retryable:
            raise

    def in_turn() -> T:
        with context.commits.turns.turn(branch):
            return attempt()

    back_off(0)
    return prepare_again(in_turn, retries=PREPARE_BUDGET.value - 1)


def publish(
    context: GraphContext, ref: BranchRef, state: CatalogState, draft: CommitDraft
) -> GraphCommit:
    """Publish through the door, and remember what came of it."""
    try:
        published = door.commit(context.commits, ref, draft, base=state)
    except OmnigraphError:
        context.forget(ref)  # whatever went wrong, the next attempt looks anew
        raise
    context.remember(published)
    return published.snapshot.commit


def refuse_conflicts(staged: StagedMerge) -> None:
    """
    Raises:
        MergeConflicts: there are any; carries all.
    """
    if staged.conflicts:
        shown = [conflict.to_json() for conflict in staged.conflicts]
        raise MergeConflicts(summary_of(staged.conflicts), shown)


def hit_staged() -> None:
    """Where tests stop a merge that has staged everything."""
    _STAGED.hit()


def delete_merged(context: GraphContext, result: MergeResult, *, actor: str | None) -> MergeResult:
    """Delete the source of a merge if it has nothing that was not merged; never fails the merge."""
    try:
        _PUBLISHED.hit()
        _, now = context.head(result.source)
        _check_merged(result, now.snapshot.commit.graph_commit_id)
        ref = delete_branch(context, result.source, if_commit=result.source_commit_id, actor=actor)
    except PreconditionFailed as moved:
        return replace(result, source_note=_unmerged(moved.actual))
    except (BranchNotFound, ConfigError, ConflictError, StorageError) as problem:
        return replace(result, source_note=problem.message)
    return replace(result, is_source_deleted=True, source_note=_lost(context, ref, result))


def _check_merged(result: MergeResult, head: str) -> None:
    if head != result.source_commit_id:
        raise PreconditionFailed(f"the head of `{result.source}`", result.source_commit_id, head)


def _unmerged(head: str) -> str:
    return f"commit {head} was made meanwhile, and is not merged"


def _lost(context: GraphContext, ref: BranchRef, result: MergeResult) -> str | None:
    """What is to be said of a commit that was made between the last look and the deletion."""
    try:
        state = load_latest(catalog_of(context.store, ref))
    except StorageError:
        return None  # cleanup has taken it: that was long ago
    head = state.snapshot.commit.graph_commit_id
    if head == result.source_commit_id:
        return None
    return f"{_unmerged(head)}; create a branch from it to keep it"


def _check_names(source: str, target: str, *, is_internal_allowed: bool) -> tuple[str, str]:
    names = source.strip(), target.strip()
    if names[0] == names[1]:
        raise ConfigError(
            f"a merge needs a distinct source and target, both are `{names[0]}`",
            hint="name the branch to merge from and the one to merge into",
        )
    internal = [name for name in names if is_internal(name)]
    if internal and not is_internal_allowed:
        listed = ", ".join(f"`{name}`" for name in internal)
        raise ConfigError(f"the branch {listed} is reserved for internal use")
    return names


@dataclass(frozen=True, slots=True)
class _Merge:
    """One request on its way through the attempts to land it."""

    context: GraphContext
    names: tuple[str, str]
    source_ref: BranchRef
    source: CatalogState
    options: MergeOptions
    operation: str
    if_commit: str | None
    actor: str | None
    workers: MergeWorkers | None

    @property
    def source_id(self) -> str:
        return self.source.snapshot.commit.graph_commit_id

    def attempt(self) -> MergeResult:
        """Decide on the target's newest state, and publish what was decided."""
        ref, target = self.context.head(self.names[1])
        head = target.snapshot.commit.graph_commit_id
        if self.if_commit is not None and self.if_commit != head:
            raise PreconditionFailed("head", self.if_commit, head)
        known = {
            **self.context.commits.of_branch(self.source_ref, self.source),
            **self.context.commits.of_branch(ref, target),
        }
        base = self._find_base(head, known)
        result = MergeResult(
            source=self.names[0],
            target=self.names[1],
            outcome=_outcome(nearest(base), self.source_id, head),
            base_commit_id=nearest(base),
            source_commit_id=self.source_id,
            target_commit_id=head,
            commit=None,
            is_dry_run=self.options.is_dry_run,
        )
        if result.outcome is MergeOutcome.ALREADY_UP_TO_DATE:
            return result
        return self._merged(ref, target, self._staged(base, target, known), result)

    def _staged(
        self, base: MergeBase, target: CatalogState, known: Mapping[str, GraphCommit]
    ) -> StagedMerge:
        opened = open_base(
            self.context,
            base,
            lambda commit_id: self._snapshot_of(known[commit_id]),
            self.options.strategy,
            self.workers,
        )
        if opened.conflicts:
            return refused(opened.conflicts)
        theirs = self.source.snapshot
        with job_facts(tables={**theirs.table_keys, **target.snapshot.table_keys}):
            return stage_merge(
                self.context, opened.state, target, theirs, self.options, workers=self.workers
            )

    def _merged(
        self, ref: BranchRef, target: CatalogState, staged: StagedMerge, result: MergeResult
    ) -> MergeResult:
        result = told(result, staged)
        if self.options.is_dry_run:
            return result
        refuse_conflicts(staged)
        hit_staged()
        extra: tuple[Requirement, ...] = ()
        is_forward = result.outcome is MergeOutcome.FAST_FORWARD
        if self.if_commit is not None or is_forward or not staged.changes:
            # What is forwarded to is the source as it is: nothing may have come in between. And
            # without a change nothing else tells that another process has merged the same.
            extra = (HeadIs(result.target_commit_id),)
        draft = draft_of(
            staged, target, self.operation, merged=self.source_id, extra=extra, actor=self.actor
        )
        commit = publish(self.context, ref, target, draft)
        return replace(result, commit=commit, target_commit_id=commit.parent_commit_id or "")

    def _find_base(self, head: str, known: Mapping[str, GraphCommit]) -> MergeBase:
        """The newest commit that both contain, or all that are."""
        found = find_base(self.source_id, head, known.get)
        if found is None:
            raise ConflictError(
                f"`{self.names[0]}` and `{self.names[1]}` have no commit in common",
                hint="nothing tells what each has changed; export one and load it into the other",
            )
        return found

    def _snapshot_of(self, base: GraphCommit) -> Snapshot:
        try:
            return state_at_commit(self.context.store, base).snapshot
        except SnapshotNotFound as gone:
            raise SnapshotNotFound(
                f"cleanup has removed commit {base.graph_commit_id}, where `{self.names[0]}` and "
                f"`{self.names[1]}` parted: nothing tells what each has changed since",
                hint="export one branch and load it into the other, or reset the target",
            ) from gone


def told(result: MergeResult, staged: StagedMerge) -> MergeResult:
    """The result with what was decided."""
    return replace(
        result,
        tables=staged.tables,
        conflicts=staged.conflicts,
        resolved=staged.resolved,
        is_schema_changed=staged.schema is not None,
    )


def draft_of(
    staged: StagedMerge,
    target: CatalogState,
    operation: str,
    *,
    merged: str | None,
    extra: tuple[Requirement, ...] = (),
    actor: str | None,
) -> CommitDraft:
    """The commit that publishes a staged merge; what it relies on must not have moved."""
    if staged.conflicts:
        raise InvariantBroken("a merge with conflicts is never published")
    needed = requirements_of(target.snapshot, touched=touched(staged.changes), read=staged.read)
    return CommitDraft(
        staged.changes, (*extra, *needed), operation, merged_parent_commit_id=merged, actor=actor
    )


def _outcome(base_id: str, source_id: str, target_id: str) -> MergeOutcome:
    if base_id == source_id:
        return MergeOutcome.ALREADY_UP_TO_DATE
    return MergeOutcome.FAST_FORWARD if base_id == target_id else MergeOutcome.MERGED
