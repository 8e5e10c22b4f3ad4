"""Equality of rows of two versions, pair by pair: addresses come in, a yes or no each goes out.

Columns in which rows differ are looked for first, and the others read only of pairs that are equal
so far. Rows are read in portions of bounded size, of both versions alike; of blobs first the
lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.compare.equality import equal_columns
from omnigraph_core.interruption import pause
from omnigraph_core.storage.blob_content import BlobColumn, equal_blobs
from omnigraph_core.storage.sparse import spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.compare.view import RowView

_SAMPLED: Final = 64
"""One pair of so many is read whole to find the column that tells."""
_GROWTH: Final = 8
"""By which more pairs are read whole at once, for as long as they turn out to be equal."""


def equal_rows(
    a: RowView,
    a_addresses: np.ndarray,
    b: RowView,
    b_addresses: np.ndarray,
    columns: Sequence[str] | None = None,
) -> np.ndarray:
    """Whether the rows of each pair are equal, in these columns or in all."""
    names = a.columns if columns is None else columns
    plain, blobs = _by_cost(a, names)
    is_same = np.ones(len(a_addresses), np.bool_)
    # Rows that were written one after another are read together.
    order = np.argsort(b_addresses, kind="stable")
    is_same[order] = _equal_plain(a, a_addresses[order], b, b_addresses[order], plain)
    for name in blobs:
        places = order[is_same[order]]
        if len(places):
            sides = _blobs(a, name, a_addresses[places]), _blobs(b, name, b_addresses[places])
            is_same[places] = equal_blobs(*sides, len(places))
    return is_same


def _by_cost(view: RowView, columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns that are no blobs, short ones before lists, and blobs."""
    types = {name: view.schema.field(name).type for name in columns}
    blobs = [name for name, type in types.items() if pa.types.is_large_binary(type)]
    lists = [name for name, type in types.items() if pa.types.is_nested(type)]
    short = [name for name in types if name not in blobs and name not in lists]
    return [*short, *lists], blobs


def _equal_plain(
    a: RowView,
    a_addresses: np.ndarray,
    b: RowView,
    b_addresses: np.ndarray,
    columns: Sequence[str],
) -> np.ndarray:
    """Equality in columns that are no blobs.

    Some pairs are read whole; the column in which most of these differ is read of all others, and
    so on. Rows that a write has changed mostly differ in the same columns, so that of most pairs
    one column is read, and each column once.
    """
    is_same = np.ones(len(a_addresses), np.bool_)
    left = np.arange(len(a_addresses))
    unread = list(columns)
    is_near = max(spread(a_addresses), spread(b_addresses)) * _GROWTH <= len(left)
    size = len(left) if is_near else max(1, len(left) // _SAMPLED)
    while len(left) and unread:
        tried, left = left[:size], left[size:]
        equal = _equal(a, a_addresses[tried], b, b_addresses[tried], unread)
        is_same[tried] = np.logical_and.reduce(list(equal.values()))
        telling = min(unread, key=lambda name: np.count_nonzero(equal[name]))
        if equal[telling].all():
            size *= _GROWTH  # equal so far: the others may well be, too
        elif len(left):
            (found,) = _equal(a, a_addresses[left], b, b_addresses[left], [telling]).values()
            is_same[left] = found
            left = left[found]
            unread.remove(telling)
    return is_same


def _equal(
    a: RowView,
    a_addresses: np.ndarray,
    b: RowView,
    b_addresses: np.ndarray,
    columns: Sequence[str],
) -> dict[str, np.ndarray]:
    """For each column, whether the pairs are equal in it."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in columns}
    a.read_ahead(a_addresses, b, b_addresses, columns)
    sides = a.iter_taken(a_addresses, columns), b.iter_taken(b_addresses, columns)
    for mine, other in _iter_side_by_side(*sides):
        pause()
        for name, is_equal in equal_columns(mine, other).items():
            found[name].append(is_equal)
    return {name: np.concatenate(parts) for name, parts in found.items()}


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
