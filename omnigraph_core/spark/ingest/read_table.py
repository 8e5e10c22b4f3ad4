"""The keys of committed rows, by bucket: some fragments of a table come in, an object goes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.spark.ingest.buckets import put_keys
from omnigraph_core.spark.ingest.keys import columns_for, keys_of_table
from omnigraph_core.storage.portions import fragment_portions, read_fragments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.spark.ingest.model import Job, Keys
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.write.batches import GraphType

_ROWS: Final = 4_000_000
"""Rows of a task: their keys fit well into memory."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """Fragments of a committed table that one task reads the wanted keys of."""

    table_key: str
    location: str
    physical_version: int
    fragments: tuple[int, ...]
    wanted: tuple[str, ...]


def table_parts(table_key: str, table: Table, wanted: Sequence[str]) -> Iterator[TablePart]:
    """A table in parts of a good size."""
    for fragments in fragment_portions(table, _ROWS):
        yield TablePart(table_key, table.location, table.physical_version, fragments, tuple(wanted))


def read_table_part(job: Job, part: TablePart) -> Keys:
    """The wanted keys of the rows of some fragments."""
    type = graph_type(job, part.table_key)
    table = job.open_at(part.location, part.physical_version)
    columns = columns_for(part.table_key, type, part.wanted)
    rows = read_fragments(table, part.fragments, columns, has_addresses=True)
    keys = keys_of_table(rows, part.table_key, type, part.wanted, job.bucket_count)
    return put_keys(job.scratch, "table", keys, job.bucket_count)


def graph_type(job: Job, table_key: str) -> GraphType:
    kind, _, name = table_key.partition(":")
    return job.catalog.nodes[name] if kind == "node" else job.catalog.edges[name]
