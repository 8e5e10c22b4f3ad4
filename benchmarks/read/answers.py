"""Whether an engine's answer is the right one: rows come in, what is wrong with them goes out.

Truth is the floor's answer. Where only some of the rows are asked for, any of them will do; where
scores decide, rows with the same score are as good as each other.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.read.data import Case
    from benchmarks.read.floor import Floor
    from benchmarks.read.operations import Rows

_LEAST_RECALL: Final = 0.8
_HOPS: Final = {"hop_1": 1, "hop_2": 2, "hop_3": 3}
_IN_ORDER: Final = ("filter_top",)


class Judge:
    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._scored: Mapping[str, tuple[Callable[[Case], dict[str, float]], float, float]] = {
            # What the scores of the answer must add up to, relative to the best ten, and how much
            # a later one may be better. Whoever fuses ten texts only cannot know the order of all.
            "vector_exact": (floor.similarity, 1 - 1e-6, 1e-6),
            "bm25_top": (floor.relevance, 0.99, 0.01),
            "hybrid_top": (floor.fused, 0.95, 1.0),
        }

    def problem(self, name: str, case: Case, rows: Rows) -> str | None:
        """None if the answer is right."""
        if name in _HOPS:
            return _some(rows, self._floor.names_within(case, _HOPS[name]), 100)
        if name in self._scored:
            score, least, slack = self._scored[name]
            return _best(rows, score(case), least, slack)
        if name == "vector_index":
            return _recall(rows, self._truth("vector_exact", case))
        if name == "vector_hop_2":
            return _different([row[:1] for row in rows], self._truth(name, case), is_sorted=True)
        if name == "nothing":
            return _different(rows, [], is_sorted=True)
        return _different(rows, self._truth(name, case), is_sorted=name in _IN_ORDER)

    def _truth(self, name: str, case: Case) -> Rows:
        return self._floor.rows(self._floor.asks[name](case))


def _different(found: Rows, truth: Rows, *, is_sorted: bool) -> str | None:
    if len(found) != len(truth):
        return f"{len(found)} rows, expected {len(truth)}"
    if not is_sorted:
        found, truth = sorted(found), sorted(truth)
    for one, other in zip(found, truth, strict=True):
        if len(one) != len(other) or not all(map(_is_equal, one, other)):
            return f"{one}, expected {other}"
    return None


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def _some(rows: Rows, truth: set[str], limit: int) -> str | None:
    names = {row[0] for row in rows}
    expected = min(limit, len(truth))
    if len(rows) != expected or len(names) != expected:
        return f"{len(rows)} rows, {len(names)} of them distinct, expected {expected}"
    strangers = names - truth
    return f"{sorted(strangers)[0]} is not reached" if strangers else None


def _best(rows: Rows, scores: dict[str, float], least: float, slack: float) -> str | None:
    best = sorted(scores.values(), reverse=True)[:10]
    codes = dict.fromkeys(row[0] for row in rows)
    if len(rows) != len(best) or len(codes) != len(best):
        return f"{len(rows)} rows, {len(codes)} of them distinct, expected {len(best)}"
    found = [scores.get(code, 0.0) for code in codes]
    if sum(found) < least * sum(best):
        return f"{sum(found) / sum(best):.4f} of the best scores"
    if any(later > earlier + slack * best[0] for earlier, later in pairwise(found)):
        return f"out of order: {found}"
    return None


def _recall(rows: Rows, truth: Rows) -> str | None:
    if len(set(rows)) != len(truth):
        return f"{len(set(rows))} rows, expected {len(truth)}"
    share = len(set(rows) & set(truth)) / len(truth)
    return f"recall {share}" if share < _LEAST_RECALL else None
