"""Everything that differs between two snapshots: they come in, a change set or its changes go out.

Tables are compared one after another. Counts are always those of all changes, whatever is listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from omnigraph_core.diff.model import EVERYTHING, ChangeSet, ChangeStats, TableChanges
from omnigraph_core.diff.rows import compare_tables
from omnigraph_core.diff.schemas import compare_schemas
from omnigraph_core.diff.tables import pair_tables
from omnigraph_core.job_report import job_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.compare.workers import Comparing
    from omnigraph_core.diff.model import ChangeFilter, EntityChange
    from omnigraph_core.diff.rows import TableDiff
    from omnigraph_core.diff.schemas import SchemaDifference
    from omnigraph_core.diff.tables import TablePair
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """Two snapshots and the tables that may differ; no table has been opened."""

    context: GraphContext
    before: Snapshot | None
    after: Snapshot
    filter: ChangeFilter
    pairs: tuple[TablePair, ...]
    schema: SchemaDifference
    workers: Comparing | None = None
    """Who compares rows; None: this process."""

    def iter_tables(self) -> Iterator[TableDiff]:
        """One table after another, compared when it is asked for."""
        return map(self._compared, self.pairs)

    def _compared(self, pair: TablePair) -> TableDiff:
        with job_facts(
            operation="diff",
            commit=_range(s.commit.graph_commit_id for s in self._sides),
            branch=_range(s.branch for s in self._sides),
            type=pair.type.table_key,
        ):
            return compare_tables(self.context, pair, self.filter, self.workers)

    @property
    def _sides(self) -> tuple[Snapshot, ...]:
        return (self.after,) if self.before is None else (self.before, self.after)

    def iter_changes(
        self,
        *,
        has_values: bool,
        limit: int | None = None,
        tables: Iterable[TableDiff] | None = None,
    ) -> Iterator[EntityChange]:
        """The changes, `limit` of them at most, read as they are asked for.

        Args:
            tables: what `iter_tables` gave, if it was asked before.
        """
        found = (
            table.iter_changes(self.after.manifest_version, has_values=has_values, most=limit)
            for table in (self.iter_tables() if tables is None else tables)
        )
        return islice(chain.from_iterable(found), limit)

    def change_set(
        self,
        *,
        has_values: bool,
        limit: int | None = None,
        tables: Iterable[TableDiff] | None = None,
    ) -> ChangeSet:
        """The changes, `limit` of them at most, and the counts of all.

        Args:
            tables: what `iter_tables` gave, if it was asked before.
        """
        changes: list[EntityChange] = []
        counts: list[TableChanges] = []
        for table in self.iter_tables() if tables is None else tables:
            counts.append(table.counts)
            room = None if limit is None else limit - len(changes)
            changes += table.iter_changes(
                self.after.manifest_version, has_values=has_values, most=room
            )
        return self._described(tuple(changes), counts)

    def _described(
        self, changes: tuple[EntityChange, ...], counts: list[TableChanges]
    ) -> ChangeSet:
        before, after = self.before, self.after
        stats = _stats(counts, self.schema.steps)
        is_one_branch = before is None or before.incarnation == after.incarnation
        return ChangeSet(
            from_version=0 if before is None else before.manifest_version,
            to_version=after.manifest_version,
            from_commit_id=None if before is None else before.commit.graph_commit_id,
            to_commit_id=after.commit.graph_commit_id,
            branch=after.branch if is_one_branch else None,
            changes=changes,
            stats=stats,
            is_complete=len(changes) == stats.total,
        )


def compare_snapshots(
    context: GraphContext,
    before: Snapshot | None,
    after: Snapshot,
    filter: ChangeFilter = EVERYTHING,
    *,
    is_successive: bool = False,
    workers: Comparing | None = None,
) -> SnapshotDiff:
    """What may differ between two snapshots, decided from their catalogs.

    Args:
        before: None stands for a graph without tables.
        is_successive: `after` is one commit later than `before`.
        workers: who compares rows; None: this process.
    """
    schema = compare_schemas(context, before, after)
    pairs = pair_tables(before, after, schema.continuity, filter, is_successive=is_successive)
    return SnapshotDiff(context, before, after, filter, pairs, schema, workers)


def _range(names: Iterable[str]) -> str:
    """Both sides, or the one that they have in common.

    >>> _range(["main", "review"]), _range(["main", "main"])
    ('main..review', 'main')
    """
    return "..".join(dict.fromkeys(names))


def _stats(counts: list[TableChanges], schema_steps: tuple[str, ...]) -> ChangeStats:
    tables: dict[str, TableChanges] = {}
    for item in counts:  # the name of a type that is gone may be that of another one
        known = tables.get(item.table_key, TableChanges(item.table_key))
        tables[item.table_key] = TableChanges(
            item.table_key,
            known.inserts + item.inserts,
            known.updates + item.updates,
            known.deletes + item.deletes,
        )
    changed = tuple(item for _, item in sorted(tables.items()) if item.total)
    return ChangeStats(
        inserts=sum(item.inserts for item in changed),
        updates=sum(item.updates for item in changed),
        deletes=sum(item.deletes for item in changed),
        types_affected=tuple(sorted({item.table_key.partition(":")[2] for item in changed})),
        tables=changed,
        schema_steps=schema_steps,
    )
