"""Arrays with a few items replaced: a base that many share, and what stands there instead.

Looking items up costs what it costs without replacements, where none is near. Making another array
with some more replaced copies those alone; when they are many, the base is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

_BLOCK_BITS: Final = 6
"""Numbers that share a flag, as a power of two."""
_LEAST_MANY: Final = 1_024
_SHARE: Final = 32
"""One replaced item for so many: then the base is made anew."""


class Patches:
    """The numbers that have something of their own, ascending. Immutable."""

    __slots__ = ("_is_near", "keys")

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys
        """int32."""
        last = int(keys[-1]) if len(keys) else 0
        self._is_near = np.zeros((last >> _BLOCK_BITS) + 1, np.bool_)
        self._is_near[keys >> _BLOCK_BITS] = True

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self._is_near.nbytes) + 200

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.keys, self._is_near

    def find(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of numbers, none of them negative, that have something; where it is."""
        blocks = numbers >> _BLOCK_BITS
        is_near = self._is_near.take(blocks, mode="clip")
        some = np.flatnonzero(is_near)
        wanted = numbers.take(some)
        found = np.searchsorted(self.keys, wanted)
        is_hit = self.keys.take(found, mode="clip") == wanted if len(self.keys) else is_near[:0]
        return some[is_hit], found[is_hit]

    def joined(self, keys: np.ndarray) -> tuple[Patches, np.ndarray, np.ndarray]:
        """These and more numbers, ascending; where the old ones are now, and where the new."""
        together = np.union1d(self.keys, keys).astype(np.int32, copy=False)
        return (
            Patches(together),
            np.searchsorted(together, self.keys),
            np.searchsorted(together, keys),
        )

    def are_many(self, length: int) -> bool:
        """Whether there are too many of them for so many items."""
        return len(self.keys) > max(_LEAST_MANY, length // _SHARE)


_NONE: Final = Patches(np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class PatchedArray:
    """Whole numbers by number, int32. Immutable; the base may be mapped from a file."""

    base: np.ndarray
    length: int
    """Items beyond the base are -1 if they are not replaced."""
    patches: Patches = _NONE
    values: np.ndarray = field(default_factory=lambda: _NONE.keys)

    @staticmethod
    def of(items: np.ndarray) -> PatchedArray:
        return PatchedArray(items, len(items))

    @property
    def nbytes(self) -> int:
        return int(self.base.nbytes + self.values.nbytes) + self.patches.nbytes

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.base, self.values, *self.patches.arrays

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """The items with these numbers, none of them negative."""
        if len(self.base):
            items = self.base.take(numbers, mode="clip")
            items[numbers >= len(self.base)] = -1
        else:
            items = np.full(len(numbers), -1, np.int32)
        places, found = self.patches.find(numbers)
        items[places] = self.values[found]
        return items

    def where(self, wanted: int) -> np.ndarray:
        """The ascending numbers of the items that are equal to one."""
        found = np.flatnonzero(self.base == wanted).astype(np.int32)
        replaced, _ = self.patches.find(found)
        now = self.patches.keys[self.values == wanted]
        return np.sort(np.concatenate((np.delete(found, replaced), now)))

    def whole(self) -> np.ndarray:
        """All items as one array, not to be written to."""
        if self.length == len(self.base) and not len(self.values):
            return self.base
        items = np.full(self.length, -1, np.int32)
        items[: len(self.base)] = self.base[: self.length]
        is_inside = self.patches.keys < self.length
        items[self.patches.keys[is_inside]] = self.values[is_inside]
        return items

    def patched(self, keys: np.ndarray, values: np.ndarray, length: int) -> PatchedArray:
        """The same for so many numbers, with these ascending ones replaced."""
        if not len(keys):
            return PatchedArray(self.base, length, self.patches, self.values)
        patches, old, new = self.patches.joined(keys)
        items = np.empty(len(patches.keys), np.int32)
        items[old] = self.values
        items[new] = values
        made = PatchedArray(self.base, length, patches, items)
        return PatchedArray.of(made.whole()) if patches.are_many(len(self.base)) else made
