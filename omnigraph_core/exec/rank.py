"""Rankings: rows of a match come in, what `nearest`, `bm25` or `rrf` gives each of them goes out.

A row is ranked by the entity one of its variables is bound to; rows of one entity have one value. A
row that a ranking does not reach (no vector, no word in common) has NaN. `nearest` is better when
smaller, the others when larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow.compute as pc

from omnigraph_core.constants import RRF_K
from omnigraph_core.errors import InvariantBroken, ParameterError
from omnigraph_core.exec.best import Best, best_of
from omnigraph_core.exec.vectors import nearest_numbers, nearest_scores
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import Bm25, Nearest, ParamValue, Rrf

if TYPE_CHECKING:
    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import RankExpr
    from omnigraph_core.topology.dense import DenseTable


def top_numbers(
    run: Run, expr: Nearest | Bm25, allowed: np.ndarray | None, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best rows of the ranked variable's table and their values, best first.

    All rows as good as the last one are among them, so there may be more than `count`; rows of
    equal value come by number.

    Args:
        allowed: which rows may be found, by number; None for all.
    """
    if isinstance(expr, Nearest):
        best = nearest_numbers(run, expr, allowed, count)
        return best.numbers, best.scores
    best = _best_hits(run, expr, allowed, count)
    return best.numbers, -best.scores


def rank_values(run: Run, expr: RankExpr, frame: Frame, *, limit: int) -> np.ndarray:
    """The value of each row, float64; NaN for a row that is not reached.

    An `rrf` ranks the entities of the first frame it is asked about, which must have all rows of
    the match, and keeps what it finds: later frames have some of those rows.

    Args:
        limit: entities an arm of `rrf` keeps if it is a `nearest`; of no concern to other ranks.
    """
    if isinstance(expr, Nearest):
        return nearest_scores(run, expr, frame.numbers[expr.field.variable])
    if isinstance(expr, Bm25):
        return _bm25_scores(run, expr, frame.numbers[expr.field.variable])
    fused = _fused(run, expr, frame, limit)
    return fused.pick(fused.scores, frame.numbers[expr.arms[0].field.variable], np.nan)


def rank_ties(run: Run, expr: RankExpr, frame: Frame, *, limit: int) -> np.ndarray | None:
    """What puts rows of equal value in order, smaller first; None where nothing but ids does.

    Entities an `rrf` gives the same value come as its first arm ranks them, then those that only
    its second arm reaches.
    """
    if not isinstance(expr, Rrf):
        return None
    fused = _fused(run, expr, frame, limit)
    return fused.pick(fused.places, frame.numbers[expr.arms[0].field.variable], np.inf)


# bm25


def _hits(run: Run, expr: Bm25) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a word of the query, ascending, and their scores: computed once in a run."""
    key = ("bm25", expr)
    known = run.memo.get(key)
    if known is None:
        query = run.values.of(expr.query) if is_given(expr.query) else None
        if query is None:
            known = np.zeros(0, np.int32), np.zeros(0, np.float64)
        else:
            field, check = expr.field, run.guard.check
            words = run.graph.words(run.dense(field.variable), field.property, check)
            known = words.bm25(str(query))
        run.memo[key] = known
    return cast("tuple[np.ndarray, np.ndarray]", known)


def _best_hits(run: Run, expr: Bm25, allowed: np.ndarray | None, count: int) -> Best:
    numbers, scores = _hits(run, expr)
    if allowed is not None:
        kept = np.flatnonzero(allowed.take(numbers))
        numbers, scores = numbers.take(kept), scores.take(kept)
    return best_of(numbers, -scores, count) if count > 0 else Best.nothing()


def _bm25_scores(run: Run, expr: Bm25, numbers: np.ndarray) -> np.ndarray:
    hits, scores = _hits(run, expr)
    total = run.dense(expr.field.variable).extent
    if len(numbers) * 8 < total:
        return _looked_up(hits, scores, numbers, np.nan)
    # The last place is that of -1.
    values = np.full(total + 1, np.nan)
    values[hits] = scores
    return values.take(numbers)


def _looked_up(
    known: np.ndarray, values: np.ndarray, numbers: np.ndarray, absent: float
) -> np.ndarray:
    """The values of numbers that are among ascending known ones."""
    if not len(known):
        return np.full(len(numbers), absent)
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known.take(places) == numbers, values.take(places), absent)


# rrf


@dataclass(frozen=True, slots=True)
class _Fused:
    """Two rankings made one: what each entity in either of them has."""

    numbers: np.ndarray
    """Ascending."""
    scores: np.ndarray
    places: np.ndarray
    """In the first ranking, behind it in the second."""

    def pick(self, values: np.ndarray, numbers: np.ndarray, absent: float) -> np.ndarray:
        return _looked_up(self.numbers, values, numbers, absent)


def _fused(run: Run, expr: Rrf, frame: Frame, limit: int) -> _Fused:
    key = ("rrf", expr)
    known = run.memo.get(key)
    if known is None:
        numbers = frame.numbers[expr.arms[0].field.variable]
        known = run.memo[key] = _fuse(run, expr, numbers, limit)
    return cast("_Fused", known)


def _fuse(run: Run, expr: Rrf, numbers: np.ndarray, limit: int) -> _Fused:
    k = rrf_constant(expr, run.values)
    dense = run.dense(expr.arms[0].field.variable)
    run.guard.expect(dense.extent, "rrf")
    matched = np.zeros(dense.extent, np.bool_)
    matched[numbers[numbers >= 0]] = True
    first, second = (_ranked(run, arm, dense, matched, limit) for arm in expr.arms)
    entities = np.unique(np.concatenate([first, second]))
    scores = np.zeros(len(entities), np.float64)
    places = np.empty(len(entities), np.float64)
    for arm, before in ((second, len(first)), (first, 0)):
        at = np.searchsorted(entities, arm)
        scores[at] += 1.0 / (k + 1.0 + np.arange(len(arm)))
        places[at] = before + np.arange(len(arm))
    return _Fused(entities, scores, places)


def rrf_constant(expr: Rrf, values: Values) -> int:
    """The rank constant; a parameter that is null leaves it as it is when a query gives none.

    Raises:
        ParameterError: it is below one.
    """
    k = values.of(expr.k) if is_given(expr.k) else None
    if k is None:
        return RRF_K.value
    if not isinstance(k, int):
        raise InvariantBroken(f"the constant of `rrf` is a whole number, not {k!r}")
    if k < 1:
        name = f"${expr.k.name}" if isinstance(expr.k, ParamValue) else "k"
        raise ParameterError([f"{name}: the constant of `rrf` is at least 1, found {k}"])
    return k


def _ranked(
    run: Run, arm: Nearest | Bm25, dense: DenseTable, matched: np.ndarray, limit: int
) -> np.ndarray:
    """The entities an arm reaches, best first; those that are equally good by id."""
    if isinstance(arm, Nearest):
        best = nearest_numbers(run, arm, matched, limit)
        return _by_id(best, dense)[:limit]
    return _by_id(_best_hits(run, arm, matched, dense.count), dense)


def _by_id(best: Best, dense: DenseTable) -> np.ndarray:
    """Numbers in order; ids are read of those only that need them."""
    numbers, scores = best.numbers, best.scores
    equal = scores[1:] == scores[:-1]
    if not equal.any():
        return numbers
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    ids = dense.values("id", numbers.take(tied))
    ranks = np.empty(len(tied), np.int64)
    ranks[pc.array_sort_indices(ids).to_numpy()] = np.arange(len(tied))
    ordered = numbers.copy()
    ordered[tied] = numbers.take(tied).take(np.lexsort((ranks, scores.take(tied))))
    return ordered
