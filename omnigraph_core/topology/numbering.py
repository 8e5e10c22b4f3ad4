"""Numbers of the rows of a table, given once: versions that share rows share their numbers.

The rows of a fragment are numbered one after another when a version with that fragment is first
seen, after all that were numbered before. A row keeps its number while it lives, whatever happens
to others; a number whose row is gone is not given again. So in every version that follows a
numbering the order of numbers is the order of a scan.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.storage.deleted_rows import deleted_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState

_SERIALS: Final = itertools.count(1)
_REMEMBERED: Final = 3
"""Numberings of a table that a version may follow: branches take turns."""

Key = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """The rows of a fragment and their numbers, from `start` on."""

    start: int
    state: FragmentState
    """The fragment when it was numbered: it may have lost rows since."""

    @property
    def end(self) -> int:
        return self.start + self.state.rows


class Numbering:
    """Numbers given to rows of one table. Only ever grows; safe for threads."""

    __slots__ = (
        "_base",
        "_extent",
        "_lock",
        "_lost",
        "_offsets",
        "_stretches",
        "columns",
        "growing",
        "serial",
    )

    def __init__(self, base: Callable[[], Table], states: Sequence[FragmentState]) -> None:
        """Args:
        base: opens a version whose rows are all numbered, in their order.
        states: the fragments of that version.
        """
        self.serial = next(_SERIALS)
        """What tells it from every other numbering of the process."""
        self.growing = threading.Lock()
        """Held by whoever adds rows to what is kept under these numbers."""
        self.columns: set[tuple[int, str]] = set()
        """The columns that were kept under these numbers at some time."""
        self._base = base
        self._lock = threading.Lock()
        self._extent = 0
        self._stretches: dict[Key, Stretch] = {}
        self._offsets: dict[Key, np.ndarray] = {}
        self._lost: dict[Key, tuple[str | None, np.ndarray]] = {}
        """What fragments had lost when they were last asked about: most lose nothing meanwhile."""
        for state in states:
            self._add(state)

    @property
    def extent(self) -> int:
        """One more than the last number given."""
        return self._extent

    @property
    def nbytes(self) -> int:
        arrays = [*self._offsets.values(), *(numbers for _, numbers in self._lost.values())]
        return 2_000 + 500 * len(self._stretches) + sum(int(array.nbytes) for array in arrays)

    def find(self, state: FragmentState) -> Stretch | None:
        """The numbers of a fragment, whatever rows it has lost."""
        return self._stretches.get(key_of(state))

    def offsets(self, stretch: Stretch) -> np.ndarray | None:
        """Where in its fragment each numbered row is, uint32; None: at 0, 1, 2, and so on.

        Raises:
            ObjectNotFound: the version it was numbered in was cleaned up meanwhile.
        """
        state = stretch.state
        if state.deletion is None:
            return None
        found = self._offsets.get(key_of(state))
        if found is None:
            found = self._offsets[key_of(state)] = _live(self._base(), state)
        return found

    def lost(self, stretch: Stretch, table: Table, state: FragmentState) -> np.ndarray | None:
        """The numbers, int32, of rows that a fragment has lost since it was numbered.

        None if it has others back.

        Args:
            table: a version that has the fragment in this state.

        Raises:
            ObjectNotFound: what was deleted then is not known any more.
        """
        if state.rows > stretch.state.rows:
            return None
        key = key_of(state)
        deletion, numbers = self._lost.get(key, (None, None))
        if numbers is None or deletion != state.deletion:
            places = _lost_places(deleted_offsets(table, state.id), self.offsets(stretch))
            numbers = (places.astype(np.int64) + stretch.start).astype(np.int32)
            self._lost[key] = (state.deletion, numbers)
        return numbers if stretch.state.rows - len(numbers) == state.rows else None

    def extend(self, table: Table, states: Sequence[FragmentState]) -> None:
        """Number the rows of fragments that have no numbers yet, in the order given.

        Args:
            table: a version that has them in these states.
        """
        # Read before the lock is taken: others may wait for it.
        lossy = [state for state in states if state.deletion is not None]
        read = {key_of(state): _live(table, state) for state in lossy if self.find(state) is None}
        with self._lock:
            for state in states:
                if key_of(state) not in self._stretches:
                    if key_of(state) in read:
                        self._offsets[key_of(state)] = read[key_of(state)]
                    self._add(state)

    def _add(self, state: FragmentState) -> None:
        self._stretches[key_of(state)] = Stretch(self._extent, state)
        self._extent += state.rows


class Lineage:
    """The numberings of one table that newer versions may follow, the last used one first."""

    __slots__ = ("_lock", "_numberings")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numberings: tuple[Numbering, ...] = ()

    @property
    def numberings(self) -> tuple[Numbering, ...]:
        return self._numberings

    @property
    def nbytes(self) -> int:
        return 500 + sum(item.nbytes for item in self._numberings)

    def use(self, numbering: Numbering) -> None:
        with self._lock:
            others = tuple(item for item in self._numberings if item is not numbering)
            self._numberings = (numbering, *others)[:_REMEMBERED]


def key_of(state: FragmentState) -> Key:
    """What a fragment keeps when it loses rows."""
    return state.id, state.files


def _lost_places(deleted: np.ndarray, known: np.ndarray | None) -> np.ndarray:
    """Which numbered rows, counted from the first, are at places that were deleted."""
    if known is None or not len(known) or not len(deleted):
        return deleted
    is_deleted = np.zeros(max(int(known[-1]), int(deleted[-1])) + 1, np.bool_)
    is_deleted[deleted] = True
    return np.flatnonzero(is_deleted.take(known))


def _live(table: Table, state: FragmentState) -> np.ndarray:
    deleted = deleted_offsets(table, state.id)
    is_live = np.ones(state.rows + len(deleted), np.bool_)
    is_live[deleted] = False
    return np.flatnonzero(is_live).astype(np.uint32)
