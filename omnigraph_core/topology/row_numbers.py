"""The rows of one version by number: which numbers have one, and where it is stored.

A version follows a numbering that others of its table made, if that leaves few numbers without a
row: gaps. Otherwise its own rows are numbered anew, without gaps. What is kept by number then
serves all versions that follow the same numbering.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import InvariantBroken, ObjectNotFound
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.topology.numbering import Lineage, Numbering

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.numbering import Stretch

_LEAST_GAPS: Final = 1_024
_GAP_SHARE: Final = 16
"""One gap for so many rows is let be: then numbering anew, and all that goes with it, pays."""

_OFFSET_BITS: Final = np.uint64(32)
_OFFSET_MASK: Final = np.uint64(2**32 - 1)
_NO_GAPS: Final = np.zeros(0, np.int32)


def number_rows(table: Table, cache: ByteCache) -> RowNumbers:
    """The rows of a version by number, under a numbering of its table if that pays."""
    states = fragment_states(table)
    if not states:
        return numbered_anew(lambda: table, states)
    place = (table.store.root.text, table.location)
    lineage = cache.get(("lineage", place), Lineage, lambda found: found.nbytes)
    for numbering in lineage.numberings:
        rows = _try_follow(numbering, table, states)
        if rows is not None:
            break
    else:
        rows = numbered_anew(lambda: table, states)
    lineage.use(rows.numbering)
    cache.put(("lineage", place), lineage, lineage.nbytes)
    return rows


def numbered_anew(version: Callable[[], Table], states: tuple[FragmentState, ...]) -> RowNumbers:
    """The rows of a version, each with its place in scan order as its number."""
    numbering = Numbering(version, states)
    return RowNumbers(numbering, states, _stretches(numbering, states), _NO_GAPS)


class RowNumbers:
    """The rows of one version by number. Immutable."""

    __slots__ = (
        "_fragment_ids",
        "_gaps_view",
        "_id_order",
        "_starts",
        "count",
        "extent",
        "gaps",
        "numbering",
        "states",
        "stretches",
    )

    def __init__(
        self,
        numbering: Numbering,
        states: tuple[FragmentState, ...],
        stretches: tuple[Stretch, ...],
        gaps: np.ndarray,
    ) -> None:
        self.numbering = numbering
        self.states = states
        """The fragments in scan order."""
        self.stretches = stretches
        """The numbers of each of them, gaps among them."""
        self.gaps = gaps
        """Numbers below the extent without a row: int32, ascending."""
        self._gaps_view: memoryview = gaps.data  # a plain search is faster than NumPy's for one
        self.extent = stretches[-1].end if stretches else 0
        """One more than the last number a row may have."""
        self.count = self.extent - len(gaps)
        if self.count != sum(state.rows for state in states):
            raise InvariantBroken("a version has as many rows as its fragments say")
        self._starts = np.array([stretch.start for stretch in stretches], np.int64)
        self._fragment_ids = np.array([state.id for state in states], np.uint64)
        self._id_order = np.argsort(self._fragment_ids, kind="stable")

    @property
    def nbytes(self) -> int:
        """Roughly, for the cache."""
        return 1_000 + 100 * len(self.states) + int(self.gaps.nbytes)

    def has(self, number: int) -> bool:
        """Whether a row has this number, which is not negative."""
        if number >= self.extent:
            return False
        if not len(self.gaps):
            return True
        place = bisect_left(self._gaps_view, number)
        return place == len(self.gaps) or self._gaps_view[place] != number

    def which_live(self, numbers: np.ndarray) -> np.ndarray:
        """Which of these numbers, none of them negative, are those of a row."""
        is_live: np.ndarray = numbers < self.extent
        if len(self.gaps):
            places = np.searchsorted(self.gaps, numbers)
            is_live &= self.gaps.take(places, mode="clip") != numbers
        return is_live

    def live_mask(self) -> np.ndarray:
        """Which numbers below the extent have a row."""
        mask = np.ones(self.extent, np.bool_)
        mask[self.gaps] = False
        return mask

    def live_numbers(self) -> np.ndarray:
        """The numbers of all rows: int32, ascending."""
        if not len(self.gaps):
            return np.arange(self.extent, dtype=np.int32)
        return np.flatnonzero(self.live_mask()).astype(np.int32)

    def spread(self, wanted: int) -> np.ndarray:
        """The numbers of so many rows, or all if there are fewer, far from each other; int64."""
        if not self.count:
            return np.zeros(0, np.int64)
        places = np.linspace(0, self.count - 1, min(wanted, self.count)).astype(np.int64)
        # A row's number is its place and the gaps before it.
        before = self.gaps - np.arange(len(self.gaps))
        numbers: np.ndarray = places + np.searchsorted(before, places, side="right")
        return numbers

    def addresses_of(self, numbers: np.ndarray) -> np.ndarray:
        """Where these rows are, as Lance counts: unsigned 64 bits; the numbers must be there."""
        places = np.searchsorted(self._starts, numbers, side="right") - 1
        offsets = (numbers - self._starts[places]).astype(np.uint64)
        for place in self._sifted(places):
            here = places == place
            offsets[here] = self._offsets(place).take(offsets[here].astype(np.int64))
        addresses: np.ndarray = (self._fragment_ids[places] << _OFFSET_BITS) | offsets
        return addresses

    def numbers_at(self, addresses: np.ndarray) -> np.ndarray:
        """The numbers of the rows at these addresses, int32; -1 where this version has no row."""
        if not self.count:
            return np.full(len(addresses), -1, np.int32)
        fragments = addresses >> _OFFSET_BITS
        ordered = self._fragment_ids[self._id_order]
        found = np.searchsorted(ordered, fragments).clip(max=len(ordered) - 1)
        places = self._id_order[found]
        offsets = (addresses & _OFFSET_MASK).astype(np.int64)
        is_there = self._fragment_ids[places] == fragments
        for place in self._sifted(places):
            here = np.flatnonzero(places == place)
            known = self._offsets(place)
            ranks = np.searchsorted(known, offsets[here])
            is_there[here] &= known.take(ranks, mode="clip") == offsets[here]
            offsets[here] = ranks
        is_there &= offsets < self._lengths()[places]
        numbers = self._starts[places] + offsets
        is_there[is_there] = self.which_live(numbers[is_there])
        return np.where(is_there, numbers, -1).astype(np.int32)

    def _lengths(self) -> np.ndarray:
        return np.array([stretch.state.rows for stretch in self.stretches], np.int64)

    def _offsets(self, place: int) -> np.ndarray:
        found = self.numbering.offsets(self.stretches[place])
        if found is None:
            raise InvariantBroken("only rows that others were left out between are looked up")
        return found

    def _sifted(self, places: np.ndarray) -> list[int]:
        """Which of these fragments had lost rows when they were numbered."""
        lossy = [n for n, item in enumerate(self.stretches) if item.state.deletion is not None]
        if not lossy:
            return []
        is_touched = np.zeros(len(self.states), bool)
        is_touched[places] = True
        return [place for place in lossy if is_touched[place]]


def _try_follow(
    numbering: Numbering, table: Table, states: tuple[FragmentState, ...]
) -> RowNumbers | None:
    """The version under a numbering; None if that cannot be, or leaves too many gaps."""
    known = [numbering.find(state) for state in states]
    if not _is_worthwhile(numbering, states, known):
        return None
    try:
        if None in known:
            numbering.extend(
                table, [s for s, found in zip(states, known, strict=True) if not found]
            )
        stretches = _stretches(numbering, states)
        # Also of fragments that were new a moment ago: another version may have been faster.
        lost = [
            numbering.lost(stretch, table, state)
            for stretch, state in zip(stretches, states, strict=True)
            if stretch.state.deletion != state.deletion
        ]
    except ObjectNotFound:
        return None  # a list of what was deleted when the rows were numbered
    found = [numbers for numbers in lost if numbers is not None]
    starts = [stretch.start for stretch in stretches]
    if len(found) < len(lost) or starts != sorted(starts):
        return None
    gaps = np.concatenate([_NO_GAPS, *found, *_between(stretches)])
    gaps.sort()
    gaps.flags.writeable = False
    same = tuple(
        stretch.state if stretch.state == state else state
        for stretch, state in zip(stretches, states, strict=True)
    )
    return RowNumbers(numbering, same, stretches, gaps)


def _is_worthwhile(
    numbering: Numbering, states: Sequence[FragmentState], known: Sequence[Stretch | None]
) -> bool:
    """Whether enough rows have numbers, and in their order; new ones come after all others."""
    count = sum(state.rows for state in states)
    shared = [(item, state) for item, state in zip(known, states, strict=True) if item is not None]
    if not shared or 2 * sum(state.rows for _, state in shared) < count:
        return False
    if any(item is not None for item in known[len(shared) :]):
        return False
    added = count - sum(state.rows for _, state in shared)
    extent = numbering.extent + added if len(shared) < len(states) else shared[-1][0].end
    return extent - count <= max(_LEAST_GAPS, count // _GAP_SHARE)


def _stretches(numbering: Numbering, states: Sequence[FragmentState]) -> tuple[Stretch, ...]:
    found = [numbering.find(state) for state in states]
    return tuple(stretch for stretch in found if stretch is not None)


def _between(stretches: Sequence[Stretch]) -> list[np.ndarray]:
    """Numbers of fragments that a version does not have."""
    ends = [0, *(stretch.end for stretch in stretches[:-1])]
    starts = [stretch.start for stretch in stretches]
    return [
        np.arange(end, start, dtype=np.int32)
        for end, start in zip(ends, starts, strict=True)
        if end < start
    ]
