"""From ids to dense numbers: the id column comes in, numbers of one or many ids go out.

Kept is one 64-bit integer per row, the id's hash above and the row's number below, sorted. What has
the hash is compared with the id itself, so two ids of one hash only cost time.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.storage.row_space import is_extension
from omnigraph_core.topology.text_hash import hash_text, hash_texts

if TYPE_CHECKING:
    from omnigraph_core.storage.row_space import FragmentState

_HASH_BITS: Final = np.uint64(32)
_NUMBER_MASK: Final = 2**32 - 1
_FEW: Final = 32
"""Ids that are found faster one by one."""

_SORTED_FROM: Final = 4_096
"""Ids from which it pays to look them up in order of their hashes."""

_MOST_RECENT: Final = 1_000
"""Ids whose numbers are known without a search."""


class IdentityMap:
    """The ids of one version, without the texts: those are given again to be compared with."""

    __slots__ = ("_entries", "_view", "recent", "states")

    def __init__(self, entries: np.ndarray, states: tuple[FragmentState, ...]) -> None:
        self._entries = entries
        self._view: memoryview = entries.data  # a plain search is faster than NumPy's for one
        self.recent: dict[str, int] = {}
        """Numbers of ids that were asked for one by one."""
        self.states = states

    @property
    def nbytes(self) -> int:
        return int(self._entries.nbytes) + _MOST_RECENT * 200

    def number(self, ids: pa.StringArray, wanted: str) -> int:
        """The number of the row with an id; -1 if there is none."""
        sought = hash_text(wanted)
        view = self._view
        for place in range(bisect_left(view, sought << 32), len(view)):
            entry = view[place]
            if entry >> 32 != sought:
                break
            number = entry & _NUMBER_MASK
            if ids[number].as_py() == wanted:
                self._remember(wanted, number)
                return number
        return -1

    def numbers(self, ids: pa.StringArray, wanted: pa.StringArray) -> np.ndarray:
        """The numbers of the rows with these ids, int32; -1 where there is none."""
        if len(wanted) <= _FEW:
            found = [-1 if id is None else self.number(ids, id) for id in wanted.to_pylist()]
            return np.array(found, np.int32)
        result = np.full(len(wanted), -1, np.int32)
        if not len(self._entries):
            return result
        sought = hash_texts(wanted)
        open_, places = np.arange(len(wanted)), self._first_places(sought)
        while len(open_):
            entries = self._entries.take(places, mode="clip")
            is_hit = (entries >> _HASH_BITS == sought) & (places < len(self._entries))
            numbers = np.where(is_hit, entries & np.uint64(_NUMBER_MASK), 0).astype(np.int32)
            is_same = _is_same(ids, numbers, wanted) & is_hit
            result[open_[is_same]] = numbers[is_same]
            left = np.flatnonzero(is_hit & ~is_same)  # another id of the same hash came first
            open_, places, sought = open_[left], places[left] + 1, sought[left]
            wanted = wanted.take(pa.array(left))
        return result

    def _remember(self, wanted: str, number: int) -> None:
        if len(self.recent) >= _MOST_RECENT:
            self.recent.clear()
        self.recent[wanted] = number

    def _first_places(self, sought: np.ndarray) -> np.ndarray:
        """Where in the entries those with each hash begin."""
        if len(sought) < _SORTED_FROM:
            return np.searchsorted(self._entries, sought << _HASH_BITS)
        packed = np.sort((sought << _HASH_BITS) | np.arange(len(sought), dtype=np.uint64))
        order = (packed & np.uint64(_NUMBER_MASK)).astype(np.int64)
        places = np.empty(len(sought), np.int64)
        places[order] = np.searchsorted(self._entries, sought[order] << _HASH_BITS)
        return places


def build_identity_map(
    ids: pa.StringArray, states: tuple[FragmentState, ...], older: IdentityMap | None
) -> IdentityMap:
    """The map of a version; of one that only grew since an older one only new ids are hashed."""
    known = np.zeros(0, np.uint64)
    if older is not None and is_extension(older.states, states):
        known = older._entries
    start = len(known)
    numbers = np.arange(start, len(ids), dtype=np.uint64)
    added = (hash_texts(ids.slice(start)) << _HASH_BITS) | numbers
    entries = np.sort(np.concatenate((known, added)))
    entries.flags.writeable = False
    return IdentityMap(entries, states)


def _is_same(ids: pa.StringArray, numbers: np.ndarray, wanted: pa.StringArray) -> np.ndarray:
    same = pc.equal(ids.take(pa.array(numbers)), wanted).fill_null(False)
    return np.asarray(same.to_numpy(zero_copy_only=False), np.bool_)
