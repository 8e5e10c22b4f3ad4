"""Which rows belong together: equal in every one of some expressions, null equal to null.

The values of a row become one number; numbers that are not much more than there are rows need no
sorting, since they are places in an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.exec.codes import combined_codes, dense_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.exec.codes import Codes
    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.project import Rows
    from omnigraph_core.query.typed import TypedExpr

_SMALL_SPACE: Final = 2**12
_SPACE_PER_ROW: Final = 4
_KEY_BITS: Final = 63
_ROWS_PER_CODE: Final = 16
_GROWTH: Final = 8
MERGE_BYTES: Final = 40
"""What telling rows apart takes per row, about: codes, packed keys, places."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows by group."""

    ids: np.ndarray | None
    """The group of every row, from 0 to below `space`; None when all rows are one group."""
    space: int
    present: np.ndarray
    """The ids that rows have, each once, in the order in which rows first have them."""
    first: np.ndarray
    """For each of `present`, the place of its first row: ascending."""
    counts: np.ndarray | None = None
    """How many rows each of `present` has, where that is known."""


def group_rows(run: Run, rows: Rows, exprs: Sequence[TypedExpr]) -> Groups:
    """The groups of rows; there is at least one row."""
    return groups_of(combined_codes(run, rows, exprs), rows.length)


def distinct_places(run: Run, rows: Rows, exprs: Sequence[TypedExpr]) -> np.ndarray:
    """Ascending places of rows: of those with equal values, the first."""
    return first_places(combined_codes(run, rows, exprs), rows.length)


def groups_of(codes: Codes | None, length: int) -> Groups:
    """Groups by code."""
    if codes is None:
        only = np.zeros(1, np.intp)
        return Groups(None, 1, only, only)
    if _is_small(codes, length):
        return _counted(codes, length)
    places, is_start = _sorted_by_code(codes, length)
    ids = np.empty(length, np.int32)
    ids[places] = np.cumsum(is_start, dtype=np.int32) - np.int32(1)
    first = places[is_start]
    present = first.argsort()
    return Groups(ids, len(first), present, first.take(present))


def _counted(codes: Codes, length: int) -> Groups:
    """Groups in an array of all codes."""
    values, space = codes.values, codes.space
    counts = np.bincount(values, minlength=space)
    present = np.flatnonzero(counts)
    first = _places_of(codes, present, length)
    order = first.argsort()
    present = present.take(order)
    return Groups(values, space, present, first.take(order), counts.take(present))


def _places_of(codes: Codes, present: np.ndarray, length: int) -> np.ndarray:
    """The first place of each of these codes: often the first rows have them all."""
    place_of = np.full(codes.space, -1, np.int32)
    end = min(_ROWS_PER_CODE * codes.space, length)
    while True:
        # Of several places written for a code the last one stays, so the first comes last.
        place_of[codes.values[end - 1 :: -1]] = np.arange(end - 1, -1, -1, dtype=np.int32)
        places = place_of.take(present)
        if end == length or places.min() >= 0:
            return places
        end = min(_GROWTH * end, length)


def first_places(codes: Codes | None, length: int) -> np.ndarray:
    """Ascending places of rows: of those with equal codes, the first."""
    if codes is None:
        return np.arange(min(length, 1))
    if _is_small(codes, length):
        place_of = np.full(codes.space, -1, np.int32)
        # Of several places written for a code the last one stays, so the first comes last.
        place_of[codes.values[::-1]] = np.arange(length - 1, -1, -1, dtype=np.int32)
        return np.sort(place_of[place_of >= 0])
    places, is_start = _sorted_by_code(codes, length)
    return np.sort(places[is_start])


def _is_small(codes: Codes, length: int) -> bool:
    return codes.space <= max(_SMALL_SPACE, _SPACE_PER_ROW * length)


def _sorted_by_code(codes: Codes, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Places by code and then by place, and where among them a new code begins."""
    place_bits = max(length - 1, 1).bit_length()
    if (codes.space - 1).bit_length() + place_bits > _KEY_BITS:
        codes = dense_codes(codes.values)
    keys = codes.values.astype(np.int64)
    keys <<= place_bits
    keys |= np.arange(length)
    keys.sort()
    places = keys & ((1 << place_bits) - 1)
    keys >>= place_bits
    is_start = np.ones(length, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_start[1:])
    return places, is_start
