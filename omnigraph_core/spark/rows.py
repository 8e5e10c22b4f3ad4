"""Rows as blocks that tasks exchange: tables come in and go out, of a schema that both sides know.

A block is a record batch without its schema, which would be larger than the few rows that one task
has for one partition.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.spark.blocks import Blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.spark.blocks import Received


def spread_rows(section: int, rows: pa.Table, at: np.ndarray, partitions: int) -> Blocks:
    """Rows for the partition that each of them is for; those of one stay in their order."""
    at = at.astype(np.min_scalar_type(partitions))  # small numbers are sorted far faster
    order = np.argsort(at, kind="stable")
    ends = np.searchsorted(at[order], np.arange(partitions + 1, dtype=at.dtype)).tolist()
    return row_blocks(section, rows.take(pa.array(order)), ends)


def row_blocks(section: int, rows: pa.Table, ends: Sequence[int]) -> Blocks:
    """Rows by partition: from `ends[p]` to `ends[p + 1]` they are for partition p."""
    whole = rows.combine_chunks()
    blocks = [_packed(whole.slice(start, end - start)) for start, end in pairwise(ends)]
    bounds = np.cumsum([0, *map(len, blocks)])
    return Blocks(section, bounds, b"".join(blocks))


def received_rows(received: Received, section: int, schema: pa.Schema) -> pa.Table:
    """The rows of a section, those of each task in its order."""
    blocks = [pa.py_buffer(block) for _, block in received.get(section, ())]
    batches = [pa.ipc.read_record_batch(block, schema) for block in blocks]
    return pa.Table.from_batches(batches, schema).combine_chunks()


def _packed(rows: pa.Table) -> pa.Buffer | bytes:
    if not rows.num_rows:
        return b""
    (batch,) = rows.to_batches()
    return batch.serialize()
