"""Hashes of texts, of many at once or of one: the same text has the same hash either way.

Texts up to 128 bytes are hashed whole, longer ones by their beginning, end and length: whoever
uses the hash compares the texts as well.
"""

from __future__ import annotations

import random
from operator import mul
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

_WORD: Final = 8
_WORDS: Final = 16
"""Words of a text that are hashed from its beginning on; of a longer one the last too."""

_ALL: Final = 2**64 - 1
_CHANCE: Final = random.Random(20_231)
_FACTORS: Final = tuple(_CHANCE.getrandbits(64) | 1 for _ in range(_WORDS))
_LAST, _LENGTH, _FINAL = (_CHANCE.getrandbits(64) | 1 for _ in range(3))
_SPLIT: Final = tuple(Struct(f"<{count}Q").unpack_from for count in range(_WORDS + 1))
_TAILS: Final = np.array([2 ** (8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""Which bits of a word belong to the text if so many bytes of it are left."""


def hash_text(text: str) -> int:
    """32 bits of a text."""
    data = text.encode("utf-8", "surrogatepass")
    count = min(-(-len(data) // _WORD), _WORDS)
    words = _SPLIT[count](data.ljust(count * _WORD, b"\0"))
    total: int = len(data) * _LENGTH + sum(map(mul, words, _FACTORS))
    if len(data) > _WORDS * _WORD:
        total += int.from_bytes(data[-_WORD:], "little") * _LAST
    total &= _ALL
    return (((total ^ (total >> 32)) * _FINAL) & _ALL) >> 32


def hash_texts(texts: pa.StringArray) -> np.ndarray:
    """The hashes of many texts, as uint64 below 2 ** 32; that of a null means nothing."""
    if not len(texts):
        return np.zeros(0, np.uint64)
    _, places, content = texts.buffers()
    ends = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts = ends[:-1].astype(np.int64) - int(ends[0])
    lengths = np.diff(ends).astype(np.int64)
    words = _words(content, int(ends[0]), int(ends[-1]))
    total = lengths.astype(np.uint64) * np.uint64(_LENGTH)
    for number, factor in enumerate(_FACTORS):
        if not _add_word(total, words, starts, lengths, number * _WORD, factor):
            break
    long = np.flatnonzero(lengths > _WORDS * _WORD)
    if len(long):
        total[long] += words[starts[long] + lengths[long] - _WORD] * np.uint64(_LAST)
    total ^= total >> np.uint64(32)
    total *= np.uint64(_FINAL)
    return total >> np.uint64(32)


def _words(content: pa.Buffer | None, start: int, end: int) -> np.ndarray:
    """The eight bytes that begin at each byte, zeros after the last."""
    padded = np.zeros(end - start + _WORD, np.uint8)
    if content is not None:
        padded[: end - start] = np.frombuffer(content, np.uint8)[start:end]
    return np.ndarray(end - start + 1, "<u8", padded, strides=(1,))


def _add_word(
    total: np.ndarray,
    words: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    place: int,
    factor: int,
) -> bool:
    """Add the word at this place of every text that is so long; False if none is."""
    is_longer = lengths > place
    if is_longer.all():
        tails = _TAILS[np.minimum(lengths - place, _WORD)]
        total += (words[starts + place] & tails) * np.uint64(factor)
        return True
    chosen = np.flatnonzero(is_longer)
    tails = _TAILS[np.minimum(lengths[chosen] - place, _WORD)]
    total[chosen] += (words[starts[chosen] + place] & tails) * np.uint64(factor)
    return len(chosen) > 0
