"""Vectors scaled to length 1, one row per dense number: what cosine distances are computed from.

A column of vectors comes in, a float32 matrix and a mask go out. A null vector, and one without a
direction, is a row of zeros that the mask leaves out. Rows other versions have are taken over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.row_space import read_fragments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.columns import Column, ColumnMaker
    from omnigraph_core.topology.reuse import Part
    from omnigraph_core.topology.row_numbers import RowNumbers

_PORTION_ITEMS: Final = 2**20
"""Numbers that are scaled at a time: their squares are summed in double precision."""


class Matrix:
    """The scaled vectors of one version."""

    __slots__ = ("mask", "rows", "states")

    def __init__(
        self, rows: np.ndarray, mask: np.ndarray, states: tuple[FragmentState, ...]
    ) -> None:
        self.rows = rows
        self.mask = mask
        self.states = states

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.mask.nbytes) + 500


def build_matrix(
    table: Table, rows: RowNumbers, maker: ColumnMaker, name: str, column: Column | None
) -> Matrix:
    """The matrix of a column of vectors.

    Args:
        column: the same column of this version if it is kept: nothing is read then.

    Raises:
        InvariantBroken: the column has no vectors.
    """
    kind = table.schema.field(name).type
    if not pa.types.is_fixed_size_list(kind):
        raise InvariantBroken(f"`{name}` of `{table.location}` has vectors")
    scaled = np.zeros((rows.count, kind.list_size), np.float32)
    mask = np.zeros(rows.count, np.bool_)
    start = 0
    for part in maker.parts("matrix", name):
        end = start + part.length
        if part.source is not None:
            _take_over(cast("Matrix", part.source), part, scaled[start:end], mask[start:end])
        else:
            arrays = _vectors(table, name, part, start, column)
            _scale(arrays, scaled[start:end], mask[start:end])
        start = end
    scaled.flags.writeable = mask.flags.writeable = False
    return Matrix(scaled, mask, rows.states)


def _take_over(source: Matrix, part: Part, scaled: np.ndarray, mask: np.ndarray) -> None:
    runs = part.runs()
    if runs is None and part.places is not None:
        scaled[:] = source.rows.take(part.places, axis=0)
        mask[:] = source.mask.take(part.places)
    done = 0
    for start, end in runs or ():
        scaled[done : done + end - start] = source.rows[start:end]
        mask[done : done + end - start] = source.mask[start:end]
        done += end - start


def _vectors(
    table: Table, name: str, part: Part, start: int, column: Column | None
) -> Iterable[pa.FixedSizeListArray]:
    if column is not None:
        return [column.array.slice(start, part.length)]
    return (batch.column(0) for batch in read_fragments(table, [name], part.fragments))


def _scale(arrays: Iterable[pa.FixedSizeListArray], scaled: np.ndarray, mask: np.ndarray) -> None:
    done = 0
    for values, is_valid in _portions(arrays, scaled.shape[1]):
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values, dtype=np.float64))
        usable = is_valid & (lengths > 0) & np.isfinite(lengths)
        end = done + len(values)
        mask[done:end] = usable
        divisors = np.where(usable, lengths, 1.0)[:, None]
        np.divide(
            values, divisors, out=scaled[done:end], where=usable[:, None], casting="same_kind"
        )
        done = end


def _portions(
    arrays: Iterable[pa.FixedSizeListArray], dimension: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The numbers of some vectors at a time, as they are in memory, and which are not null."""
    count = max(1, _PORTION_ITEMS // max(dimension, 1))
    for array in arrays:
        for start in range(0, len(array), count):
            piece = array.slice(start, count)
            first, end = piece.offset * dimension, (piece.offset + len(piece)) * dimension
            items = piece.values.slice(first, end - first)
            numbers = items.fill_null(np.nan) if items.null_count else items
            values = numbers.to_numpy().reshape(len(piece), dimension)
            yield values, np.asarray(piece.is_valid().to_numpy(zero_copy_only=False), np.bool_)
