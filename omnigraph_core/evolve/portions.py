"""All rows of a view, read in bounded batches, and passes over them that need bounded memory.

Rows with equal values fall into the same pass, whatever the values are, so what is found within
each pass is what there is in the whole table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.constants import COMPARE_ROWS
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.version_rows import OwnRows
from omnigraph_core.topology.text_hash import hash_texts
from omnigraph_core.write.tuples import comparable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.compare.view import RowView

_JOINED_ROWS: Final = 1_048_576
"""Rows that are looked at together."""

_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)


def iter_rows(view: RowView, columns: Sequence[str]) -> Iterator[pa.Table]:
    """These columns of every row, in bounded batches."""
    states = fragment_states(view.table)
    everything = OwnRows(
        tuple(state.id for state in states),
        np.zeros(0, np.uint64),
        sum(state.rows for state in states),
    )
    for rows in view.iter_own(everything, columns):
        yield rows.drop_columns(ADDRESS)


def count_passes(rows: int) -> int:
    """How many passes it takes so that each has about as many rows as fit in memory."""
    return max(1, -(-rows // COMPARE_ROWS.value))


def iter_pass(
    view: RowView, columns: Sequence[str], by: Sequence[str], number: int, passes: int
) -> Iterator[pa.Table]:
    """The rows of one pass, many together: what is done with them costs more than reading them.

    Args:
        by: the columns whose values say which pass a row belongs to.
    """
    waiting: list[pa.Table] = []
    for rows in iter_rows(view, columns):
        waiting.append(in_pass(rows, by, number, passes))
        if sum(part.num_rows for part in waiting) >= _JOINED_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def in_pass(rows: pa.Table, columns: Sequence[str], number: int, passes: int) -> pa.Table:
    """The rows of one pass: those without a null in these columns, by the values there."""
    chosen = [comparable(rows.column(name)) for name in columns]
    keep = np.ones(rows.num_rows, np.bool_)
    for column in chosen:
        if column.null_count:
            keep &= pc.is_valid(column).to_numpy()
    if passes > 1:
        keep &= _spread(chosen) % np.uint64(passes) == number
    return rows if keep.all() else rows.filter(pa.array(keep))


def _spread(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """A number for each row, the same for equal values."""
    total = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        total = (total ^ _numbers(column.combine_chunks())) * _MIXER
        total ^= total >> _HALF
    return total


def _numbers(column: pa.Array) -> np.ndarray:
    if pa.types.is_string(column.type):
        return hash_texts(column)
    if pa.types.is_floating(column.type):
        values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False)
        bits: np.ndarray = values.astype(np.float64).view(np.uint64)
        return bits
    if pa.types.is_date32(column.type):
        column = column.view(pa.int32())
    elif pa.types.is_date64(column.type):
        column = column.view(pa.int64())
    values = pc.fill_null(column, pa.scalar(0).cast(column.type))
    numbers: np.ndarray = values.to_numpy(zero_copy_only=False).astype(np.uint64)
    return numbers
