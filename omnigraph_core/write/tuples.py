"""Equality of values and tuples as numbers: columns come in, a code per row goes out.

Equal tuples have equal codes, different ones different codes, whatever the values contain; a tuple
with a null in it has no code, because it equals nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_CODE: Final = -1


def tuple_codes(columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
    """A number per row, `NO_CODE` where a member is null.

    >>> tuple_codes([pa.chunked_array([["a", "b", "a"]]), pa.chunked_array([[1, None, 1]])])
    array([ 0, -1,  0])
    """
    codes, _ = _codes(columns[0])
    for column in columns[1:]:
        more, distinct = _codes(column)
        # Both are less than the number of rows, so the product fits 64 bits.
        pairs = np.where((codes < 0) | (more < 0), NO_CODE, codes * distinct + more)
        codes, _ = _codes(pa.chunked_array([pa.array(pairs, mask=pairs < 0)]))
    return codes


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column so that values are equal exactly where the language says so.

    There is one zero, and a number that is not finite equals nothing.
    """
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.add(column, pa.scalar(0.0, column.type))  # minus zero plus zero is zero
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, column.type))


def first_rows(codes: np.ndarray) -> np.ndarray:
    """For each row the first row with the same code; a row without a code is its own.

    >>> first_rows(np.array([0, 1, 0, -1, -1]))
    array([0, 1, 0, 3, 4])
    """
    result = np.arange(len(codes))
    coded = np.flatnonzero(codes >= 0)
    if len(coded):
        first = np.empty(int(codes.max()) + 1, dtype=np.int64)
        first[codes[coded][::-1]] = coded[::-1]  # of several, the last one assigned stays
        result[coded] = first[codes[coded]]
    return result


def chosen(column: pa.ChunkedArray, mask: np.ndarray) -> pa.ChunkedArray:
    """The values where the mask is true; the column itself where it is so throughout."""
    return column if mask.all() else column.filter(pa.array(mask))


def without(values: pa.Array, excluded: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values that are not among the excluded ones."""
    if not len(excluded) or not len(values):
        return values
    return values.filter(pc.invert(pc.is_in(values, value_set=excluded)))


def distinct(values: pa.ChunkedArray) -> pa.Array:
    """Each value once, in order of appearance; no null."""
    return pc.drop_null(pc.unique(values))


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    if not len(column):
        return np.empty(0, dtype=np.int64), 0
    encoded = pc.dictionary_encode(column)  # all chunks share one dictionary
    parts = [
        pc.fill_null(chunk.indices, NO_CODE).to_numpy(zero_copy_only=False)
        for chunk in encoded.chunks
    ]
    return np.concatenate(parts).astype(np.int64), len(encoded.chunk(0).dictionary)
