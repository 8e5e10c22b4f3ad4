"""Dense numbers and addresses of the rows of one version: fragments come in, arrays go out.

A row's number is its place in scan order. Where a fragment has lost no rows the address follows
from the number; only of the others the offsets of live rows are read, once per state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.row_space import fragment_states, read_fragments

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache

_OFFSET_BITS: Final = np.uint64(32)
_OFFSET_MASK: Final = np.uint64(2**32 - 1)


class RowNumbers:
    """The rows of one version by number. Immutable; holds no offsets itself."""

    __slots__ = (
        "_cache",
        "_fragment_ids",
        "_id_order",
        "_place",
        "_table",
        "count",
        "starts",
        "states",
    )

    def __init__(self, table: Table, cache: ByteCache) -> None:
        self._table = table
        self._cache = cache
        self._place = (table.store.root.text, table.location)
        self.states = fragment_states(table)
        self.starts = np.zeros(len(self.states) + 1, np.int64)
        np.cumsum([state.rows for state in self.states], out=self.starts[1:])
        self.count = int(self.starts[-1])
        self._fragment_ids = np.array([state.id for state in self.states], np.uint64)
        self._id_order = np.argsort(self._fragment_ids, kind="stable")

    @property
    def nbytes(self) -> int:
        """Roughly, for the cache."""
        return 1_000 + 400 * len(self.states)

    def addresses_of(self, numbers: np.ndarray) -> np.ndarray:
        """Where these rows are, as Lance counts: unsigned 64 bits; the numbers must be there."""
        places = np.searchsorted(self.starts, numbers, side="right") - 1
        offsets = (numbers - self.starts[places]).astype(np.uint64)
        for place in self._touched(places):
            here = places == place
            offsets[here] = self.offsets(place).take(offsets[here].astype(np.int64))
        addresses: np.ndarray = (self._fragment_ids[places] << _OFFSET_BITS) | offsets
        return addresses

    def numbers_at(self, addresses: np.ndarray) -> np.ndarray:
        """The numbers of the rows at these addresses; -1 where this version has no row."""
        if not self.count:
            return np.full(len(addresses), -1, np.int32)
        fragments = addresses >> _OFFSET_BITS
        ordered = self._fragment_ids[self._id_order]
        found = np.searchsorted(ordered, fragments).clip(max=len(ordered) - 1)
        places = self._id_order[found]
        offsets = (addresses & _OFFSET_MASK).astype(np.int64)
        is_there = self._fragment_ids[places] == fragments
        for place in self._touched(places):
            here = np.flatnonzero(places == place)
            live = self.offsets(place)
            ranks = np.searchsorted(live, offsets[here])
            is_there[here] &= live.take(ranks, mode="clip") == offsets[here]
            offsets[here] = ranks
        is_there &= offsets < np.diff(self.starts)[places]
        return np.where(is_there, self.starts[places] + offsets, -1).astype(np.int32)

    def offsets(self, place: int) -> np.ndarray:
        """Where in its fragment each live row is, for the fragment at a place in scan order."""
        state = self.states[place]
        if state.deletion is None:
            return np.arange(state.rows, dtype=np.uint32)
        key = self._offsets_key(state)
        return self._cache.get(key, lambda: self._read_offsets([state])[0], _nbytes)

    def load_offsets(self, places: Sequence[int]) -> None:
        """Read the offsets of these fragments, in scan order, together if they are not known."""
        states: dict[Hashable, FragmentState] = {
            self._offsets_key(self.states[place]): self.states[place] for place in places
        }

        def build(keys: Sequence[Hashable]) -> list[tuple[np.ndarray, int]]:
            read = self._read_offsets([states[key] for key in keys])
            return [(offsets, int(offsets.nbytes)) for offsets in read]

        self._cache.get_many(tuple(states), build)

    def known_offsets(self, state: FragmentState) -> np.ndarray | None:
        """The offsets of a state of any version that lost rows, if no read is needed for them."""
        return cast("np.ndarray | None", self._cache.peek(self._offsets_key(state)))

    def _touched(self, places: np.ndarray) -> list[int]:
        """Which of these fragments have lost rows; their offsets are there afterwards."""
        lossy = [n for n, state in enumerate(self.states) if state.deletion is not None]
        if not lossy:
            return []
        is_touched = np.zeros(len(self.states), bool)
        is_touched[places] = True
        touched = [place for place in lossy if is_touched[place]]
        if len(touched) > 1:
            self.load_offsets(touched)
        return touched

    def _offsets_key(self, state: FragmentState) -> tuple[object, ...]:
        return ("offsets", self._place, state)

    def _read_offsets(self, states: Sequence[FragmentState]) -> list[np.ndarray]:
        """The offsets of each of these fragments, given in scan order."""
        ids = [state.id for state in states]
        batches = read_fragments(self._table, (), ids, has_addresses=True)
        addresses = [batch.column(0).to_numpy() for batch in batches]
        ends = np.cumsum([state.rows for state in states])
        whole = np.concatenate([np.zeros(0, np.uint64), *addresses])
        if len(whole) != ends[-1]:
            raise InvariantBroken(f"`{self._table.location}` has as many rows as it says")
        return np.split((whole & _OFFSET_MASK).astype(np.uint32), ends[:-1])


def _nbytes(array: np.ndarray) -> int:
    return int(array.nbytes)
