"""The indexes a schema asks for: built where they are missing, and how much each covers.

The work is staged beside running writers and published as one commit. A table that moved meanwhile
is left for the next time: its work would be based on rows that are no longer current. No answer
depends on an index, so none is ever waited for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import VersionConflict
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.history.door import commit
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import MAIN, TableOperation
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.schema.indexes import IndexKind, physical_indexes
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.segments import IndexRequest, Metric, SegmentKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from omnigraph_core.engine.workers import Indexed, Wanted, Workers
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import EdgeType, NodeType
    from omnigraph_core.storage.dataset import Table

PARALLEL: Final = 2
"""Tables that are worked on at a time."""

_SEGMENTS: Final = {
    IndexKind.BTREE: SegmentKind.BTREE,
    IndexKind.BITMAP: SegmentKind.BITMAP,
    IndexKind.LABEL_LIST: SegmentKind.LABEL_LIST,
    IndexKind.INVERTED: SegmentKind.INVERTED,
    IndexKind.VECTOR: SegmentKind.IVF_FLAT,
}


class IndexState(StrEnum):
    COMPLETE = "complete"
    """Every row is covered."""
    PARTIAL = "partial"
    """Rows that were added since are not covered yet."""
    PENDING = "pending"
    """There is no index, or nothing it could be made from."""


@dataclass(frozen=True, slots=True)
class IndexReport:
    """One index the schema asks for, and what it covers at a snapshot.

    `is_built` says that the call which reports this has added to it.
    """

    table_key: str
    name: str
    column: str
    kind: str
    state: IndexState
    rows: int
    covered_rows: int
    segments: int
    is_inherited: bool
    """The table is as another branch made it; that branch builds its indexes."""
    is_built: bool = False

    def to_json(self) -> dict[str, object]:
        return {
            "table_key": self.table_key,
            "name": self.name,
            "column": self.column,
            "kind": self.kind,
            "state": str(self.state),
            "rows": self.rows,
            "covered_rows": self.covered_rows,
            "segments": self.segments,
            "is_inherited": self.is_inherited,
            "is_built": self.is_built,
        }


def index_status(
    context: GraphContext, snapshot: Snapshot, tables: Collection[str] | None = None
) -> tuple[IndexReport, ...]:
    """What every index the schema asks for covers, by table and column.

    Args:
        tables: the keys of those to look at; all by default.
    """
    requests = index_requests(snapshot)
    chosen = snapshot.tables if tables is None else tables
    entries = [snapshot.tables[key] for key in chosen if requests.get(key)]
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = pool.map(
            lambda entry: _reports(
                entry,
                context.table(entry.location, entry.physical_version),
                requests[entry.table_key],
                is_inherited=_is_inherited(entry, snapshot.branch),
            ),
            entries,
        )
        return tuple(report for reports in found for report in reports)


def ensure_indices(
    context: GraphContext, branch: str, *, actor: str | None, workers: Workers | None = None
) -> tuple[IndexReport, ...]:
    """Build what is missing of every declared index of a branch; at most one commit.

    Args:
        workers: who builds; by default threads of this process.

    Raises:
        BranchNotFound: there is none of that name.
        ConflictError: schema or branch moved meanwhile, or others were first every time.
    """
    ref, state = context.head(branch)
    snapshot = state.snapshot
    requests = index_requests(snapshot)
    entries = [
        entry
        for key, entry in snapshot.tables.items()
        if requests.get(key) and not _is_inherited(entry, ref.branch)
    ]
    tables = open_tables(context, entries)
    wanted = [(table, requests[e.table_key]) for table, e in zip(tables, entries, strict=True)]
    with job_facts(commit=snapshot.commit.graph_commit_id, tables=snapshot.table_keys):
        done = _build_in_threads(wanted) if workers is None else workers.index(wanted)
    work = {
        entry.table_key: (table, names)
        for entry, (table, names) in zip(entries, done, strict=True)
        if names
    }
    changes = {
        key: UpdateTable.of(key, table, TableOperation.INDEX) for key, (table, _) in work.items()
    }
    landed = publish_work(context, ref, snapshot, changes, "ensure_indices", actor=actor)
    after = context.base(branch)[1].snapshot if landed else snapshot
    built = {(key, name) for key in landed for name in work[key][1]}
    return tuple(
        replace(report, is_built=(report.table_key, report.name) in built)
        for report in index_status(context, after)
    )


def open_tables(context: GraphContext, entries: Sequence[TableEntry]) -> list[Table]:
    """The tables that a snapshot names, to stage on."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        opened = pool.map(lambda e: context.table(e.location, e.physical_version), entries)
        return list(opened)


def _build_in_threads(wanted: Sequence[Wanted]) -> list[Indexed]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(lambda item: build_indexes(*item), wanted))


def publish_work(
    context: GraphContext,
    ref: BranchRef,
    snapshot: Snapshot,
    changes: Mapping[str, UpdateTable],
    operation: str,
    *,
    actor: str | None,
) -> frozenset[str]:
    """Commit new versions that hold the same rows; the tables whose version has landed.

    Those that moved since the snapshot are left out.
    """
    left = dict(changes)
    while left:
        draft = CommitDraft(
            changes=tuple(left.values()),
            requirements=requirements_of(snapshot, touched=left),
            operation=operation,
            actor=actor,
        )
        try:
            context.remember(commit(context.commits, ref, draft))
            break
        except VersionConflict as moved:
            left.pop(moved.table_key)
    return frozenset(left)


def build_indexes(table: Table, requests: Iterable[IndexRequest]) -> Indexed:
    """The table with every requested index completed, and the names of those that were not."""
    built = []
    for request in requests:
        indexed = stage_index(table, request)
        if indexed is not None:
            table = indexed
            built.append(request.name)
    return table, tuple(built)


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


def _is_inherited(entry: TableEntry, branch: str) -> bool:
    # What main has taken over from a branch is nobody else's to look after.
    return branch != MAIN and (entry.branch or MAIN) != branch


def _reports(
    entry: TableEntry, table: Table, requests: Iterable[IndexRequest], *, is_inherited: bool
) -> list[IndexReport]:
    known = {coverage.name: coverage for coverage in index_coverage(table)}
    reports = []
    for request in requests:
        coverage = known.get(request.name)
        covered = 0 if coverage is None else entry.row_count - coverage.unindexed_rows
        state = IndexState.PENDING
        if coverage is not None and coverage.indexed_fragments:
            state = IndexState.PARTIAL if coverage.unindexed_rows else IndexState.COMPLETE
        reports.append(
            IndexReport(
                table_key=entry.table_key,
                name=request.name,
                column=request.column,
                kind=str(request.kind if coverage is None else coverage.kind),
                state=state,
                rows=entry.row_count,
                covered_rows=covered,
                segments=0 if coverage is None else coverage.segment_count,
                is_inherited=is_inherited,
            )
        )
    return reports
