"""Texts are cut into pieces at what separates words for certain; equal pieces share a number.

Texts come in, numbers of pieces per text go out, and the distinct pieces to analyse once each. Cuts
are at ASCII blanks and punctuation alone: a piece may still hold several words of another script,
or none, so analysing the pieces in order gives exactly the words of the whole text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_PORTION_BYTES: Final = 4 << 20
"""Text cut at once: some milliseconds of work."""


def _lowered() -> np.ndarray:
    """Each byte of a word in lower case; 0 for bytes that separate words.

    Bytes beyond ASCII are parts of characters: never a cut.
    """
    table = np.arange(256, dtype=np.uint8)
    for code in range(128):
        table[code] = ord(chr(code).lower()) if chr(code).isalnum() else 0
    return table


_LOWERED: Final = _lowered()


@dataclass(frozen=True, slots=True)
class Cut:
    """Some texts in pieces: text `i` has `numbers[offsets[i]:offsets[i + 1]]`, in order."""

    numbers: np.ndarray
    """int32, places in the distinct pieces."""
    offsets: np.ndarray
    """int64, one more than there are texts."""
    is_null: np.ndarray | None
    """Which texts are null, if any is; these have no pieces."""


def cut_texts(
    batches: Iterable[pa.StringArray], check: Callable[[], None]
) -> tuple[tuple[Cut, ...], pa.StringArray]:
    """The texts of all batches in order, in any number of cuts, and the distinct pieces.

    Args:
        check: asked between portions of the work; it may raise.
    """
    cuts: list[Cut] = []
    dictionaries: list[pa.Array] = []
    for texts in batches:
        for start, stop in _portions(texts):
            check()
            cut, distinct = _cut(texts.slice(start, stop - start))
            cuts.append(cut)
            dictionaries.append(distinct)
    return _unified(cuts, dictionaries)


def _portions(texts: pa.StringArray) -> Iterator[tuple[int, int]]:
    offsets = _offsets(texts)
    start = 0
    while start < len(texts):
        end = offsets[start] + _PORTION_BYTES
        stop = max(start + 1, int(np.searchsorted(offsets, end, side="right")) - 1)
        yield start, stop
        start = stop


def _offsets(texts: pa.StringArray) -> np.ndarray:
    """Where each text begins in the buffer of bytes, and where the last one ends."""
    if not len(texts):
        return np.zeros(1, np.int64)
    found = np.frombuffer(texts.buffers()[1], np.int32)
    return found[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)


def _cut(texts: pa.StringArray) -> tuple[Cut, pa.StringArray]:
    is_null = None
    if texts.null_count:
        is_null = texts.is_null().to_numpy(zero_copy_only=False)
        texts = pc.fill_null(texts, "")  # a null may have bytes behind it: no words
    offsets = _offsets(texts)
    buffer = texts.buffers()[2]
    data = np.frombuffer(b"" if buffer is None else buffer, np.uint8)[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    letters = _LOWERED.take(data)
    is_letter = letters != 0
    starts, ends = _edges(is_letter, offsets)
    pieces = _strings(letters[is_letter], ends - starts).dictionary_encode()
    numbers = pieces.indices.to_numpy()
    return Cut(numbers, np.searchsorted(starts, offsets), is_null), pieces.dictionary


def _edges(is_letter: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each piece starts and ends: also at the ends of a text, where no separator is."""
    size = len(is_letter)
    bounds = offsets[(offsets > 0) & (offsets < size)]
    is_start = is_letter.copy()
    is_start[1:] &= ~is_letter[:-1]
    is_start[bounds] = is_letter[bounds]
    is_last = is_letter.copy()
    is_last[:-1] &= ~is_letter[1:]
    is_last[bounds - 1] = is_letter[bounds - 1]
    return np.flatnonzero(is_start), np.flatnonzero(is_last) + 1


def _strings(data: np.ndarray, lengths: np.ndarray) -> pa.StringArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))


def _unified(
    cuts: Sequence[Cut], dictionaries: Sequence[pa.StringArray]
) -> tuple[tuple[Cut, ...], pa.StringArray]:
    """The same cuts with numbers of one dictionary."""
    if len(cuts) <= 1:
        return tuple(cuts), dictionaries[0] if cuts else pa.array([], pa.string())
    encoded = pa.concat_arrays(dictionaries).dictionary_encode()
    places = np.split(
        encoded.indices.to_numpy(), np.cumsum([len(item) for item in dictionaries])[:-1]
    )
    renumbered = tuple(
        Cut(place.take(cut.numbers), cut.offsets, cut.is_null)
        for cut, place in zip(cuts, places, strict=True)
    )
    return renumbered, encoded.dictionary
