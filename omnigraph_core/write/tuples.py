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


class TupleCodes:
    """Codes of the tuples of some rows, and the means to find the same tuples among others.

    >>> known = TupleCodes([pa.chunked_array([["a", "b", "a"]]), pa.chunked_array([[1, None, 1]])])
    >>> known.codes
    array([ 0, -1,  0])
    >>> known.codes_of([pa.chunked_array([["b", "a"]]), pa.chunked_array([[1, 1]])])
    array([-1,  0])
    """

    __slots__ = ("_pairs", "codes", "values")

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        self.codes, values = _encoded(columns[0])
        self.values: list[pa.Array] = [values]
        """The distinct values of each column."""
        self._pairs: list[pa.Array] = []
        for column in columns[1:]:
            more, values = _encoded(column)
            pairs = _paired(self.codes, more, len(values))
            self.codes, known = _encoded(pa.chunked_array([pairs]))
            self.values.append(values)
            self._pairs.append(known)

    @property
    def count(self) -> int:
        """How many different tuples there are."""
        return len((self._pairs or self.values)[-1])

    def codes_of(self, columns: Sequence[pa.ChunkedArray]) -> np.ndarray:
        """The codes of the tuples of other rows, `NO_CODE` for those that are not among these."""
        codes = positions(columns[0], self.values[0])
        for column, values, known in zip(columns[1:], self.values[1:], self._pairs, strict=True):
            more = positions(column, values)
            codes = positions(_paired(codes, more, len(values)), known)
        return codes


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column so that values are equal exactly where the language says so.

    There is one zero, and a number that is not finite equals nothing.
    """
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.add(column, pa.scalar(0.0, column.type))  # minus zero plus zero is zero
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, column.type))


def first_rows(codes: np.ndarray, count: int) -> np.ndarray:
    """For each of so many codes the first row that has it, -1 where none has.

    >>> first_rows(np.array([2, 0, 2, -1]), 3)
    array([ 1, -1,  0])
    """
    first = np.full(count, -1)
    coded = np.flatnonzero(codes >= 0)[::-1]
    first[codes[coded]] = coded  # of several, the last one assigned stays
    return first


def earlier_rows(codes: np.ndarray, count: int) -> np.ndarray:
    """For each row the first with the same code if that is an earlier row, else -1.

    >>> earlier_rows(np.array([0, 1, 0, -1, -1]), 2)
    array([-1, -1,  0, -1, -1])
    """
    first = first_rows(codes, count)
    # A row without a code looks up the last code, so it is taken out by hand.
    earlier = first[codes] if count else np.full(len(codes), -1)
    earlier[(codes < 0) | (earlier == np.arange(len(codes)))] = -1
    return earlier


def positions(values: pa.Array | pa.ChunkedArray, among: pa.Array) -> np.ndarray:
    """Where each value is among others, -1 for one that is not."""
    found = pc.fill_null(pc.index_in(values, value_set=among), NO_CODE)
    numbers: np.ndarray = found.to_numpy().astype(np.int64)
    return numbers


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


def _encoded(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    if not len(column):
        return np.empty(0, dtype=np.int64), pa.array([], column.type)
    encoded = pc.dictionary_encode(column)  # all chunks share one dictionary
    parts = [
        pc.fill_null(chunk.indices, NO_CODE).to_numpy(zero_copy_only=False)
        for chunk in encoded.chunks
    ]
    return np.concatenate(parts).astype(np.int64), encoded.chunk(0).dictionary


def _paired(codes: np.ndarray, more: np.ndarray, count: int) -> pa.Array:
    """One number for two; null where one is missing."""
    # Both are less than the number of rows, so the product fits 64 bits.
    return pa.array(codes * count + more, mask=(codes < 0) | (more < 0))
