"""Optimize: fewer, fuller files and complete indexes, the same rows.

The work is staged beside running writers and published as one commit. What was done to a table that
moved meanwhile is done again on its newer rows, a few times; then the table is left as it is. The
logs of commits and runs are folded last, and whatever becomes of them the commit stands.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.engine.indexing import (
    build_indexes,
    index_requests,
    open_tables,
    publish_work,
)
from omnigraph_core.errors import PreconditionFailed, StorageError, VersionConflict
from omnigraph_core.history.door import commit
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import MAIN, TableOperation
from omnigraph_core.manifest.layout import (
    GRAPH_COMMIT_ACTORS,
    GRAPH_COMMITS,
    GRAPH_RUN_ACTORS,
    GRAPH_RUNS,
)
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import SCHEMA_MEMBER, requirements_of
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.log import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from omnigraph_core.engine.workers import Indexed, Workers
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.segments import IndexRequest

    _WorkOn: TypeAlias = Callable[[Snapshot, Collection[str]], dict[str, "_Work"]]
    """Works on tables of a snapshot, and tells what was done to those that had need of it."""

_OPERATION: Final = "optimize"
_AGAIN: Final = 2
"""Times the work on a table that moved meanwhile is done again."""

LOGS: Final = (GRAPH_COMMITS, GRAPH_COMMIT_ACTORS, GRAPH_RUNS, GRAPH_RUN_ACTORS)


class OptimizeReason(StrEnum):
    """Why nothing was committed for a table."""

    NOTHING_TO_DO = "nothing to do"
    INHERITED = "inherited"
    """It is as another branch made it: rewritten here, the two would no longer share its files."""
    MOVED = "moved"
    """Others have changed it every time its work was done."""


@dataclass(frozen=True, slots=True)
class TableOptimizeStats:
    """What was done to one table; `reason` says why, if that was not committed."""

    table_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    indexes_built: tuple[str, ...] = ()
    committed: bool = False
    reason: OptimizeReason | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "indexes_built": list(self.indexes_built),
            "committed": self.committed,
            "reason": None if self.reason is None else str(self.reason),
        }


@dataclass(frozen=True, slots=True)
class _Work:
    stats: TableOptimizeStats
    change: UpdateTable


def optimize(
    context: GraphContext,
    branch: str,
    *,
    include_inherited: bool = False,
    actor: str | None,
    workers: Workers | None = None,
) -> tuple[TableOptimizeStats, ...]:
    """Compact and index every table of a branch that has need of it; at most one commit.

    Args:
        include_inherited: also the tables that are as another branch made them.
        workers: who compacts and indexes; by default threads of this process.

    Raises:
        BranchNotFound: there is none of that name.
        ConflictError: schema or branch moved meanwhile, or others were first every time.
    """

    def work_on(snapshot: Snapshot, table_keys: Collection[str]) -> dict[str, _Work]:
        if workers is None:
            return _optimize_tables(context, snapshot, table_keys)
        with job_facts(commit=snapshot.commit.graph_commit_id, tables=snapshot.table_keys):
            return _optimize_elsewhere(context, workers, snapshot, table_keys)

    ref, state = context.head(branch)
    snapshot = state.snapshot
    stats = {
        key: TableOptimizeStats(key, reason=OptimizeReason.INHERITED)
        for key, entry in snapshot.tables.items()
        if not include_inherited and _is_inherited(entry, ref.branch)
    }
    own = [key for key in snapshot.tables if key not in stats]
    work = work_on(snapshot, own)
    stats |= {key: _idle(key) for key in own if key not in work}
    stats |= _publish(context, ref, snapshot, work, work_on, actor=actor)
    _fold_logs(context)
    return tuple(stats[key] for key in sorted(stats))


def computing_threads() -> int:
    """How many tables to compute on at a time: beyond the processors they only take memory."""
    return min(MAINTENANCE_CONCURRENCY.read(), max(2, os.cpu_count() or 1))


def _is_inherited(entry: TableEntry, branch: str) -> bool:
    """On main nothing is: what it has adopted from another branch has no other owner."""
    return branch != MAIN and (entry.branch or MAIN) != branch


def _optimize_tables(
    context: GraphContext, snapshot: Snapshot, table_keys: Collection[str]
) -> dict[str, _Work]:
    """What was done to those of the tables that had need of it."""
    requests = index_requests(snapshot)
    with ThreadPoolExecutor(computing_threads()) as pool:
        done = pool.map(
            lambda key: _optimize_table(context, snapshot.tables[key], requests.get(key, ())),
            table_keys,
        )
        return {item.change.table_key: item for item in done if item is not None}


def _optimize_table(
    context: GraphContext, entry: TableEntry, requests: Iterable[IndexRequest]
) -> _Work | None:
    before = context.table(entry.location, entry.physical_version)
    compacted = compact(before)
    indexed = build_indexes(before if compacted is None else compacted, requests)
    return _done(entry.table_key, before, compacted, indexed)


def _optimize_elsewhere(
    context: GraphContext, workers: Workers, snapshot: Snapshot, table_keys: Collection[str]
) -> dict[str, _Work]:
    """The same by others, who like to know of all tables at once."""
    requests = index_requests(snapshot)
    before = open_tables(context, [snapshot.tables[key] for key in table_keys])
    compacted = workers.compact(before)
    newest = [old if new is None else new for old, new in zip(before, compacted, strict=True)]
    indexed = workers.index(
        [(table, requests.get(key, ())) for key, table in zip(table_keys, newest, strict=True)]
    )
    done = map(_done, table_keys, before, compacted, indexed)
    return {item.change.table_key: item for item in done if item is not None}


def _done(table_key: str, before: Table, compacted: Table | None, indexed: Indexed) -> _Work | None:
    table, built = indexed
    if table is before:
        return None
    old, new = _fragment_ids(before), _fragment_ids(table)
    stats = TableOptimizeStats(table_key, len(old - new), len(new - old), built)
    operation = TableOperation.INDEX if compacted is None else TableOperation.COMPACTION
    return _Work(stats, UpdateTable.of(table_key, table, operation))


def _fragment_ids(table: Table) -> frozenset[int]:
    return frozenset(fragment.id for fragment in current_fragments(table))


def _publish(
    context: GraphContext,
    ref: BranchRef,
    snapshot: Snapshot,
    work: dict[str, _Work],
    work_on: _WorkOn,
    *,
    actor: str | None,
) -> dict[str, TableOptimizeStats]:
    """Commit the work, done again where a table has moved; what became of each table."""
    stats = {key: item.stats for key, item in work.items()}
    for _ in range(_AGAIN):
        if not work or _is_published(context, ref, snapshot, work, actor=actor):
            landed = frozenset(work)
            break
        context.forget(ref)
        ref, state = context.head(ref.branch)
        work = _redone(work_on, snapshot, state.snapshot, work)
        stats |= {key: item.stats for key, item in work.items()}
        stats |= {key: _idle(key) for key in stats if key not in work}
        snapshot = state.snapshot
    else:
        changes = {key: item.change for key, item in work.items()}
        landed = publish_work(context, ref, snapshot, changes, _OPERATION, actor=actor)
    return {key: _told(item, is_committed=key in landed) for key, item in stats.items()}


def _is_published(
    context: GraphContext,
    ref: BranchRef,
    snapshot: Snapshot,
    work: dict[str, _Work],
    *,
    actor: str | None,
) -> bool:
    """Whether the commit has landed; False when a table or the schema has moved."""
    draft = CommitDraft(
        changes=tuple(item.change for item in work.values()),
        requirements=requirements_of(snapshot, touched=work),
        operation=_OPERATION,
        actor=actor,
    )
    try:
        context.remember(commit(context.commits, ref, draft))
    except VersionConflict:
        return False
    except PreconditionFailed as failed:
        if failed.member != SCHEMA_MEMBER:
            raise
        return False
    return True


def _redone(
    work_on: _WorkOn, before: Snapshot, now: Snapshot, work: dict[str, _Work]
) -> dict[str, _Work]:
    """The work that is still good, and that on newer rows; none on tables that are gone."""
    is_same_schema = before.schema.hash == now.schema.hash
    good = {
        key: item
        for key, item in work.items()
        if is_same_schema and now.tables.get(key) == before.tables[key]
    }
    moved = [key for key in work if key not in good and key in now.tables]
    return good | work_on(now, moved)


def _idle(table_key: str) -> TableOptimizeStats:
    return TableOptimizeStats(table_key, reason=OptimizeReason.NOTHING_TO_DO)


def _told(stats: TableOptimizeStats, *, is_committed: bool) -> TableOptimizeStats:
    if is_committed:
        return replace(stats, committed=True)
    return replace(stats, reason=stats.reason or OptimizeReason.MOVED)


def _fold_logs(context: GraphContext) -> None:
    """They only repeat what catalogs say, or serve as well in more files."""
    for path in LOGS:
        with contextlib.suppress(StorageError):
            fold(context.store, path)
