"""Optimize: fewer, fuller files and complete indexes, the same rows.

The work is staged beside running writers and published as one commit. A table that moved meanwhile
is left for the next time: its work would be based on rows that are no longer current.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import VersionConflict
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.door import commit
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.indexes import IndexKind, physical_indexes
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import EdgeType, NodeType
    from omnigraph_core.storage.dataset import Table

_PARALLEL: Final = 2

_SEGMENTS: Final = {
    IndexKind.BTREE: SegmentKind.BTREE,
    IndexKind.INVERTED: SegmentKind.INVERTED,
    IndexKind.VECTOR: SegmentKind.IVF_FLAT,
}


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
    with ThreadPoolExecutor(_PARALLEL) as pool:
        done = pool.map(
            lambda entry: _optimize_table(context, entry, requests.get(entry.table_key, ())),
            entries,
        )
        work = {item.change.table_key: item for item in done if item is not None}
    left = dict(work)
    while left:
        draft = CommitDraft(
            changes=tuple(item.change for item in left.values()),
            requirements=requirements_of(state.snapshot, touched=left),
            operation="optimize",
            actor=actor,
        )
        try:
            context.remember(commit(context.commits, ref, draft))
            break
        except VersionConflict as moved:
            left.pop(moved.table_key)
    return tuple(_told(item, is_committed=key in left) for key, item in sorted(work.items()))


def _told(item: _Work, *, is_committed: bool) -> TableOptimizeStats:
    return replace(item.stats, committed=is_committed)


def index_requests(snapshot: Snapshot) -> dict[str, tuple[IndexRequest, ...]]:
    """The indexes the accepted schema asks for, by table key."""
    catalog = accepted_catalog(snapshot.schema)
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {
        type.table_key: tuple(
            IndexRequest(
                column=spec.columns[0],
                kind=_SEGMENTS[spec.kind],
                name=f"{spec.columns[0]}_{spec.kind.lower()}",
                metric=Metric.COSINE if spec.kind is IndexKind.VECTOR else None,
            )
            for spec in physical_indexes(type)
        )
        for type in types
    }


def _optimize_table(
    context: GraphContext, entry: TableEntry, requests: Iterable[IndexRequest]
) -> _Work | None:
    before = context.table(entry.location, entry.physical_version)
    compacted = compact(before)
    table: Table = before if compacted is None else compacted
    built = []
    for request in requests:
        indexed = stage_index(table, request)
        if indexed is not None:
            table = indexed
            built.append(request.name)
    if table is before:
        return None
    fragments = table.count_fragments()
    stats = TableOptimizeStats(
        table_key=entry.table_key,
        fragments_removed=before.count_fragments() if compacted is not None else 0,
        fragments_added=fragments if compacted is not None else 0,
        indexes_built=tuple(built),
        committed=False,
    )
    operation = TableOperation.INDEX if compacted is None else TableOperation.COMPACTION
    return _Work(stats, UpdateTable.of(entry.table_key, table, operation))
