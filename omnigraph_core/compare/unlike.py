"""Rows that are for certain not among others: places of both come in, a yes or no each goes out.

A row with a value that none of the others has equals none of them, whichever of them is its later
version: that can be told without knowing which one is. What is not told may be equal or not.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.compare.equality import as_integers

if TYPE_CHECKING:
    from omnigraph_core.compare.view import RowView

_SAMPLED: Final = 64
"""One row of so many is read whole to find the column that tells."""
_GROWTH: Final = 8
"""By which more rows are read whole at once, for as long as nothing tells them."""
_KEPT: Final = 512
"""Bytes of a text, at most, that are kept to tell it from others."""


def unlike_all(
    a: RowView, a_addresses: np.ndarray, b: RowView, b_addresses: np.ndarray
) -> np.ndarray:
    """Which of the first rows are known to equal none of the second.

    Some rows are read whole; the column that tells most of these is read of all others, and so on.
    Lists and blobs are not looked at.
    """
    unread = [name for name in a.columns if name != "id" and _is_short(a.schema.field(name).type)]
    others = _read(b, b_addresses, unread)
    is_unlike = np.zeros(len(a_addresses), np.bool_)
    left = np.arange(len(a_addresses))
    size = max(1, len(left) // _SAMPLED)
    while len(left) and unread:
        tried, left = left[:size], left[size:]
        found = _told(a, a_addresses[tried], unread, others)
        is_unlike[tried] = np.logical_or.reduce(list(found.values()))
        telling = max(unread, key=lambda name: np.count_nonzero(found[name]))
        if not found[telling].any():
            size *= _GROWTH  # as before, so far: the others may well be, too
        elif len(left):
            is_unlike[left] = _told(a, a_addresses[left], [telling], others)[telling]
            left = left[~is_unlike[left]]
            unread.remove(telling)
    return is_unlike


def _is_short(type: pa.DataType) -> bool:
    return not (pa.types.is_nested(type) or pa.types.is_large_binary(type))


def _told(
    view: RowView, addresses: np.ndarray, columns: list[str], others: dict[str, pa.Array]
) -> dict[str, np.ndarray]:
    """For each column, which rows have a value in it that none of the others has."""
    rows = _read(view, addresses, columns)
    found = {}
    for name in columns:
        is_known = pc.is_in(rows[name], value_set=others[name])  # null is a value here
        found[name] = ~is_known.to_numpy(zero_copy_only=False)
    return found


def _read(view: RowView, addresses: np.ndarray, columns: list[str]) -> dict[str, pa.Array]:
    """What stands for values: equal ones have the same, and no more than a little is kept of one.

    Values of which the same is kept may differ, and are not told from each other.
    """
    empty = pa.schema([view.schema.field(name) for name in columns]).empty_table()
    kept: dict[str, list[pa.Array]] = {name: [] for name in columns}
    for rows in chain([empty], view.iter_taken(addresses, columns)):
        for name, parts in kept.items():
            parts.append(_short(rows.column(name).combine_chunks()))
    return {name: pa.concat_arrays(parts) for name, parts in kept.items()}


def _short(values: pa.Array) -> pa.Array:
    """
    >>> _short(pa.array(["x" * 1_000, "y", None])).to_pylist()[0][-8:]
    'xxx 1000'
    """
    if not pa.types.is_string(values.type):
        return as_integers(values)
    lengths = pc.binary_length(values)
    is_long = pc.greater(lengths, _KEPT)
    if not pc.any(is_long).as_py():
        return values
    ends = (
        pc.utf8_slice_codeunits(values, 0, _KEPT // 8),
        pc.utf8_slice_codeunits(values, -(_KEPT // 8)),
        lengths.cast(pa.utf8()),
    )
    return pc.if_else(is_long, pc.binary_join_element_wise(*ends, " "), values)
