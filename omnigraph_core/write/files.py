"""Rows on their way to disk: batches come in, files nobody refers to yet go out.

Rows are gathered per table until a file is worth writing, and written beside the reading of the
next ones. Memory is bounded: two files in the making at most.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.storage.fragments import combine, write_append

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.fragments import StagedFragments
    from omnigraph_core.write.batches import GraphType

_LEAST_BYTES: Final = 32 * 2**20
_MOST_BYTES: Final = 256 * 2**20
_ALL_BYTES: Final = 256 * 2**20
"""What waits in all tables together."""
_GROWTH: Final = 4
"""A file holds at least one part in so many of what was written before it: files stay few."""


class TableFiles:
    """Writes the files of one load. A context manager: leaving it waits for what is under way."""

    def __init__(
        self, open_table: Callable[[str], Table], on_written: Callable[[int], None]
    ) -> None:
        self._open_table = open_table
        self._on_written = on_written
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._tables: dict[str, Table] = {}
        self._waiting: dict[str, list[pa.Table]] = {}
        self._waiting_bytes: dict[str, int] = {}
        self._written: dict[str, list[Future[StagedFragments]]] = {}
        self._under_way: list[Future[StagedFragments]] = []
        self._flushed_bytes: dict[str, int] = {}

    def __enter__(self) -> TableFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=problem is not None)

    def add(self, type: GraphType, rows: pa.Table) -> None:
        """Take rows with the columns of the type's table, or more."""
        key = type.table_key
        if key not in self._tables:
            self._tables[key] = self._open_table(key)
            self._written[key], self._waiting[key] = [], []
        columns = rows.select(table_schema(type).names)
        self._waiting[key].append(columns)
        self._waiting_bytes[key] = self._waiting_bytes.get(key, 0) + columns.nbytes
        enough = min(_MOST_BYTES, self._flushed_bytes.get(key, 0) // _GROWTH)
        if self._waiting_bytes[key] >= max(_LEAST_BYTES, enough):
            self._flush(key)
        elif sum(self._waiting_bytes.values()) > _ALL_BYTES:
            self._flush(max(self._waiting_bytes, key=self._waiting_bytes.__getitem__))

    def finish(self) -> dict[str, StagedFragments]:
        """The files of every table that got rows."""
        for key in self._tables:
            self._flush(key)
        return {
            key: combine(self._tables[key], [part.result() for part in parts])
            for key, parts in self._written.items()
        }

    def _flush(self, key: str) -> None:
        parts, self._waiting[key] = self._waiting[key], []
        if not parts:
            return
        size = self._waiting_bytes.pop(key)
        self._flushed_bytes[key] = self._flushed_bytes.get(key, 0) + size
        if len(self._under_way) > 1:
            self._under_way.pop(0).result()  # wait, so that memory stays bounded
        future = self._pool.submit(self._write, self._tables[key], pa.concat_tables(parts))
        self._under_way.append(future)
        self._written[key].append(future)

    def _write(self, table: Table, rows: pa.Table) -> StagedFragments:
        written = write_append(table, rows)
        self._on_written(rows.num_rows)
        return written
