"""The best of some scored rows: those that count, in order, with all that tie for the last place.

Smaller scores are better; a row whose score is NaN takes no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Best:
    """Rows by ascending score, those of equal score by ascending number."""

    numbers: np.ndarray
    """int32."""
    scores: np.ndarray
    """float64."""

    @classmethod
    def nothing(cls) -> Best:
        return cls(np.zeros(0, np.int32), np.zeros(0, np.float64))

    def joined(self, other: Best, count: int) -> Best:
        """The best of both, whose rows are different ones."""
        if not len(other.numbers):
            return self
        numbers = np.concatenate([self.numbers, other.numbers])
        return best_of(numbers, np.concatenate([self.scores, other.scores]), count)


def best_of(numbers: np.ndarray, scores: np.ndarray, count: int) -> Best:
    """The rows with the `count` smallest scores, more where the last one has equals.

    >>> best_of(np.array([4, 5, 6, 7]), np.array([0.5, np.nan, 0.25, 0.5]), 2)
    Best(numbers=array([6, 4, 7], dtype=int32), scores=array([0.25, 0.5 , 0.5 ]))
    """
    if len(scores) > count:
        last = np.partition(scores, count - 1)[count - 1]  # NaN is larger than every number
        kept = np.flatnonzero(scores <= last) if last == last else np.flatnonzero(scores == scores)
        numbers, scores = numbers.take(kept), scores.take(kept)
    elif np.isnan(scores).any():
        kept = np.flatnonzero(~np.isnan(scores))
        numbers, scores = numbers.take(kept), scores.take(kept)
    order = np.lexsort((numbers, scores))
    return Best(numbers.take(order).astype(np.int32, copy=False), scores.take(order))
