"""128 bits of each text, of many at once: equal texts have equal hashes within one job.

All constants come from the seed of the job, which nobody knows before: no input can be made to
collide. By chance two of ten billion texts share a hash once in 10 ** 18 jobs.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

Hashes: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Two words for each value."""

_NOTHING: Final = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
_WORD: Final = 8
_HALF: Final = np.uint64(32)
_TAILS: Final = np.array([2 ** (8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""Which bits of a word belong to the text if so many bytes of it are left."""


class Hasher:
    """The hashes of one job."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self._factors = [np.uint64(chance.getrandbits(64) | 1) for _ in range(6)]

    def texts(self, texts: pa.Array | pa.ChunkedArray) -> Hashes:
        """The hashes of texts, none of which is null."""
        if isinstance(texts, pa.ChunkedArray):  # which may be larger than one array can be
            parts = [_NOTHING, *(self.texts(chunk) for chunk in texts.chunks)]
            first, second = zip(*parts, strict=True)
            return np.concatenate(first), np.concatenate(second)
        if not len(texts):
            return _NOTHING
        starts, lengths, words = _words(texts)
        sizes = lengths.astype(np.uint64) + self._factors[4]
        one, two = self._mixed(sizes, 0), self._mixed(sizes, 1)
        for place in range(0, int(lengths.max()), _WORD):
            rest = np.flatnonzero(lengths > place)
            chosen: np.ndarray | slice = slice(None) if len(rest) == len(lengths) else rest
            tails = _TAILS[np.minimum(lengths[chosen] - place, _WORD)]
            word = words[starts[chosen] + place] & tails
            one[chosen] = self._mixed(one[chosen] ^ word, 2)
            two[chosen] = self._mixed(two[chosen] + word, 3)
        return self._mixed(one, 4), self._mixed(two, 5)

    def tuples(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
        """The hashes of tuples of texts, none of which is null."""
        one, two = self.texts(columns[0])
        for column in columns[1:]:
            more, again = self.texts(column)
            one, two = self._mixed(one, 2) + more, self._mixed(two, 3) + again
        return self._mixed(one, 4), self._mixed(two, 5)

    def _mixed(self, words: np.ndarray, factor: int) -> np.ndarray:
        mixed = (words ^ (words >> _HALF)) * self._factors[factor]
        found: np.ndarray = mixed ^ (mixed >> np.uint64(29))
        return found


def _words(texts: pa.StringArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each text begins, how long it is, and the eight bytes that begin at each byte."""
    _, places, content = texts.buffers()
    ends = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(ends[0]), int(ends[-1])
    padded = np.zeros(last - first + _WORD, np.uint8)
    if content is not None:
        padded[: last - first] = np.frombuffer(content, np.uint8)[first:last]
    words = np.ndarray(last - first + 1, "<u8", padded, strides=(1,))
    return ends[:-1].astype(np.int64) - first, np.diff(ends).astype(np.int64), words
