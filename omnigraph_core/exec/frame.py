"""The rows of a match on their way: one array of dense numbers per bound variable.

A number is a position in the scan order of the variable's table; -1 is null, which only `optional`
makes. Properties are not here: they are fetched by number, late and once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_SURELY_FITS: Final = 2.0**62
"""Below it a product of two counts fits 64 bits, however it is rounded."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Some rows of a match; `weights`, where given, say how many times each row counts."""

    length: int
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    """int32 by variable, each of the frame's length."""
    weights: np.ndarray | None = None
    """int64, all above zero."""

    @property
    def nbytes(self) -> int:
        held = sum(array.nbytes for array in self.numbers.values())
        return int(held + (0 if self.weights is None else self.weights.nbytes))

    def take(self, places: np.ndarray) -> Frame:
        """The rows at these places, in that order, maybe several times."""
        weights = None if self.weights is None else self.weights[places]
        return Frame(len(places), {n: a[places] for n, a in self.numbers.items()}, weights)

    def where(self, mask: np.ndarray) -> Frame:
        """The rows that a Boolean array is true for."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slice(self, start: int, end: int) -> Frame:
        weights = None if self.weights is None else self.weights[start:end]
        numbers = {name: array[start:end] for name, array in self.numbers.items()}
        return Frame(min(end, self.length) - start, numbers, weights)

    def binding(self, variable: str, numbers: np.ndarray) -> Frame:
        """The same rows with one more variable."""
        return Frame(self.length, {**self.numbers, variable: numbers}, self.weights)

    def keeping(self, variables: Collection[str]) -> Frame:
        """The same rows without the variables nobody asks for any more."""
        if all(name in variables for name in self.numbers):
            return self
        numbers = {name: array for name, array in self.numbers.items() if name in variables}
        return Frame(self.length, numbers, self.weights)

    def weighted(self, factors: np.ndarray) -> Frame:
        """The same rows, each counting so many times more.

        Raises:
            DataError: a row would count more often than 64 bits can say.
        """
        factors = factors.astype(np.int64, copy=False)
        if self.weights is None:
            return Frame(self.length, self.numbers, factors)
        if self.length and float(self.weights.max()) * float(factors.max()) >= _SURELY_FITS:
            _check_products(self.weights, factors)
        return Frame(self.length, self.numbers, self.weights * factors)


def _check_products(weights: np.ndarray, factors: np.ndarray) -> None:
    large = np.flatnonzero(weights.astype(np.float64) * factors >= _SURELY_FITS)
    for weight, factor in zip(weights[large].tolist(), factors[large].tolist(), strict=True):
        if weight * factor >= 2**63:
            raise DataError(
                "one row stands for more matches than 64 bits can count",
                hint="count what is distinct, or match less",
            )


START = Frame(1)
"""What every match begins with: one row that binds nothing."""


def concat(frames: list[Frame]) -> Frame:
    """Rows one after another; all frames bind the same variables."""
    if len(frames) == 1:
        return frames[0]
    weights = None
    if any(frame.weights is not None for frame in frames):
        ones = (np.ones(f.length, np.int64) if f.weights is None else f.weights for f in frames)
        weights = np.concatenate(list(ones))
    names = frames[0].numbers
    numbers = {name: np.concatenate([frame.numbers[name] for frame in frames]) for name in names}
    return Frame(sum(frame.length for frame in frames), numbers, weights)
