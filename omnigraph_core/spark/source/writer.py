"""Writing a data frame into a graph: tasks leave parts beside it, the driver loads them.

Every attempt of a task writes parts under names of its own, and only those that Spark reports are
loaded: a task that is tried again changes nothing. Until the one commit of the load nobody sees a
row. Whatever becomes of the job, its parts go; what a killed one leaves, cleanup removes.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from omnigraph_core.errors import StorageError
from omnigraph_core.spark.source.digest import hash_rows, join_hashes
from omnigraph_core.spark.source.told import told
from omnigraph_core.storage.places import shared_store
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.spark.source.options import WriteOptions

PART_BYTES: Final = 64 << 20
"""Of rows in memory, before they are packed: what a task holds at a time."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has left: names of its parts in order, and the sum of its rows' hashes."""

    parts: tuple[str, ...]
    row_hash: int
    row_count: int = 0


class OmnigraphWriter(DataSourceArrowWriter):
    """Writes rows of one type with one commit. Travels to executors as it is."""

    def __init__(self, options: WriteOptions, job: str) -> None:
        self._options = options
        self._job = job

    @told
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        has_key = self._options.idempotency_key is not None
        return write_parts(self._scratch, iterator, is_hashed=has_key)

    @told
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        # Here, because it brings the engine, which the tasks that write have no use for.
        from omnigraph_core.spark.source.landing import land

        written = [message for message in messages if isinstance(message, Written)]
        land(self._options, written, self._scratch)
        with contextlib.suppress(StorageError):  # the rows have landed; cleanup takes the parts
            self._scratch.clear()

    @told
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove every part, also those of attempts that failed."""
        self._scratch.clear()

    @property
    def _scratch(self) -> Scratch:
        return Scratch(shared_store(self._options.graph.address), self._job)


def write_parts(scratch: Scratch, batches: Iterator[pa.RecordBatch], *, is_hashed: bool) -> Written:
    """Leave the rows of a partition as parts beside a graph.

    Args:
        is_hashed: the load has a key, under which the same rows are known again.
    """
    parts: list[str] = []
    hashes: list[int] = []
    row_count = 0
    for rows in _gathered(batches):
        parts.append(scratch.put("rows", _packed(rows)))
        row_count += rows.num_rows
        if is_hashed:
            hashes += [hash_rows(batch) for batch in rows.to_batches()]
    return Written(tuple(parts), join_hashes(hashes), row_count)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches together, as many as make a part."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= PART_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(rows, sink, compression="zstd")
    return bytes(sink.getvalue())
