"""Rows that a merge brings, written to the target's table: a decided merge in, a version out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.storage.staged import stage_delete_addresses, stage_replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.storage.dataset import Table

PORTION_ROWS: Final = 8192
"""Rows that are written at a time."""


def stage_rows(merge: RowMerge, table: Table) -> Table | None:
    """Write what the source brings on top of the target's table; None if that is nothing.

    Args:
        table: the target's, in the columns of the merged type and with its rows where they were.
    """
    leaving = pa.array(merge.writes.leaving, pa.uint64())
    if not len(merge.writes.taken) and not len(merge.writes.combined):
        return stage_delete_addresses(table, leaving)
    return stage_replace(table, written_rows(merge.ours.schema, merge.iter_rows()), leaving)


def written_rows(schema: pa.Schema, portions: Iterable[pa.Table]) -> pa.RecordBatchReader:
    """Rows as a table takes them, few at a time."""

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in portions:
            yield from rows.to_batches(max_chunksize=PORTION_ROWS)

    return pa.RecordBatchReader.from_batches(schema, batches())
