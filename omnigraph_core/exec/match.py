"""The match of a read: its steps chained, one row pushed in at the front, portions out at the back.

Rows go depth first: what one portion becomes is handed on to the end before the next is made, so a
match holds a few portions however many rows it has, and stops as soon as the taker has enough.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.exec.evaluate import truth
from omnigraph_core.exec.frame import START, Frame
from omnigraph_core.exec.joins import AntiJoinRows, OptionalRows
from omnigraph_core.exec.scope import PORTION_ROWS, Pace, Scope
from omnigraph_core.exec.select import selected
from omnigraph_core.exec.traverse import Traversal
from omnigraph_core.plan.steps import (
    AntiJoinStep,
    ExpandStep,
    FilterStep,
    Making,
    OptionalStep,
    ScanStep,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.scope import Sink
    from omnigraph_core.exec.trace import Trace
    from omnigraph_core.plan.steps import Step, Steps


def run_match(run: Run, steps: Steps, sink: Sink, *, enough: int | None = None) -> None:
    """Push the rows of a match to the sink in portions, none empty, until it returns False.

    `enough` tells after about how many rows the sink may do so: then portions are small at first.

    Raises:
        QueryStopped: the guard says so.
    """
    plan = run.plan
    is_weighing = plan.ir.is_grouped and not plan.is_set  # then the sink reads weights
    _chain(run, steps, Scope(Pace(enough), is_merging=is_weighing), sink)(START)


def _chain(run: Run, steps: Steps, scope: Scope, sink: Sink) -> Sink:
    """One taker of rows out of all steps and the sink behind them."""
    scopes = _scopes(steps, scope)
    taker = sink
    for step, its_scope in zip(reversed(steps), reversed(scopes), strict=True):
        make = partial(_stage, run, step, its_scope)
        taker = make(taker) if run.trace is None else _traced(run.trace, step, make, taker)
    return taker


def _scopes(steps: Steps, scope: Scope) -> list[Scope]:
    """What holds before each step."""
    last_expand = max((i for i, s in enumerate(steps) if isinstance(s, ExpandStep)), default=-1)
    nullable = scope.nullable
    found: list[Scope] = []
    for index, step in enumerate(steps):
        is_merging = scope.is_merging and index < last_expand
        found.append(Scope(scope.pace, scope.carried, nullable, is_merging))
        if isinstance(step, OptionalStep):
            nullable = nullable.union(step.op.introduced)
    return found


def _stage(run: Run, step: Step, scope: Scope, emit: Sink) -> Sink:
    match step:
        case ScanStep():
            return _Scan(run, step, scope, emit)
        case ExpandStep():
            return Traversal(run, step, scope, emit)
        case FilterStep():
            return partial(_push_filtered, run, step, scope.kept(step.needed), emit)
        case AntiJoinStep():
            return AntiJoinRows(run, step, scope, emit, partial(_chain, run))
        case OptionalStep():
            return OptionalRows(run, step, scope, emit, partial(_chain, run))


def _push_filtered(
    run: Run, step: FilterStep, kept: frozenset[str], emit: Sink, frame: Frame
) -> bool:
    run.guard.check()
    places = np.flatnonzero(truth(run, step.op.condition, frame))
    if not len(places):
        return True
    frame = frame.keeping(kept)
    return emit(frame if len(places) == frame.length else frame.take(places))


class _Scan:
    """A scan: each row times the nodes of a type that satisfy the conditions."""

    __slots__ = ("_emit", "_found", "_kept", "_run", "_scope", "_step")

    def __init__(self, run: Run, step: ScanStep, scope: Scope, emit: Sink) -> None:
        self._run = run
        self._step = step
        self._scope = scope
        self._kept = scope.kept(step.needed)
        self._emit = emit
        self._found: np.ndarray | None = None

    def __call__(self, frame: Frame) -> bool:
        self._run.guard.check()
        frame = frame.keeping(self._kept)
        if self._step.making is not Making.ROWS:
            return self._push_counted(frame)
        found = self._numbers()
        pace = self._scope.pace
        if len(found) * frame.length <= pace.rows:
            return not len(found) or self._emit(self._product(frame, found))
        if frame.length > 1 and len(found) * 2 <= PORTION_ROWS:
            return self._push_blocks(frame, found)
        rows = range(frame.length)
        return all(self._push_slices(frame.slice(i, i + 1), found) for i in rows)

    def _push_counted(self, frame: Frame) -> bool:
        op = self._step.op
        count = len(self._numbers()) if op.filters else self._run.dense(op.variable).count
        if count == 0:
            return True
        if self._step.making is Making.EXISTS:
            return self._emit(frame)
        return self._emit(frame.weighted(np.full(frame.length, count, np.int64)))

    def _numbers(self) -> np.ndarray:
        """What the scan finds; it is the same for every row."""
        if self._found is None:
            op = self._step.op
            self._found = selected(self._run, op.variable, op.filters).astype(np.int32, copy=False)
        return self._found

    def _push_blocks(self, frame: Frame, found: np.ndarray) -> bool:
        """Some rows at a time, each with everything found."""
        start = 0
        for limit in self._scope.pace.limits():
            if start >= frame.length:
                break
            self._run.guard.check()
            end = min(start + max(limit // len(found), 1), frame.length)
            if not self._emit(self._product(frame.slice(start, end), found)):
                return False
            start = end
        return True

    def _push_slices(self, row: Frame, found: np.ndarray) -> bool:
        """One row with some of what was found at a time."""
        start = 0
        for limit in self._scope.pace.limits():
            if start >= len(found):
                break
            self._run.guard.check()
            if not self._emit(self._product(row, found[start : start + limit])):
                return False
            start += limit
        return True

    def _product(self, frame: Frame, found: np.ndarray) -> Frame:
        """Every row with every number, the rows in the outer loop."""
        variable, count = self._step.op.variable, len(found)
        total = frame.length * count
        numbers: dict[str, np.ndarray] = {}
        if frame.numbers:
            self._run.guard.expect(4 * total * (len(frame.numbers) + 1), self._step.label)
            numbers = {name: np.repeat(array, count) for name, array in frame.numbers.items()}
        weights = None if frame.weights is None else np.repeat(frame.weights, count)
        if variable in self._kept:
            numbers[variable] = found if frame.length == 1 else np.tile(found, frame.length)
        return Frame(total, numbers, weights)


def _traced(trace: Trace, step: Step, make: Callable[[Sink], Sink], emit: Sink) -> Sink:
    """A step that notes its rows and its own seconds, without those of the steps behind it."""
    row_count, seconds_behind = 0, 0.0

    def noting(frame: Frame) -> bool:
        nonlocal row_count, seconds_behind
        row_count += frame.length
        began = time.perf_counter()
        wants_more = emit(frame)
        seconds_behind += time.perf_counter() - began
        return wants_more

    taker = make(noting)

    def timed(frame: Frame) -> bool:
        nonlocal row_count, seconds_behind
        row_count, seconds_behind = 0, 0.0
        began = time.perf_counter()
        wants_more = taker(frame)
        seconds = time.perf_counter() - began - seconds_behind
        trace.add(step, frame.length, row_count, seconds)
        return wants_more

    return timed
