"""A read as a whole: the rows of the match are taken as they come and made into the result.

Only what the result can still need is held on the way: as many rows as a limit asks for, the best
ones where there is an order, one per group or different row where rows are made of several.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.aggregate import Grouping
from omnigraph_core.exec.conditions import evaluate
from omnigraph_core.exec.distinct import DistinctFrames
from omnigraph_core.exec.frame import concat
from omnigraph_core.exec.group import distinct_places
from omnigraph_core.exec.match import run_match
from omnigraph_core.exec.order import best_rows, sort_keys
from omnigraph_core.exec.project import Rows, project
from omnigraph_core.exec.rank import rank_values, top_numbers
from omnigraph_core.exec.window import fused_ranks, leading_rank, window_of
from omnigraph_core.query.typed import ColumnValue, Rrf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.exec.order import SortKey
    from omnigraph_core.exec.scope import Sink
    from omnigraph_core.exec.window import Window
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.plan.steps import QueryPlan
    from omnigraph_core.query.typed import RankExpr, TypedExpr

_CLAUSE: Final = "return"
_MOST_WAITING: Final = 2**16


def run_read(run: Run, plan: QueryPlan) -> pa.Table:
    """The result of a read, of exactly the run's schema.

    Raises:
        ParameterError: a limit or offset is negative.
        DataError: a sum does not fit its type.
        QueryStopped: the guard says so.
    """
    window = window_of(plan.ir, run.values)
    rows = None if window.end == window.start else _result(run, plan, window)
    if rows is None or rows.length <= window.start:
        return run.schema.empty_table()
    wanted = rows.slice(window.start, window.end)
    if run.trace is None:
        return project(run, plan.ir.columns, wanted)
    run.trace.add("limit", rows.length, wanted.length, 0.0)
    began = time.perf_counter()
    result = project(run, plan.ir.columns, wanted)
    run.trace.add("return", wanted.length, wanted.length, time.perf_counter() - began)
    return result


def _result(run: Run, plan: QueryPlan, window: Window) -> Rows | None:
    """The rows in order, at least those up to the window's end; None if there are none."""
    ir = plan.ir
    if ir.is_grouped:
        return _grouped(run, plan, window)
    if ir.is_distinct:
        return _distinct(run, plan, window)
    return _ordered(run, plan, window) if ir.order_by else _unordered(run, plan, window)


def _unordered(run: Run, plan: QueryPlan, window: Window) -> Rows | None:
    ranks = fused_ranks(plan.ir)
    held = _Held(run, None if ranks else window.end)
    run_match(run, plan.steps, held, enough=held.enough)
    frame = held.frame()
    return None if frame is None else _ranked(run, Rows(frame), ranks, window)


def _ordered(run: Run, plan: QueryPlan, window: Window) -> Rows | None:
    ir, keys = plan.ir, sort_keys(plan.ir)
    leading, ranks = leading_rank(ir), fused_ranks(ir)
    is_streaming = leading is None and not ranks and window.end is not None
    held = _Held(run, keys=keys, best=window.end) if is_streaming else _Held(run)
    run_match(run, plan.steps, _noting(run, "order", held) if is_streaming else held)
    frame = held.frame()
    if frame is None:
        return None

    def ordered() -> Rows:
        if held.has_best:
            return Rows(frame)
        rows = _ranked(run, Rows(frame), ranks, window)
        if leading is not None:
            rows = _reached(run, rows, leading, window)
        return best_rows(run, rows, keys, window.end)

    return _noted(run, "order", 0 if is_streaming else frame.length, ordered)


def _distinct(run: Run, plan: QueryPlan, window: Window) -> Rows | None:
    ir = plan.ir
    if leading_rank(ir) is not None or fused_ranks(ir):
        rows = _distinct_ranked(run, plan, window)
    else:
        enough = None if ir.order_by else window.end
        different = DistinctFrames(run, _cells(ir), "return distinct", enough)
        run_match(run, plan.steps, _noting(run, "distinct", different.add), enough=enough)
        frame = different.frame()
        rows = None if frame is None else _noted(run, "distinct", 0, lambda: Rows(frame))
    return None if rows is None else _sorted(run, ir, rows, window)


def _distinct_ranked(run: Run, plan: QueryPlan, window: Window) -> Rows | None:
    """Different rows where one of the cells is a rank: a value that only the whole match has."""
    held = _Held(run)
    run_match(run, plan.steps, held)
    frame = held.frame()
    if frame is None:
        return None
    rows = _ranked(run, Rows(frame), fused_ranks(plan.ir), window)
    leading = leading_rank(plan.ir)
    if leading is not None:
        rows = _scored(run, rows, leading, window)
    return _without_repeats(run, plan.ir, rows)


def _without_repeats(run: Run, ir: QueryIR, rows: Rows) -> Rows:
    def different() -> Rows:
        return rows.take(distinct_places(run, rows, _cells(ir)))

    return _noted(run, "distinct", rows.length, different) if rows.length else rows


def _cells(ir: QueryIR) -> tuple[TypedExpr, ...]:
    return tuple(column.expr for column in ir.columns)


def _sorted(run: Run, ir: QueryIR, rows: Rows, window: Window) -> Rows:
    """Rows that were made of several in their order, if the query gives one."""
    if not ir.order_by:
        return rows

    def ordered() -> Rows:
        return best_rows(run, rows, sort_keys(ir), window.end)

    return _noted(run, "order", rows.length, ordered)


def _grouped(run: Run, plan: QueryPlan, window: Window) -> Rows | None:
    ir = plan.ir
    grouping = Grouping(run, ir)
    run_match(run, plan.steps, _noting(run, "group", grouping))
    if not grouping.has_groups:
        return None
    groups = rows = _noted(run, "group", 0, grouping.rows)
    if ir.having:
        rows = _noted(run, "having", groups.length, lambda: _having(run, ir, groups))
    if ir.is_distinct:
        rows = _without_repeats(run, ir, rows)
    return _sorted(run, ir, rows, window)


def _having(run: Run, ir: QueryIR, rows: Rows) -> Rows:
    """The groups for which every condition is true."""

    def column_of(expr: TypedExpr) -> pa.Array:
        value = ir.columns[expr.column].expr if isinstance(expr, ColumnValue) else expr
        return rows.column(run, value)

    for condition in ir.having:
        truth = evaluate(condition, rows.length, column_of, run.values)
        rows = rows.take(np.flatnonzero(np.asarray(truth)))
    return rows


# Ranks


def _ranked(run: Run, rows: Rows, ranks: Sequence[Rrf], window: Window) -> Rows:
    """The complete match with these ranks as values."""
    if not ranks:
        return rows
    made = {rank: _scores(run, rank, rows.frame, window) for rank in ranks}
    return Rows(rows.frame, {**rows.made, **{r: _score_column(s) for r, s in made.items()}})


def _scores(run: Run, rank: RankExpr, frame: Frame, window: Window) -> np.ndarray:
    limit = frame.length if window.end is None else window.end
    return rank_values(run, rank, frame, limit=limit)


def _score_column(scores: np.ndarray) -> pa.Array:
    return pa.array(scores, mask=np.isnan(scores))


def _reached(run: Run, rows: Rows, rank: RankExpr, window: Window) -> Rows:
    """The rows that a ranking can put first, as far as there are rows for them."""
    if isinstance(rank, Rrf) or window.end is None:
        return _scored(run, rows, rank, window)
    numbers = rows.frame.numbers[rank.field.variable]
    dense = run.dense(rank.field.variable)
    allowed = np.zeros(dense.extent + 1, np.bool_)  # the last place is that of -1
    allowed[numbers] = True
    is_everything = int(np.count_nonzero(allowed[:-1])) == dense.count
    best, scores = top_numbers(
        run, rank, None if is_everything else allowed[:-1], min(window.end, rows.length)
    )
    # Every entity has a row, so the best rows are among those of the best entities.
    score_of = np.full(dense.extent + 1, np.nan)
    score_of[best] = scores
    return _with_scores(rows, rank, score_of.take(numbers))


def _scored(run: Run, rows: Rows, rank: RankExpr, window: Window) -> Rows:
    """The rows that a ranking reaches."""
    return _with_scores(rows, rank, _scores(run, rank, rows.frame, window))


def _with_scores(rows: Rows, rank: RankExpr, scores: np.ndarray) -> Rows:
    places = np.flatnonzero(~np.isnan(scores))
    kept = rows.take(places)
    return Rows(kept.frame, {**kept.made, rank: pa.array(scores.take(places))})


# What a profile shows


def _noted(run: Run, part: str, rows_in: int, make: Callable[[], Rows]) -> Rows:
    """Rows a part of the result makes of so many."""
    if run.trace is None:
        return make()
    began = time.perf_counter()
    rows = make()
    run.trace.add(part, rows_in, rows.length, time.perf_counter() - began)
    return rows


def _noting(run: Run, part: str, sink: Sink) -> Sink:
    """A sink that belongs to a part of the result; its rows are noted when all are in."""
    trace = run.trace
    if trace is None:
        return sink

    def timed(frame: Frame) -> bool:
        began = time.perf_counter()
        wants_more = sink(frame)
        trace.add(part, frame.length, 0, time.perf_counter() - began)
        return wants_more

    return timed


# Rows that are held


class _Held:
    """Holds rows of a match: all of them, the first `enough`, or the `best` of an order."""

    def __init__(
        self,
        run: Run,
        enough: int | None = None,
        *,
        keys: Sequence[SortKey] = (),
        best: int | None = None,
    ) -> None:
        self.enough = enough
        self._run = run
        self._keys = keys
        self._best = best
        self._frames: list[Frame] = []
        self._length = 0
        self._held = 0
        self.has_best = False
        """Whether the rows are the best and in order already."""

    def __call__(self, frame: Frame) -> bool:
        self._hold(frame)
        self.has_best = False
        if self._best is not None and self._length > max(4 * self._best, _MOST_WAITING):
            self._keep_best(self._best)
        return self.enough is None or self._length < self.enough

    def frame(self) -> Frame | None:
        """The rows; None if there are none."""
        if not self._length:
            return None
        if len(self._frames) > 1:
            self._run.guard.expect(self._held, _CLAUSE)
            self._frames = [concat(self._frames)]
        return self._frames[0]

    def _hold(self, frame: Frame) -> None:
        self._run.guard.hold(frame.nbytes, _CLAUSE)
        self._held += frame.nbytes
        self._length += frame.length
        self._frames.append(frame)

    def _keep_best(self, count: int) -> None:
        self._run.guard.check()
        best = best_rows(self._run, Rows(concat(self._frames)), self._keys, count).frame
        self._run.guard.release(self._held)
        self._frames, self._length, self._held = [], 0, 0
        self._hold(best)
        self.has_best = True
