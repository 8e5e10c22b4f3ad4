"""Rows of some fragments that a filter lets through: what one of many readers of a table reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.interruption import pause
from omnigraph_core.storage.blob_columns import plain_rows
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from omnigraph_core.storage.dataset import Table

_BATCH_ROWS: Final = 32_768
_BATCH_BYTES: Final = 32 << 20
"""Of a batch, about: rows may be wide."""


def iter_found(
    table: Table, columns: Sequence[str], fragment_ids: Sequence[int], where: str | None
) -> Iterator[pa.RecordBatch]:
    """The live rows of these fragments that a filter in Lance's SQL holds for; all without one.

    Raises:
        ObjectNotFound: the files are gone.
    """
    wanted = set(fragment_ids)
    blobs = table.blobs_of(columns)
    with translated("reading", table.uri):
        scanner = table.dataset.scanner(
            columns=list(columns),
            filter=where,
            fragments=[f for f in table.dataset.get_fragments() if f.fragment_id in wanted],
            batch_size=_BATCH_ROWS,
            batch_size_bytes=_BATCH_BYTES,
            blob_handling="all_binary" if blobs else None,
        )
        for batch in scanner.to_batches():
            pause()
            yield plain_rows(batch, blobs)
