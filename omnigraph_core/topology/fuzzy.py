"""Words that nearly are another: a word and a number of edits come in, a mask by spelling goes out.

An edit puts in, takes out or replaces one character (Levenshtein). Lengths and counts of letters
rule out nearly all spellings; the distance to the rest is worked out for all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

from omnigraph_core.interruption import pause

if TYPE_CHECKING:
    import pyarrow as pa

_BINS: Final = 32
"""Letters are counted in so many groups; those of the English alphabet in one each."""
_CELLS: Final = 1 << 20
"""Cells of the table of distances that are worked on at once."""


@dataclass(frozen=True, slots=True)
class Spellings:
    """Words by characters: those of word `w` are `codes[offsets[w]:offsets[w + 1]]`."""

    codes: np.ndarray
    """uint32, code points."""
    offsets: np.ndarray
    """int64."""
    letters: np.ndarray
    """uint8, how often each group of letters is in a word; never more than 255."""

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.offsets.nbytes + self.letters.nbytes)

    def near(self, word: str, max_edits: int) -> np.ndarray:
        """Which words are at most so many edits away from this one."""
        wanted = _codes(word)
        lengths = np.diff(self.offsets)
        # No distance is larger than the longer word.
        is_near: np.ndarray = np.maximum(lengths, len(wanted)) <= max_edits
        places = np.flatnonzero((np.abs(lengths - len(wanted)) <= max_edits) & ~is_near)
        places = places[self._may_be_near(places, wanted, max_edits)]
        places = places[np.argsort(lengths[places], kind="stable")]
        start = 0
        while start < len(places):
            pause()
            widest = int(lengths[places[start]]) + 1
            stop = start + max(1, _CELLS // widest)
            # Ascending lengths: the last of the portion is its longest, and may be the longer.
            portion = places[start:stop]
            is_near[portion] = self._distances(portion, wanted) <= max_edits
            start = stop
        return is_near

    def _may_be_near(self, places: np.ndarray, wanted: np.ndarray, max_edits: int) -> np.ndarray:
        """An edit changes the counts of letters by one more and one less at most."""
        counts = np.minimum(np.bincount(wanted % _BINS, minlength=_BINS), 255).astype(np.int16)
        more = self.letters[places] - counts
        missing = np.minimum(more, 0).sum(axis=1, dtype=np.int32)
        surplus = np.maximum(more, 0).sum(axis=1, dtype=np.int32)
        may: np.ndarray = (surplus <= max_edits) & (-missing <= max_edits)
        return may

    def _distances(self, places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Row by row of the table of distances, each for all words at once."""
        starts = self.offsets[places]
        lengths = self.offsets[places + 1] - starts
        width = int(lengths.max(initial=0))
        columns = np.arange(width + 1, dtype=np.int32)
        cells = starts[:, None] + columns[:-1]
        words = self.codes.take(cells, mode="clip")  # beyond its end a word does not matter
        table = np.broadcast_to(columns, (len(places), width + 1)).copy()
        for code in wanted:
            above = table + 1
            np.minimum(above[:, 1:], table[:, :-1] + (words != code), out=above[:, 1:])
            # An insertion costs one more than the cell to the left, from whichever is best.
            above -= columns
            np.minimum.accumulate(above, axis=1, out=above)
            above += columns
            table = above
        distances: np.ndarray = table[np.arange(len(places)), lengths]
        return distances


def spellings_of(words: pa.LargeStringArray) -> Spellings:
    codes = _codes("".join(words.to_pylist()))
    sizes = pc.utf8_length(words).to_numpy()
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    bins = np.repeat(np.arange(len(words)) * _BINS, sizes) + codes % _BINS
    letters = np.bincount(bins, minlength=len(words) * _BINS).reshape(-1, _BINS)
    return Spellings(codes, offsets, np.minimum(letters, 255).astype(np.uint8))


def _codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)
