"""From checked rows to a staged table version.

Rows whose id is committed replace what is there; if none is, appending is enough and cheaper. That
is safe because a commit requires the version of every table it touches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.staged import stage_append, stage_replace

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.fragments import StagedFragments


def stage_rows(
    table: Table, data: pa.Table | StagedFragments, ids: pa.Array
) -> tuple[Table, TableOperation] | None:
    """Upsert rows; None when there are none.

    Args:
        ids: those ids of the rows that may be in the table already.
    """
    replaced = _addresses(table, ids)
    if replaced is None:
        appended = stage_append(table, data)
        return None if appended is None else (appended, TableOperation.APPEND)
    upserted = stage_replace(table, data, replaced)
    return None if upserted is None else (upserted, TableOperation.UPSERT)


def _addresses(table: Table, ids: pa.Array) -> pa.Array | None:
    if not len(ids) or not table.count_rows():
        return None
    found = find_rows(table, "id", ids, (), has_addresses=True).column(ADDRESS)
    return found.combine_chunks() if len(found) else None
