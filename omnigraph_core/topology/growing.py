"""Arrays that grow at their end: items come in, views of the first so many go out.

Items are put behind those that are there, into room that was left for them, so that adding a few
copies none of the others. What a view shows is never written to again: views of different lengths
share their memory and stay as they are.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np

_LEAST_ROOM: Final = 1_024
_ROOM_SHARE: Final = 4
"""One item of room for so many. Memory that was not written to yet takes none."""


class GrowingArray:
    """Items of one type in a row. Safe for threads that look on while one at a time adds."""

    __slots__ = ("_items", "_length", "_lock")

    def __init__(self, items: np.ndarray, *, is_own: bool = False) -> None:
        """Args:
        is_own: nobody else writes to the items, so they need not be copied before more come.
        """
        self._items = items if is_own else _with_room(items, len(items))
        self._length = len(items)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Of the items, without the room behind them."""
        return self._length * self._items.itemsize

    def reserve(self, count: int) -> None:
        """Make room for so many more at once."""
        with self._lock:
            if self._length + count > len(self._items):
                self._items = _with_room(self._items[: self._length], self._length + count)

    def append(self, items: np.ndarray) -> int:
        """Put items at the end; the place of the first of them."""
        with self._lock:
            start, end = self._length, self._length + len(items)
            if end > len(self._items):
                self._items = _with_room(self._items[:start], end)
            self._items[start:end] = items
            self._length = end
            return start

    def view(self, length: int | None = None) -> np.ndarray:
        """The first items, all that are there by default; not to be written to."""
        with self._lock:
            view = self._items[: self._length if length is None else length]
        view.flags.writeable = False
        return view


class GrowingBits:
    """Truths in a row, eight in a byte, the first one lowest: as Arrow has them."""

    __slots__ = ("_bytes", "_length")

    def __init__(self) -> None:
        self._bytes = np.zeros(_LEAST_ROOM, np.uint8)
        self._length = 0

    @property
    def nbytes(self) -> int:
        """Of the truths, without the room behind them."""
        return -(-self._length // 8)

    def append(self, bits: np.ndarray) -> None:
        """Put truths at the end; one thread at a time.

        The byte that the last ones end in is written once more, with the same bits as before.
        """
        first, inside = divmod(self._length, 8)
        end = self._length + len(bits)
        byte_count = -(-end // 8)
        if byte_count > len(self._bytes):
            self._bytes = _with_room(self._bytes[: first + 1], byte_count)
        begun = np.unpackbits(self._bytes[first : first + 1], count=inside, bitorder="little")
        packed = np.packbits(np.concatenate((begun.view(np.bool_), bits)), bitorder="little")
        self._bytes[first:byte_count] = packed
        self._length = end

    def view(self) -> np.ndarray:
        """The bytes, with room behind them."""
        return self._bytes


def _with_room(items: np.ndarray, length: int) -> np.ndarray:
    """A copy with room for so many items and some more."""
    room = max(length // _ROOM_SHARE, _LEAST_ROOM)
    copy = np.empty((length + room, *items.shape[1:]), items.dtype)
    copy[: len(items)] = items
    return copy
