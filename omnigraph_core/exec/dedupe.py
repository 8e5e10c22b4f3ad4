"""Making equal rows one: for sets, where how often a row occurs does not matter.

One variable is remembered by a flag per number, also from portion to portion. Several are packed
into one integer per row and sorted, within a portion only: equal rows of two portions stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.exec.frame import Frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PACKED_BITS: Final = 63
_MANY_SHARE: Final = 4
_EXACT_FLOAT: Final = 2**53


class SeenNumbers:
    """Lets each value of one variable through once. Numbers run from -1 to `count` - 1."""

    __slots__ = ("_count", "_places", "_seen")

    def __init__(self, count: int) -> None:
        self._count = count
        # -1 is the last slot of both.
        self._seen: np.ndarray | None = None
        self._places: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        return 5 * (self._count + 1)

    def fresh(self, numbers: np.ndarray) -> np.ndarray:
        """Those that never came before, each once, in any order."""
        if self._seen is None or self._places is None:
            self._seen = np.zeros(self._count + 1, np.bool_)
            self._places = np.empty(self._count + 1, np.int32)
        if len(numbers) * _MANY_SHARE > self._count:
            return self._flagged(numbers, self._seen)
        numbers = numbers[~self._seen.take(numbers)]
        self._seen[numbers] = True
        # The last place written for a number is the one that stays: so each number has one.
        places = np.arange(len(numbers), dtype=np.int32)
        self._places[numbers] = places
        return numbers.compress(self._places.take(numbers) == places)

    def _flagged(self, numbers: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The same for many numbers: look at each there is instead of each that came."""
        hit = np.zeros(self._count + 1, np.bool_)
        hit[numbers] = True
        np.greater(hit, seen, out=hit)
        seen |= hit
        found = np.flatnonzero(hit).astype(np.int32)
        if hit[-1]:
            found[-1] = -1
        return found


def distinct_rows(frame: Frame, counts: Mapping[str, int]) -> Frame:
    """Each row of a frame once, in any order and unweighted; `counts` are the tables' sizes."""
    if frame.length < 2 or not frame.numbers:
        return Frame(min(frame.length, 1), frame.numbers)
    names = tuple(frame.numbers)
    keys = pack(tuple(frame.numbers.values()), tuple(counts[name] for name in names))
    if keys is None:
        return Frame(frame.length, frame.numbers).take(_first_places(frame))
    keys = distinct_of(keys)
    columns = unpack(keys, tuple(counts[name] for name in names))
    return Frame(len(keys), dict(zip(names, columns, strict=True)))


def distinct_of(numbers: np.ndarray) -> np.ndarray:
    """Each number once, ascending.

    >>> distinct_of(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    if len(numbers) < 2:
        return numbers
    ordered = np.sort(numbers)
    is_first = np.empty(len(ordered), np.bool_)
    is_first[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def pack(columns: Sequence[np.ndarray], counts: Sequence[int]) -> np.ndarray | None:
    """One int64 per row that stands for all its numbers; None if they have too many bits.

    >>> pack((np.array([-1, 2]), np.array([0, 1])), (3, 2)).tolist()
    [1, 14]
    """
    widths = [count.bit_length() for count in counts]
    if sum(widths) > _PACKED_BITS:
        return None
    keys = columns[0].astype(np.int64)
    keys += 1
    for column, width in zip(columns[1:], widths[1:], strict=True):
        keys <<= width
        keys += column
        keys += 1
    return keys


def unpack(keys: np.ndarray, counts: Sequence[int]) -> list[np.ndarray]:
    """The columns that `pack` made the keys of."""
    columns: list[np.ndarray] = []
    rest = keys
    for count in reversed(counts[1:]):
        width = count.bit_length()
        columns.append(((rest & ((1 << width) - 1)) - 1).astype(np.int32))
        rest = rest >> width
    columns.append((rest - 1).astype(np.int32))
    return columns[::-1]


def _first_places(frame: Frame) -> np.ndarray:
    columns = tuple(frame.numbers.values())
    order = np.lexsort(columns)
    is_first = np.ones(len(order), np.bool_)
    if len(order):
        same = [column[order[1:]] == column[order[:-1]] for column in columns]
        is_first[1:] = ~np.logical_and.reduce(same)
    return order[is_first]


def merged(frame: Frame, variable: str, count: int) -> Frame:
    """The rows of a frame that binds one variable, never null, with equal ones added up."""
    weights = frame.weights
    # The sum is asked as a float: of whole numbers it could pass 64 bits and look small.
    if weights is not None and float(weights.sum(dtype=np.float64)) >= _EXACT_FLOAT:
        return frame
    sums = np.bincount(frame.numbers[variable], weights=weights, minlength=count)
    numbers = np.flatnonzero(sums)
    kept = sums.take(numbers).astype(np.int64, copy=False)
    return Frame(len(numbers), {variable: numbers.astype(np.int32)}, kept)
