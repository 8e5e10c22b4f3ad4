"""Optimize: fewer, fuller files and complete indexes, the same rows.

The work is staged beside running writers and published as one commit. A table that moved meanwhile
is left for the next time: its work would be based on rows that are no longer current.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.engine.indexing import (
    PARALLEL,
    build_indexes,
    index_requests,
    publish_work,
)
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.compact import compact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.storage.segments import IndexRequest


@dataclass(frozen=True, slots=True)
class TableOptimizeStats:
    """What was done to one table; `committed` is False if it moved meanwhile."""

    table_key: str
    fragments_removed: int
    fragments_added: int
    indexes_built: tuple[str, ...]
    committed: bool


@dataclass(frozen=True, slots=True)
class _Work:
    stats: TableOptimizeStats
    change: UpdateTable


def optimize(
    context: GraphContext, branch: str, *, actor: str | None
) -> tuple[TableOptimizeStats, ...]:
    """Compact and index every table of a branch that has need of it; at most one commit.

    Raises:
        BranchNotFound: there is none of that name.
        ConflictError: schema or branch moved meanwhile, or others were first every time.
    """
    ref, state = context.head(branch)
    requests = index_requests(state.snapshot)
    entries = tuple(state.snapshot.tables.values())
    with ThreadPoolExecutor(PARALLEL) as pool:
        done = pool.map(
            lambda entry: _optimize_table(context, entry, requests.get(entry.table_key, ())),
            entries,
        )
        work = {item.change.table_key: item for item in done if item is not None}
    changes = {key: item.change for key, item in work.items()}
    landed = publish_work(context, ref, state.snapshot, changes, "optimize", actor=actor)
    return tuple(_told(item, is_committed=key in landed) for key, item in sorted(work.items()))


def _told(item: _Work, *, is_committed: bool) -> TableOptimizeStats:
    return replace(item.stats, committed=is_committed)


def _optimize_table(
    context: GraphContext, entry: TableEntry, requests: Iterable[IndexRequest]
) -> _Work | None:
    before = context.table(entry.location, entry.physical_version)
    compacted = compact(before)
    table, built = build_indexes(before if compacted is None else compacted, requests)
    if table is before:
        return None
    fragments = table.count_fragments()
    stats = TableOptimizeStats(
        table_key=entry.table_key,
        fragments_removed=before.count_fragments() if compacted is not None else 0,
        fragments_added=fragments if compacted is not None else 0,
        indexes_built=built,
        committed=False,
    )
    operation = TableOperation.INDEX if compacted is None else TableOperation.COMPACTION
    return _Work(stats, UpdateTable.of(entry.table_key, table, operation))
