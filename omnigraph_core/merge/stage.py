"""From a decided merge to staged table versions and the changes that publish them.

Each table gets at most one version more than the target's that anybody sees. A table under another
key than before is renamed; one that the source dropped goes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.evolve.tables import evolve_table
from omnigraph_core.failpoints import declare
from omnigraph_core.manifest.changes import (
    AdoptTable,
    RenameTable,
    TombstoneTable,
    UpdateTable,
)
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.merge.model import TableDisposition
from omnigraph_core.merge.stage_rows import stage_rows
from omnigraph_core.storage.staged import stage_delete_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.merge.sides import Side
    from omnigraph_core.merge.work import Sides, TableWork
    from omnigraph_core.storage.dataset import Table

    _Stage: TypeAlias = Callable[[RowMerge, Table], Table | None]

_SOME = declare("merge.after_table", "one more table of a merge is staged, others are not")


def stage_tables(works: Sequence[TableWork], sides: Sides) -> tuple[Change, ...]:
    """Write what the target lacks, and say what makes it visible."""
    changes: list[Change] = []
    staying = {work.key for work in works if work.disposition is not TableDisposition.REMOVED}
    present = set(sides.ours.snapshot.tables)
    for work in works:
        if work.disposition is TableDisposition.REMOVED:
            continue
        if work.disposition is TableDisposition.ADOPTED:
            changes.append(_adopted(work, sides.theirs))
        else:
            stage = stage_rows if sides.workers is None else sides.workers.stage_rows
            changes += _own(work, sides.ours, staying, stage)
    renamed = {change.old_key for change in changes if isinstance(change, RenameTable)}
    gone = sorted(present - staying - renamed)
    return (*changes, *(TombstoneTable(key) for key in gone))


def _adopted(work: TableWork, theirs: Side) -> AdoptTable:
    entry = work.case.theirs
    if entry is None:
        raise InvariantBroken("what is adopted is there")
    placed = replace(entry, table_key=work.key)
    if theirs.is_in_shape(entry):
        return AdoptTable(placed, theirs.snapshot.read_at)
    evolved = _evolved(theirs, entry, theirs.open(entry))
    return AdoptTable(_at(placed, evolved), min(theirs.snapshot.read_at, evolved.staged_since))


def _own(work: TableWork, ours: Side, staying: set[str], stage: _Stage) -> list[Change]:
    """A table of the target: as it is, in other columns, or with rows of the source."""
    entry = work.case.ours
    if entry is None:
        raise InvariantBroken("the target keeps what it has")
    staged = _staged(work, ours, entry, stage)
    update = None
    if staged is not None:
        is_merge = work.disposition is TableDisposition.MERGED
        operation = TableOperation.MERGE if is_merge else TableOperation.SCHEMA
        update = UpdateTable.of(work.key, staged, operation)
    if entry.table_key == work.key:
        return [] if update is None else [update]
    if work.key not in ours.snapshot.tables and entry.table_key not in staying:
        return [RenameTable(entry.table_key, work.key, update)]
    # One of the two names belongs to another table, too, before or after the merge.
    placed = replace(entry, table_key=work.key)
    if staged is None:
        return [AdoptTable(placed, ours.snapshot.read_at)]
    return [AdoptTable(_at(placed, staged), staged.staged_since)]


def _staged(work: TableWork, ours: Side, entry: TableEntry, stage: _Stage) -> Table | None:
    """The target's table with what it lacks; None if that is nothing."""
    rows = None if work.rows is None or work.rows.writes.is_empty else work.rows
    is_in_shape = ours.is_in_shape(entry)
    if is_in_shape and rows is None:
        return None
    before = table = ours.open(entry)
    if not is_in_shape:
        if rows is not None:
            # What goes may lack what the merged type asks for. The rest stays where it was.
            leaving = rows.writes.leaving
            table = stage_delete_addresses(table, pa.array(leaving, pa.uint64())) or table
            rows = replace(rows, writes=replace(rows.writes, leaving=leaving[:0]))
        table = _evolved(ours, entry, table)
    if rows is not None:
        table = stage(rows, table) or table
    if table.physical_version == before.physical_version:
        return None
    _SOME.hit()
    return table


def _evolved(side: Side, entry: TableEntry, table: Table) -> Table:
    """A version of a side's table in the columns of the merged type."""
    after = side.merged_type(entry)
    if after is None:
        raise InvariantBroken(f"the merged schema has a type for `{entry.table_key}`")
    return evolve_table(table, after, side.sources(entry, after)) or table


def _at(entry: TableEntry, table: Table) -> TableEntry:
    return replace(
        entry,
        physical_version=table.physical_version,
        row_count=table.count_rows(),
        fragment_count=table.count_fragments(),
    )
