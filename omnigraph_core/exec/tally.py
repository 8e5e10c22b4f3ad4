"""Counts, sums, least and greatest of groups of rows, as arrays indexed by group.

`ids` says which of `space` groups a row belongs to; None is one group of all rows. Whole numbers
are summed exactly: an array of Python's integers comes out where 64 bits might not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

_GREATEST: Final = np.iinfo(np.int64).max
_TWO_63: Final = 2**63
_TWO_53: Final = 2**53
_LOW: Final = 2**32 - 1
_PORTION: Final = 2**16


def count_rows(
    ids: np.ndarray | None, space: int, length: int, weights: np.ndarray | None
) -> np.ndarray:
    """How many rows every group has, each counting as often as its weight says."""
    if weights is not None:
        return sum_whole(ids, space, weights)
    if ids is None:
        return np.array([length], np.int64)
    return np.bincount(ids, minlength=space)


def sum_floats(
    ids: np.ndarray | None, space: int, values: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """The sum of every group's floats; not finite where 64 bits cannot hold it."""
    terms = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        if weights is not None:
            terms = terms * weights
        if ids is None:
            return np.array([terms.sum()])
        return np.bincount(ids, weights=terms, minlength=space)


def sum_whole(
    ids: np.ndarray | None, space: int, values: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """The exact sum of every group's whole numbers: int64, or objects where that might not do."""
    if values.dtype == np.object_:
        return _added(ids, np.zeros(space, np.object_), values)
    if not len(values):
        return np.zeros(space, np.int64)
    largest = max(abs(int(values.min())), abs(int(values.max())))
    rows = len(values) if weights is None else _total(weights)
    if ids is not None and largest * rows < _TWO_53:
        sums = np.bincount(ids, weights=_times(values, weights), minlength=space)
        return sums.astype(np.int64)  # every float on the way was a whole number
    if largest * rows < _TWO_63:
        return _added(ids, np.zeros(space, np.int64), _times(values, weights))
    if rows < 2**31:
        high = _added(ids, np.zeros(space, np.int64), _times(values >> 32, weights))
        low = _added(
            ids, np.zeros(space, np.int64), _times(values & values.dtype.type(_LOW), weights)
        )
        joined: np.ndarray = high.astype(np.object_) * (_LOW + 1) + low
        return joined
    return _sum_slowly(ids, space, values, weights)


def _total(weights: np.ndarray) -> int:
    """At least the sum of some weights, whatever their size."""
    largest = int(weights.max()) * len(weights)
    return largest if largest < 2**31 else int(float(weights.sum(dtype=np.float64)) * 1.001) + 1


def _times(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    terms: np.ndarray = values.astype(np.int64, copy=False)
    return terms if weights is None else terms * weights


def _added(ids: np.ndarray | None, sums: np.ndarray, terms: np.ndarray) -> np.ndarray:
    if ids is None:
        sums[0] = terms.sum() if len(terms) else 0
    else:
        np.add.at(sums, ids, terms)
    return sums


def _sum_slowly(
    ids: np.ndarray | None, space: int, values: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Weights so great that nothing shorter than Python's integers holds what they multiply to."""
    sums = np.zeros(space, np.object_)
    for part in _slices(len(values)):
        terms = values[part].astype(np.object_)
        if weights is not None:
            terms *= weights[part].astype(np.object_)
        sums += _added(None if ids is None else ids[part], np.zeros(space, np.object_), terms)
    return sums


def _slices(length: int) -> Iterator[slice]:
    for start in range(0, length, _PORTION):
        yield slice(start, start + _PORTION)


def least_numbers(
    ids: np.ndarray | None, space: int, ordinals: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """For every group the number of a row of the least ordinal; -1 for a group without rows.

    Numbers are not negative.
    """
    found = np.full(space, -1, np.int32)
    if not len(ordinals):
        return found
    if ids is None:
        found[0] = numbers[ordinals.argmin()]
        return found
    least = int(ordinals.min())
    best = np.full(space, _GREATEST)
    if int(ordinals.max()) - least < 2**31 - 1:
        np.minimum.at(best, ids, ((ordinals - least) << 32) | numbers)
        is_found = best != _GREATEST
        found[is_found] = (best[is_found] & _LOW).astype(np.int32)
        return found
    np.minimum.at(best, ids, ordinals)
    is_best = ordinals == best.take(ids)
    found[ids[is_best]] = numbers[is_best]
    return found
