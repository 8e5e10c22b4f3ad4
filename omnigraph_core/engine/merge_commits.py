"""Single commits brought to a branch, taken back from it, and branches set back to a state.

A pick is the merge of what a commit changed, a revert the merge of its opposite: the same rules and
the same conflicts. Old states are held while they are read.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from omnigraph_core.engine.merge_branches import (
    draft_of,
    hit_staged,
    land,
    publish,
    refuse_conflicts,
    told,
)
from omnigraph_core.engine.protection import hold
from omnigraph_core.errors import BranchNotFound, ConfigError, ConflictError, SnapshotNotFound
from omnigraph_core.history.ancestry import merge_base
from omnigraph_core.history.branches import find_branch
from omnigraph_core.history.snapshots import state_at_commit
from omnigraph_core.manifest.changes import AcceptSchema, AdoptTable, TombstoneTable, touched
from omnigraph_core.manifest.image import MAIN, TableOperation
from omnigraph_core.manifest.names import check_actor, is_internal
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import HeadIs, requirements_of
from omnigraph_core.merge.model import MergeOutcome, MergeResult, TableDisposition
from omnigraph_core.merge.three_way import stage_merge
from omnigraph_core.settings import PUBLISH_LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import AcceptedSchema, GraphCommit, TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.merge.model import MergeOptions, TableMerge

_REWRITES: Final = frozenset({TableOperation.COMPACTION, TableOperation.INDEX})
"""They hold the rows that were there before."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes to a branch; rows and schema may need different rights."""

    actor: str | None
    may_change_schema: Callable[[], object]
    """Called before the branch gets another schema; raises to refuse."""


def pick_commit(
    context: GraphContext, commit_id: str, branch: str, options: MergeOptions, author: Author
) -> MergeResult:
    """Bring what one commit changed to a branch; of a merge, what it changed on its own branch.

    Raises:
        CommitNotFound, BranchNotFound, SnapshotNotFound: there is no such thing any more.
        ConfigError: the first commit of a graph, or choices that cannot be used.
        MergeConflicts: something has to be decided first. Nothing was written.
    """
    return _apply(context, commit_id, branch, options, author, is_revert=False)


def revert_commit(
    context: GraphContext, commit_id: str, branch: str, options: MergeOptions, author: Author
) -> MergeResult:
    """Take back what one commit changed, and nothing that came after it.

    Raises:
        as `pick_commit`.
    """
    return _apply(context, commit_id, branch, options, author, is_revert=True)


def _apply(
    context: GraphContext,
    commit_id: str,
    branch: str,
    options: MergeOptions,
    author: Author,
    *,
    is_revert: bool,
) -> MergeResult:
    check_actor(author.actor)
    name = _public_branch(context, branch)
    commit = context.commits.find(commit_id)
    if commit.parent_commit_id is None:
        word = "revert" if is_revert else "pick"
        raise ConfigError(
            f"commit {commit_id} is the first of the graph: there is nothing before it to compare "
            f"it with, so nothing to {word}"
        )
    parent = context.commits.find(commit.parent_commit_id)
    with contextlib.ExitStack() as held:
        states = [held.enter_context(_held(context, item)) for item in (parent, commit)]
        before, after = _without_rewrites(states[0].snapshot, states[1].snapshot)
        base, theirs = (after, before) if is_revert else (before, after)
        operation = "revert" if is_revert else "cherry_pick"
        step = _Step(context, commit, base, theirs, name, options, operation, author)
        return step.attempt() if options.is_dry_run else land(context, name, step.attempt)


def _held(
    context: GraphContext, commit: GraphCommit
) -> contextlib.AbstractContextManager[CatalogState]:
    lasting = timedelta(seconds=2 * PUBLISH_LEASE.read())
    snapshot = state_at_commit(context.store, commit).snapshot
    return hold(context.store, snapshot, purpose="merge", lasting=lasting)


def _without_rewrites(before: Snapshot, after: Snapshot) -> tuple[Snapshot, Snapshot]:
    """The states without what a commit has only written anew: its rows are the same."""
    by_location = {entry.location: entry for entry in before.tables.values()}
    tables: dict[str, TableEntry] = {}
    for key, entry in after.tables.items():
        old = by_location.get(entry.location)
        is_rewrite = entry.operation in _REWRITES and old is not None and old.table_key == key
        tables[key] = old if is_rewrite and old is not None else entry
    return before, replace(after, image=replace(after.image, tables=tables))


@dataclass(frozen=True, slots=True)
class _Step:
    """What one commit changed, or its opposite, on its way to a branch."""

    context: GraphContext
    commit: GraphCommit
    base: Snapshot
    theirs: Snapshot
    branch: str
    options: MergeOptions
    operation: str
    author: Author

    def attempt(self) -> MergeResult:
        ref, target = self.context.head(self.branch)
        common = self._common_schema(target)
        staged = stage_merge(
            self.context, self.base, target, self.theirs, self.options, common=common
        )
        if staged.schema is not None:
            self.author.may_change_schema()
        is_idle = not staged.conflicts and not _is_work(staged.tables, staged.schema)
        result = told(
            MergeResult(
                source=self.commit.graph_commit_id,
                target=self.branch,
                outcome=MergeOutcome.ALREADY_UP_TO_DATE if is_idle else MergeOutcome.MERGED,
                base_commit_id=self.base.commit.graph_commit_id,
                source_commit_id=self.theirs.commit.graph_commit_id,
                target_commit_id=target.snapshot.commit.graph_commit_id,
                commit=None,
                is_dry_run=self.options.is_dry_run,
            ),
            staged,
        )
        if is_idle or self.options.is_dry_run:
            return result
        refuse_conflicts(staged)
        hit_staged()
        draft = draft_of(staged, target, self.operation, merged=None, actor=self.author.actor)
        commit = publish(self.context, ref, target, draft)
        return replace(result, commit=commit, target_commit_id=commit.parent_commit_id or "")

    def _common_schema(self, target: CatalogState) -> AcceptedSchema | None:
        """The schema of the newest commit that the branch shares with the one to bring there."""
        hashes = {item.schema.hash for item in (self.base, self.theirs, target.snapshot)}
        if len(hashes) == 1:
            return None
        known = self._known_commits(target)
        head = target.snapshot.commit.graph_commit_id
        shared = merge_base(self.commit.graph_commit_id, head, known.get)
        if shared is None:
            raise ConflictError(
                f"`{self.branch}` has no commit in common with {self.commit.graph_commit_id}, and "
                f"not its schema: nothing tells which types are the same",
                hint="make the change by hand",
            )
        try:
            return state_at_commit(self.context.store, known[shared]).snapshot.schema
        except SnapshotNotFound as gone:
            raise SnapshotNotFound(
                f"cleanup has removed commit {shared}, the newest that `{self.branch}` shares with "
                f"{self.commit.graph_commit_id}, and the schema has changed since: nothing tells "
                f"which types are the same",
                hint="make the change by hand",
            ) from gone

    def _known_commits(self, target: CatalogState) -> dict[str, GraphCommit]:
        """Commits of the target, and of the branch that the commit was made on."""
        ref = find_branch(self.context.store, self.branch)
        known = self.context.commits.of_branch(ref, target)
        # What a branch had made is recorded when it is deleted.
        with contextlib.suppress(BranchNotFound):
            of_commit = self.context.head(self.commit.manifest_branch or MAIN)
            known = {**self.context.commits.of_branch(*of_commit), **known}
        return known


def _is_work(tables: tuple[TableMerge, ...], schema: AcceptedSchema | None) -> bool:
    kept = TableDisposition.KEPT
    return schema is not None or any(table.disposition is not kept for table in tables)


def reset_branch(
    context: GraphContext, branch: str, wanted: Snapshot, author: Author, *, is_confirmed: bool
) -> GraphCommit:
    """Give a branch the state of another commit, with a new commit; its history stays.

    Returns:
        The new commit; the head if the branch is in that state already.

    Raises:
        ConfigError: not confirmed; says what would change.
        NotFoundError: no such branch, or cleanup has removed the state.
        ConflictError: others were first every time.
    """
    check_actor(author.actor)
    name = _public_branch(context, branch)
    lasting = timedelta(seconds=2 * PUBLISH_LEASE.read())
    with hold(context.store, wanted, purpose="reset", lasting=lasting) as kept:
        snapshot = kept.snapshot

        def attempt() -> GraphCommit:
            ref, state = context.head(name)
            changes = _differences(state.snapshot, snapshot)
            if not changes:
                return state.snapshot.commit
            if _is_other_schema(state.snapshot, snapshot):
                author.may_change_schema()
            if not is_confirmed:
                raise _unconfirmed(name, state.snapshot, snapshot, changes)
            # All of the state is meant, so nothing may have come in between.
            needed = requirements_of(state.snapshot, touched=touched(changes))
            head = HeadIs(state.snapshot.commit.graph_commit_id)
            draft = CommitDraft(changes, (head, *needed), "reset", actor=author.actor)
            return publish(context, ref, state, draft)

        return land(context, name, attempt)


def _differences(now: Snapshot, wanted: Snapshot) -> tuple[Change, ...]:
    """What makes one state of another, by pointers alone."""
    changes: list[Change] = []
    for key, entry in wanted.tables.items():
        current = now.tables.get(key)
        if current is None or _pointer(current) != _pointer(entry):
            changes.append(AdoptTable(entry, wanted.read_at))
    changes += [TombstoneTable(key) for key in now.tables if key not in wanted.tables]
    if _is_other_schema(now, wanted):
        changes.append(AcceptSchema(wanted.schema))
    return tuple(changes)


def _is_other_schema(now: Snapshot, wanted: Snapshot) -> bool:
    return now.schema.hash != wanted.schema.hash


def _pointer(entry: TableEntry) -> tuple[str, int]:
    return entry.location, entry.physical_version


def _unconfirmed(
    branch: str, now: Snapshot, wanted: Snapshot, changes: tuple[Change, ...]
) -> ConfigError:
    keys = sorted(touched(changes))
    parts = [f"{len(keys)} tables ({', '.join(keys)})"] if keys else []
    parts += ["the schema"] if _is_other_schema(now, wanted) else []
    return ConfigError(
        f"resetting `{branch}` from {now.commit.graph_commit_id} to "
        f"{wanted.commit.graph_commit_id} would change {' and '.join(parts)}",
        hint="nothing was changed; confirm to go on. What is there now stays readable by its "
        "commit until cleanup takes it",
    )


def _public_branch(context: GraphContext, branch: str) -> str:
    name = branch.strip()
    if is_internal(name):
        raise ConfigError(f"the branch `{name}` is reserved for internal use")
    return find_branch(context.store, name).branch
