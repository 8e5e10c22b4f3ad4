"""Ratios of times within one run.

The two sides of a ratio run in turns, so a busy moment of the machine hits both; times and ratios
are medians. A broken budget is measured again: noise passes, slow code stays slow.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MORE_CHANCES: Final = 2


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How often things are measured; rounds are made on fresh graphs."""

    rounds: int
    per_round: int
    processes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The median of the ratios of what ran one after the other."""

    against: str
    ms: float
    ratio: float
    budget: float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """Median milliseconds, and how that compares with something else of the same run."""

    name: str
    ms: float
    comparison: Comparison | None = None

    @property
    def is_broken(self) -> bool:
        limit = self.comparison.budget if self.comparison else None
        return self.comparison is not None and limit is not None and self.comparison.ratio > limit


def settled(measure_once: Callable[[], Figure]) -> Figure:
    for _ in range(_MORE_CHANCES):
        figure = measure_once()
        if not figure.is_broken:
            return figure
    return measure_once()


def in_turns(
    first: Callable[[], object], second: Callable[[], object], often: Repetitions
) -> list[tuple[float, float]]:
    """Milliseconds of both, pair by pair; who begins alternates."""
    pairs = []
    for number in range(often.per_round):
        if number % 2:
            pairs.append((timed(first), timed(second)))
        else:
            reverse = (timed(second), timed(first))
            pairs.append((reverse[1], reverse[0]))
    return pairs


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def compared(
    name: str, against: str, pairs: list[tuple[float, float]], *, budget: float | None
) -> Figure:
    ours, theirs = zip(*pairs, strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    comparison = Comparison(against, statistics.median(theirs), ratio, budget)
    return Figure(name, statistics.median(ours), comparison)


def report(figures: list[Figure]) -> list[str]:
    """Print every figure; the lines of those over budget."""
    for figure in figures:
        print(f"{figure.name:<42} {figure.ms:>8.2f}{_told(figure)}")
    return [f"{figure.name}{_told(figure)}" for figure in figures if figure.is_broken]


def _told(figure: Figure) -> str:
    found = figure.comparison
    if found is None:
        return ""
    limit = "" if found.budget is None else f" (budget {found.budget})"
    return f"   {found.ratio:.2f} x {found.against} {found.ms:.2f}{limit}"
