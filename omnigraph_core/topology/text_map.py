"""From texts to numbers: a column of texts comes in, numbers of rows with one or many texts go out.

Kept is one 64-bit integer per number, the text's hash above and the number below, sorted. What has
the hash is compared with the text itself, so two texts of one hash only cost time. Numbers that
come later are kept apart until they are many: so adding a few touches none of the others.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.topology.text_hash import hash_text, hash_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

_HASH_BITS: Final = np.uint64(32)
_NUMBER_MASK: Final = 2**32 - 1
_FEW: Final = 32
"""Texts that are found faster one by one."""

_SORTED_FROM: Final = 4_096
"""Texts from which it pays to look them up in order of their hashes."""

_LEAST_APART: Final = 4_096
_APART_SHARE: Final = 64
"""One number that is kept apart for so many others: then they are put among them."""

_MOST_RECENT: Final = 1_000
"""Texts whose numbers are known without a search."""


class Living(Protocol):
    """Which numbers count, such as those that have a row in a version."""

    def has(self, number: int) -> bool: ...

    def which_live(self, numbers: np.ndarray) -> np.ndarray: ...


class _Everything:
    """All numbers count."""

    def has(self, number: int) -> bool:
        return number >= 0

    def which_live(self, numbers: np.ndarray) -> np.ndarray:
        return np.ones(len(numbers), np.bool_)


EVERYTHING: Final = _Everything()


class TextMap:
    """The texts of some numbers, without the texts: those are given again to be compared with.

    Immutable, and shared by versions of a table.
    """

    __slots__ = ("_levels", "_recent", "_views", "covered")

    def __init__(self, levels: tuple[np.ndarray, ...], recent: dict[str, int]) -> None:
        self._levels = levels
        """Entries in their order; those of later numbers first."""
        self._views: tuple[memoryview, ...] = tuple(level.data for level in levels)
        # A plain search is faster than NumPy's for one.
        self._recent = recent
        self.covered = sum(map(len, levels))
        """Numbers below this are known."""

    @property
    def nbytes(self) -> int:
        return sum(int(level.nbytes) for level in self._levels) + _MOST_RECENT * 200

    def extended(self, texts: pa.StringArray) -> TextMap:
        """The map of all these texts, of which the first are those it has."""
        if len(texts) <= self.covered:
            return self
        later, base = self._levels
        added = _entries(texts.slice(self.covered), self.covered)
        later = np.sort(np.concatenate((later, added)))
        if len(later) > max(_LEAST_APART, len(base) // _APART_SHARE):
            base = np.insert(base, np.searchsorted(base, later), later)
            later = later[:0]
        later.flags.writeable = base.flags.writeable = False
        return TextMap((later, base), self._recent)

    def number(self, texts: pa.StringArray, wanted: str, rows: Living) -> int:
        """The number of the only row with a text; -1 if there is none."""
        known = self._recent.get(wanted)
        if known is not None and rows.has(known):
            return known  # a row keeps its text and its number
        for number in self._candidates(hash_text(wanted)):
            if rows.has(number) and texts[number].as_py() == wanted:
                self._remember(wanted, number)
                return number
        return -1

    def numbers(self, texts: pa.StringArray, wanted: pa.StringArray, rows: Living) -> np.ndarray:
        """The number of the only row with each of these texts, int32; -1 where there is none."""
        if len(wanted) <= _FEW:
            listed = wanted.to_pylist()
            found = [-1 if text is None else self.number(texts, text, rows) for text in listed]
            return np.array(found, np.int32)
        result = np.full(len(wanted), -1, np.int32)
        if not len(texts):
            return result
        sought = hash_texts(wanted)
        for level in self._levels:
            left = np.flatnonzero(result < 0)
            if len(level) and len(left):
                chosen = wanted if len(left) == len(wanted) else wanted.take(pa.array(left))
                result[left] = _found(level, texts, chosen, sought[left], rows)
        return result

    def numbers_with(self, texts: pa.StringArray, wanted: str, rows: Living) -> np.ndarray:
        """The numbers of all rows with a text: int32, ascending."""
        sought = hash_text(wanted)
        bounds = np.array([sought << 32, sought << 32 | _NUMBER_MASK], np.uint64)
        found = []
        for level in reversed(self._levels):
            start, end = np.searchsorted(level, bounds)
            found.append((level[start:end] & np.uint64(_NUMBER_MASK)).astype(np.int32))
        numbers: np.ndarray = np.concatenate(found)
        numbers = numbers[rows.which_live(numbers)]
        if len(numbers):
            numbers = numbers[_truths(pc.equal(texts.take(pa.array(numbers)), wanted))]
        return numbers

    def _candidates(self, sought: int) -> Iterator[int]:
        """The numbers whose text has a hash, the last first: it is the likeliest to have a row."""
        for view in self._views:
            place = bisect_left(view, (sought + 1) << 32) - 1
            while place >= 0 and (entry := view[place]) >> 32 == sought:
                yield entry & _NUMBER_MASK
                place -= 1

    def _remember(self, wanted: str, number: int) -> None:
        if len(self._recent) >= _MOST_RECENT:
            self._recent.clear()
        self._recent[wanted] = number


def map_texts(texts: pa.StringArray) -> TextMap:
    """The map of a column."""
    entries = np.sort(_entries(texts, 0))
    entries.flags.writeable = False
    return TextMap((entries[:0], entries), {})


def _entries(texts: pa.StringArray, first: int) -> np.ndarray:
    numbers = np.arange(first, first + len(texts), dtype=np.uint64)
    entries: np.ndarray = (hash_texts(texts) << _HASH_BITS) | numbers
    return entries


def _found(
    level: np.ndarray,
    texts: pa.StringArray,
    wanted: pa.StringArray,
    sought: np.ndarray,
    rows: Living,
) -> np.ndarray:
    """The numbers among some entries of the rows with these texts; -1 where there is none."""
    result = np.full(len(wanted), -1, np.int32)
    open_, places = np.arange(len(wanted)), _last_places(level, sought)
    while len(open_):
        entries = level.take(places, mode="clip")
        is_hit = (entries >> _HASH_BITS == sought) & (places >= 0)
        numbers = np.where(is_hit, entries & np.uint64(_NUMBER_MASK), 0).astype(np.int32)
        is_live = is_hit & rows.which_live(numbers)
        numbers[~is_live] = 0
        is_same = is_live & _truths(pc.equal(texts.take(pa.array(numbers)), wanted))
        result[open_[is_same]] = numbers[is_same]
        left = np.flatnonzero(is_hit & ~is_same)  # of another id of the same hash, or of no row
        open_, places, sought = open_[left], places[left] - 1, sought[left]
        wanted = wanted.take(pa.array(left))
    return result


def _last_places(level: np.ndarray, sought: np.ndarray) -> np.ndarray:
    """Where among the entries those with each hash end: the place of the last one."""
    ends = (sought << _HASH_BITS) | np.uint64(_NUMBER_MASK)
    if len(sought) < _SORTED_FROM:
        return np.searchsorted(level, ends, side="right") - 1
    packed = np.sort((sought << _HASH_BITS) | np.arange(len(sought), dtype=np.uint64))
    order = (packed & np.uint64(_NUMBER_MASK)).astype(np.int64)
    places = np.empty(len(sought), np.int64)
    places[order] = np.searchsorted(level, ends[order], side="right")
    return places - 1


def _truths(column: pa.BooleanArray) -> np.ndarray:
    """Truths as an array, null as false."""
    filled = column.fill_null(False) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)
