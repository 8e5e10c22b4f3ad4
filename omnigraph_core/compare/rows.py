"""Equality of rows of two versions, pair by pair: addresses come in, a yes or no each goes out.

Columns that cost little are compared first, and the others only of pairs that are equal so far.
Rows are read in portions of bounded size, of both versions alike; of blobs first the lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.equality import equal_columns
from omnigraph_core.interruption import pause
from omnigraph_core.storage.blob_content import BlobColumn, equal_blobs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.compare.view import RowView


def equal_rows(
    a: RowView,
    a_addresses: np.ndarray,
    b: RowView,
    b_addresses: np.ndarray,
    columns: Sequence[str] | None = None,
) -> np.ndarray:
    """Whether the rows of each pair are equal, in these columns or in all."""
    names = a.columns if columns is None else columns
    is_same = np.ones(len(a_addresses), np.bool_)
    for tier in _tiers(a, names):
        places = np.flatnonzero(is_same)
        if len(places) and tier:
            # Rows that were written one after another are read together.
            places = places[np.argsort(b_addresses[places], kind="stable")]
            is_blob = pa.types.is_large_binary(a.schema.field(tier[0]).type)
            compared = _equal_blobs if is_blob else _equal
            is_same[places] = compared(a, a_addresses[places], b, b_addresses[places], tier)
    return is_same


def _tiers(view: RowView, columns: Sequence[str]) -> Iterator[list[str]]:
    """Columns by what they cost: short ones, lists, then one blob after another."""
    types = {name: view.schema.field(name).type for name in columns}
    blobs = [name for name, type in types.items() if pa.types.is_large_binary(type)]
    lists = [name for name, type in types.items() if pa.types.is_nested(type)]
    yield [name for name in types if name not in blobs and name not in lists]
    yield lists
    for name in blobs:
        yield [name]


def _equal(
    a: RowView,
    a_addresses: np.ndarray,
    b: RowView,
    b_addresses: np.ndarray,
    columns: Sequence[str],
) -> np.ndarray:
    found = []
    sides = a.iter_taken(a_addresses, columns), b.iter_taken(b_addresses, columns)
    for mine, other in _iter_side_by_side(*sides):
        pause()
        found.append(np.logical_and.reduce(list(equal_columns(mine, other).values())))
    return np.concatenate(found)


def _equal_blobs(
    a: RowView,
    a_addresses: np.ndarray,
    b: RowView,
    b_addresses: np.ndarray,
    columns: Sequence[str],
) -> np.ndarray:
    (column,) = columns
    sides = _blobs(a, column, a_addresses), _blobs(b, column, b_addresses)
    return equal_blobs(*sides, len(a_addresses))


def _blobs(view: RowView, column: str, addresses: np.ndarray) -> BlobColumn | None:
    stored = view.stored(column).name
    return None if stored is None else BlobColumn(view.table, stored, addresses)


def _iter_side_by_side(
    a: Iterator[pa.Table], b: Iterator[pa.Table]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The same rows of both, whatever the portions that each comes in."""
    mine, other = next(a, None), next(b, None)
    while mine is not None and other is not None:
        count = min(mine.num_rows, other.num_rows)
        yield mine.slice(0, count), other.slice(0, count)
        mine = mine.slice(count) if count < mine.num_rows else next(a, None)
        other = other.slice(count) if count < other.num_rows else next(b, None)
