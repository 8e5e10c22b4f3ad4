"""The comparing half of `Omnigraph`: diffs of snapshots and commits, and the feed of changes."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from omnigraph_core.diff import feed
from omnigraph_core.diff.feed import MOST_CHANGES, MOST_COMMITS, Wanted
from omnigraph_core.diff.model import EVERYTHING, ChangePage
from omnigraph_core.diff.snapshots import compare_snapshots
from omnigraph_core.diff.tables import check_type_names
from omnigraph_core.engine.beyond import AUTO, check_engine
from omnigraph_core.engine.comparing import workers_for
from omnigraph_core.engine.protection import hold
from omnigraph_core.errors import ConfigError
from omnigraph_core.history.snapshots import ReadTarget, state_at
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.compare.workers import Comparing
    from omnigraph_core.diff.model import ChangeFilter, ChangeSet, EntityChange
    from omnigraph_core.diff.rows import TableDiff
    from omnigraph_core.diff.snapshots import SnapshotDiff
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot

_LASTING: Final = timedelta(days=1)
"""How long cleanup spares what a stream of changes reads."""
_QUICK: Final = 4096
"""Changes that are read too soon for cleanup to come in between."""


@dataclass(frozen=True, slots=True)
class OpenDiff:
    """Two states compared: how much differs where, and the changes as they are asked for.

    What is held is which rows differ, some fifty bytes for each; rows are read in portions.
    """

    summary: ChangeSet
    """With the counts of all, and none of the changes."""
    _found: SnapshotDiff
    _tables: tuple[TableDiff, ...]

    @classmethod
    def of(cls, found: SnapshotDiff) -> OpenDiff:
        with job_facts(operation="diff") as report:
            tables = tuple(found.iter_tables())
        summary = found.change_set(has_values=False, limit=0, tables=tables)
        return cls(replace(summary, spark=report.result), found, tables)

    def iter_changes(
        self, *, has_values: bool = True, limit: int | None = None
    ) -> Iterator[EntityChange]:
        """The changes, `limit` of them at most; cleanup spares them for a day if they are many."""
        _check_limit(limit)
        changes = self._found.iter_changes(has_values=has_values, limit=limit, tables=self._tables)
        total = self.summary.stats.total
        is_quick = (total if limit is None else min(total, limit)) <= _QUICK
        return changes if is_quick else _held(self._found, changes)


class Diffs:
    """What differs between states of a graph."""

    _context: GraphContext
    _rights: Rights

    def diff_between(
        self,
        source: str | ReadTarget,
        target: str | ReadTarget,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        limit: int | None = None,
        engine: str = AUTO,
    ) -> ChangeSet:
        """What has to change for `source` to be as `target` is: branches, commits or tags.

        Args:
            has_values: rows before and after with each change, and the names of what differs.
            limit: changes that are listed; the counts are those of all.
            engine: who compares rows: `local` is this process, `spark` executors of Spark, `auto`
                these where they are on other machines and many rows of a table have changed.

        Raises:
            NotFoundError: no such branch, commit or tag, or cleanup has removed it.
            ConfigError: the filter names a type that neither has, or Spark does not start.
            JobFailed: Spark could not carry it out.
        """
        before, after = self._snapshots(source, target)
        _check_limit(limit)
        with job_facts(operation="diff") as report, workers_for(engine, self._context) as workers:
            found = self._compared(before, after, filter, workers=workers)
            changes = found.change_set(has_values=has_values, limit=limit)
        return replace(changes, spark=report.result)

    def diff_commits(
        self,
        from_commit_id: str,
        to_commit_id: str,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        limit: int | None = None,
        engine: str = AUTO,
    ) -> ChangeSet:
        """What differs between the states of two commits, of any branches.

        Raises:
            What `diff_between` raises.
        """
        source, target = (ReadTarget(snapshot_id=id) for id in (from_commit_id, to_commit_id))
        return self.diff_between(
            source, target, filter, has_values=has_values, limit=limit, engine=engine
        )

    def commit_changes(
        self,
        commit_id: str,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        limit: int | None = None,
        engine: str = AUTO,
    ) -> ChangeSet:
        """What a commit changed on its branch: against its first parent.

        Raises:
            CommitNotFound: there is no such commit.
            SnapshotNotFound: cleanup has removed its state, or the one before.
            ConfigError: the filter names a type that neither has.
        """
        after = self._after(commit_id)
        _check_limit(limit)
        with job_facts(operation="diff") as report, workers_for(engine, self._context) as workers:
            found = self._compared_commit(after, filter, workers)
            changes = found.change_set(has_values=has_values, limit=limit)
        return replace(changes, spark=report.result)

    def iter_diff(
        self,
        source: str | ReadTarget,
        target: str | ReadTarget,
        filter: ChangeFilter | None = None,
        *,
        has_values: bool = True,
        engine: str = AUTO,
    ) -> Iterator[EntityChange]:
        """The changes of `diff_between` one by one, read as they are asked for.

        Names are checked now. Cleanup spares both snapshots until the last change is out, for a
        day at most.

        Raises:
            What `diff_between` raises.
        """
        check_engine(engine)
        before, after = self._snapshots(source, target)
        found = self._compared(before, after, filter)
        return _held(found, _iter_with(engine, found, has_values=has_values))

    def open_diff(
        self,
        source: str | ReadTarget,
        target: str | ReadTarget,
        filter: ChangeFilter | None = None,
        *,
        engine: str = AUTO,
    ) -> OpenDiff:
        """What `diff_between` gives, for more changes than fit into memory.

        Raises:
            What `diff_between` raises.
        """
        before, after = self._snapshots(source, target)
        with workers_for(engine, self._context) as workers:
            return OpenDiff.of(self._compared(before, after, filter, workers=workers))

    def open_commit_changes(
        self, commit_id: str, filter: ChangeFilter | None = None, *, engine: str = AUTO
    ) -> OpenDiff:
        """What `commit_changes` gives, for more changes than fit into memory.

        Raises:
            What `commit_changes` raises.
        """
        after = self._after(commit_id)
        with workers_for(engine, self._context) as workers:
            return OpenDiff.of(self._compared_commit(after, filter, workers))

    def cursor_at(
        self,
        commit_id: str | None = None,
        *,
        branch: str = MAIN,
        filter: ChangeFilter | None = None,
    ) -> str:
        """The cursor of whoever has read a branch as it was at a commit; its head without one.

        Read the snapshot of that commit as a whole, then `poll` from here: nothing is missed.

        Raises:
            BranchNotFound, CommitNotFound: there is no such thing.
            ConfigError: the commit is not on the branch's line of first parents, or the filter
                names a type that is not there.
        """
        self._rights.demand(Action.READ, branch=branch)
        return feed.cursor_at(self._context, branch, commit_id, filter or EVERYTHING)

    def poll(
        self,
        cursor: str | None = None,
        *,
        branch: str = MAIN,
        filter: ChangeFilter | None = None,
        has_values: bool = True,
        most_commits: int = MOST_COMMITS,
        most_changes: int = MOST_CHANGES,
    ) -> ChangePage:
        """What was committed on a branch after a cursor, oldest first, one block per commit.

        Commits that change nothing the filter asks for have no block, but the cursor passes them.
        A page ends before a block that does not fit into `most_changes` any more. A single block
        is whole, however many it has: without values, at most some hundred bytes are held for
        each change, and `open_commit_changes` gives the rows one by one. Without a cursor: the
        one of now.

        Types of the filter are followed: after a rename their rows come under the new name, and
        the filter may say the old one or the new one. A type that is dropped has no more rows.

        Raises:
            BranchNotFound: there is no such branch.
            CursorRejected: the cursor is of another graph, branch or filter, or damaged.
            ChangeFeedGap: cleanup has removed what came right after it.
            ConfigError: a bound is below 1, or, without a cursor, the filter names a type that is
                not there.
        """
        self._rights.demand(Action.READ, branch=branch)
        wanted = Wanted(filter or EVERYTHING, has_values, most_commits, most_changes)
        if cursor is None:
            return ChangePage((), feed.cursor_at(self._context, branch, None, wanted.filter))
        return feed.poll(self._context, branch, cursor, wanted)

    def _snapshots(
        self, source: str | ReadTarget, target: str | ReadTarget
    ) -> tuple[Snapshot, Snapshot]:
        targets = (
            ReadTarget(branch=item) if isinstance(item, str) else item for item in (source, target)
        )
        demand_at = self._rights.demand_at
        before, after = (demand_at(self._context, Action.READ, item).snapshot for item in targets)
        return before, after

    def _after(self, commit_id: str) -> Snapshot:
        """The state a commit made, if it may be read."""
        made = ReadTarget(snapshot_id=commit_id)
        return self._rights.demand_at(self._context, Action.READ, made).snapshot

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        """The state before: a branch's catalog begins with a copy of what it was forked from."""
        if snapshot.commit.parent_commit_id is None:
            return None
        version = snapshot.manifest_version - 1
        store = self._context.store
        return state_at(store, snapshot.branch, snapshot.incarnation, version).snapshot

    def _compared_commit(
        self, after: Snapshot, filter: ChangeFilter | None, workers: Comparing | None
    ) -> SnapshotDiff:
        before = self._parent(after)
        return self._compared(before, after, filter, is_successive=True, workers=workers)

    def _compared(
        self,
        before: Snapshot | None,
        after: Snapshot,
        filter: ChangeFilter | None,
        *,
        is_successive: bool = False,
        workers: Comparing | None = None,
    ) -> SnapshotDiff:
        wanted = filter or EVERYTHING
        check_type_names(wanted, *(item for item in (before, after) if item is not None))
        return compare_snapshots(
            self._context, before, after, wanted, is_successive=is_successive, workers=workers
        )


def _iter_with(engine: str, found: SnapshotDiff, *, has_values: bool) -> Iterator[EntityChange]:
    """The changes, compared by an engine when the first is asked for."""
    with workers_for(engine, found.context) as workers:
        yield from replace(found, workers=workers).iter_changes(has_values=has_values)


def _held(found: SnapshotDiff, changes: Iterator[EntityChange]) -> Iterator[EntityChange]:
    """The changes; cleanup spares what they are read from."""
    with ExitStack() as held:
        for snapshot in (found.before, found.after):
            if snapshot is not None:
                lease = hold(found.context.store, snapshot, purpose="diff", lasting=_LASTING)
                held.enter_context(lease)
        yield from changes


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 0:
        raise ConfigError(f"`limit` is {limit}, give 0 or more")
