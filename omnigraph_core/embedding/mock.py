"""Vectors without a provider: each text seeds a generator, so the same text is the same vector.

Texts in, unit vectors out, bit for bit the same on every machine. Nothing but the text and the
dimension matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FNV64_OFFSET: Final = 14695981039346656037
_FNV64_PRIME: Final = 1099511628211
_FNV64_MASK: Final = 2**64 - 1

_FEW: Final = 32
"""Texts below which a loop in Python is faster than arrays that short."""

_EPSILON: Final = np.finfo(np.float32).eps


def mock_vectors(texts: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """One row per text.

    >>> [str(component) for component in mock_vectors(["alpha"], 4)[0]]
    ['-0.5420488', '-0.47179943', '0.16090508', '0.67653376']
    """
    state = _seeds([text.encode("utf-8", "surrogatepass") for text in texts])
    vectors = np.empty((len(texts), dimension), np.float32)
    squares = np.zeros(len(texts), np.float64)
    for position in range(dimension):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        # As a double, the greatest seed is 2^64.
        ratio = (state.astype(np.float64) / 2.0**64).astype(np.float32)
        component = ratio * np.float32(2) - np.float32(1)
        vectors[:, position] = component
        # Summed in this order: pairwise summation would differ in the last bit.
        squares += component.astype(np.float64) ** 2
    norms = np.sqrt(squares).astype(np.float32)
    divisors = np.where(norms > _EPSILON, norms, np.float32(1))
    vectors /= divisors[:, np.newaxis]
    return vectors


def _seeds(texts: Sequence[bytes]) -> NDArray[np.uint64]:
    """64-bit FNV-1a of each text: a byte of all texts per step, longest texts first."""
    lengths = np.array([len(text) for text in texts], np.int64)
    order = np.argsort(-lengths, kind="stable")
    starts = (np.cumsum(lengths) - lengths)[order]
    content = np.frombuffer(b"".join(texts), np.uint8)
    hashes = np.full(len(texts), _FNV64_OFFSET, np.uint64)
    # How many texts are longer than each position, while they are enough to be worth an array.
    longer = _longer_than(lengths[order])
    for position, count in enumerate(longer):
        active = hashes[:count]
        active ^= content[starts[:count] + position]
        active *= np.uint64(_FNV64_PRIME)
    for rank in range(min(_FEW, len(texts))):
        rest = texts[order[rank]][len(longer) :]
        hashes[rank] = _continue(int(hashes[rank]), rest)
    seeds = np.empty_like(hashes)
    seeds[order] = hashes
    return seeds


def _longer_than(descending: NDArray[np.int64]) -> list[int]:
    if len(descending) <= _FEW:
        return []
    positions = np.arange(descending[_FEW])
    counts: list[int] = (
        len(descending) - np.searchsorted(descending[::-1], positions, side="right")
    ).tolist()
    return counts


def _continue(value: int, rest: bytes) -> int:
    for byte in rest:
        value = ((value ^ byte) * _FNV64_PRIME) & _FNV64_MASK
    return value
