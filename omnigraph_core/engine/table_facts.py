"""What can be told of tables without reading a row: the size of their files, what indexes cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.engine.indexing import index_status
from omnigraph_core.storage.row_space import stored_bytes

if TYPE_CHECKING:
    from collections.abc import Collection

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.manifest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TableFacts:
    """`stored_bytes` is None where a file does not tell its size."""

    stored_bytes: int | None
    index_coverage: float | None
    """How much of its rows the indexes cover that the schema asks for; None if it asks for none."""


def table_facts(
    graph: Omnigraph, snapshot: Snapshot, table_keys: Collection[str]
) -> dict[str, TableFacts]:
    """By table key; takes as long as opening these tables."""
    context = graph._context
    reports = index_status(context, snapshot, table_keys)
    found = {}
    for key in table_keys:
        entry = snapshot.table(key)
        own = [report for report in reports if report.table_key == key]
        rows = sum(report.rows for report in own)
        covered = sum(report.covered_rows for report in own)
        found[key] = TableFacts(
            stored_bytes(context.table(entry.location, entry.physical_version)),
            (covered / rows if rows else 1.0) if own else None,
        )
    return found
