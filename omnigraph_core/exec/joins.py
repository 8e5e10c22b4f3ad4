"""`not` and `optional`: an inner match that starts from rows of the outer one.

The inner steps start from the distinct combinations of the outer variables they use, and every
inner row carries the place of the combination it came from; multiplicities stay exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from omnigraph_core.exec.dedupe import distinct_of, pack, unpack
from omnigraph_core.exec.evaluate import truth
from omnigraph_core.exec.expand import at, cut, positions_of
from omnigraph_core.exec.frame import Frame, concat
from omnigraph_core.exec.scope import Pace, Scope
from omnigraph_core.exec.traverse import Traversal
from omnigraph_core.plan.steps import ExpandStep, FilterStep, Making

if TYPE_CHECKING:
    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.scope import Chain, Sink
    from omnigraph_core.exec.trace import Trace
    from omnigraph_core.plan.steps import AntiJoinStep, OptionalStep, Step

Test: TypeAlias = Callable[[Frame], np.ndarray]
"""Which rows of a frame the inner side of a join finds anything for."""

PLACE: Final = "#place"
"""The hidden variable of inner rows: which outer combination they came from."""
_OUTER_ROWS: Final = 2**16
"""Outer rows an optional join takes at once: it holds what all of them find."""
_FEW_PLACES: Final = 1024
_UNKNOWN: Final = 0
_FREE: Final = 1
_REACHED: Final = 2


class AntiJoinRows:
    """Drops the rows for which the inner steps find anything."""

    __slots__ = ("_emit", "_inner", "_kept", "_run", "_scope", "_step", "_test", "_verdicts")

    def __init__(
        self, run: Run, step: AntiJoinStep, scope: Scope, emit: Sink, chain: Chain
    ) -> None:
        self._run = run
        self._step = step
        self._kept = scope.kept(step.needed)
        self._emit = emit
        self._inner = _Inner(run, step, scope, chain)
        self._test = _simple_test(run, step, scope)
        self._verdicts: np.ndarray | None = None

    def __call__(self, frame: Frame) -> bool:
        self._run.guard.check()
        places = np.flatnonzero(~self._reached(frame))
        if not len(places):
            return True
        frame = frame.keeping(self._kept)
        return self._emit(frame if len(places) == frame.length else frame.take(places))

    def _reached(self, frame: Frame) -> np.ndarray:
        """For which rows the inner steps find anything."""
        if self._test is not None:
            return self._test(frame)
        outer = self._step.op.outer_vars
        if len(outer) <= 1:
            return self._verdict(frame, outer[0] if outer else None)
        start, places = self._inner.start(frame)
        reached = self._reached_from(start)
        return reached if places is None else reached.take(places)

    def _verdict(self, frame: Frame, variable: str | None) -> np.ndarray:
        """The same by the number of the only outer variable, remembered from portion to portion."""
        if variable is None:
            numbers, count = np.zeros(frame.length, np.int32), 0
        else:
            numbers, count = frame.numbers[variable], self._run.dense(variable).extent
        if self._verdicts is None:
            # One more than there are numbers: -1 is the last slot.
            self._run.guard.hold(count + 1, self._step.label)
            self._verdicts = np.zeros(count + 1, np.uint8)
        verdicts = self._verdicts
        unknown = distinct_of(numbers[verdicts.take(numbers) == _UNKNOWN])
        if len(unknown):
            columns = {} if variable is None else {variable: unknown}
            found = self._reached_from(_start(len(unknown), columns))
            verdicts[unknown] = np.where(found, _REACHED, _FREE)
        reached: np.ndarray = verdicts.take(numbers) == _REACHED
        return reached

    def _reached_from(self, start: Frame) -> np.ndarray:
        reached = np.zeros(start.length, np.bool_)
        is_few = start.length <= _FEW_PLACES

        def note(frame: Frame) -> bool:
            reached[frame.numbers[PLACE]] = True
            return not (is_few and bool(reached.all()))

        self._inner.push(start, note)
        return reached


def _simple_test(run: Run, step: AntiJoinStep, scope: Scope) -> Test | None:
    """The verdict of an inner side of one step, which needs no rows of its own."""
    if len(step.inner) != 1:
        return None
    inner = step.inner[0]
    match inner:
        case ExpandStep():
            exists = replace(inner, making=Making.EXISTS)
            test = partial(_has_match, Traversal(run, exists, scope, lambda _: True))
        case FilterStep(op=op):
            test = partial(truth, run, op.condition)
        case _:
            return None
    return test if run.trace is None else partial(_noting, run.trace, inner, test)


def _has_match(traversal: Traversal, frame: Frame) -> np.ndarray:
    return traversal.matches(frame) > 0


def _noting(trace: Trace, step: Step, test: Test, frame: Frame) -> np.ndarray:
    began = time.perf_counter()
    reached = test(frame)
    seconds = time.perf_counter() - began
    trace.add(step, frame.length, int(np.count_nonzero(reached)), seconds)
    return reached


class OptionalRows:
    """Multiplies each row by what the inner steps find; if nothing, keeps it once with nulls."""

    __slots__ = ("_emit", "_inner", "_introduced", "_kept", "_run", "_scope", "_step")

    def __init__(
        self, run: Run, step: OptionalStep, scope: Scope, emit: Sink, chain: Chain
    ) -> None:
        self._run = run
        self._step = step
        self._scope = scope
        self._kept = scope.kept(step.needed)
        self._introduced = tuple(name for name in step.op.introduced if name in self._kept)
        self._emit = emit
        self._inner = _Inner(run, step, scope, chain)

    def __call__(self, frame: Frame) -> bool:
        starts = range(0, frame.length, _OUTER_ROWS)
        return all(self._push(frame.slice(start, start + _OUTER_ROWS)) for start in starts)

    def _push(self, frame: Frame) -> bool:
        self._run.guard.check()
        start, places = self._inner.start(frame)
        found = self._found(start)
        self._run.guard.hold(found.nbytes, self._step.label)
        starts, counts = _slices(found, start.length)
        if places is not None:
            starts, counts = starts.take(places), counts.take(places)
        wants_more = self._push_joined(frame.keeping(self._kept), found, starts, counts)
        self._run.guard.release(found.nbytes)
        return wants_more

    def _found(self, start: Frame) -> Frame:
        """All inner rows in the order of their places, and one row of nulls behind them."""
        frames: list[Frame] = []
        wanted = frozenset((*self._introduced, PLACE))

        def hold(frame: Frame) -> bool:
            frames.append(frame.keeping(wanted))
            self._run.guard.hold(frames[-1].nbytes, self._step.label)
            return True

        self._inner.push(start, hold)
        nothing = np.full(1, -1, np.int32)
        nulls = dict.fromkeys(self._introduced, nothing)
        last = Frame(1, {**nulls, PLACE: np.full(1, start.length, np.int32)})
        found = concat([*frames, last])
        self._run.guard.release(sum(frame.nbytes for frame in frames))
        places = found.numbers[PLACE]
        if bool((places[1:] >= places[:-1]).all()):
            return found
        return found.take(np.argsort(places, kind="stable"))

    def _push_joined(
        self, frame: Frame, found: Frame, starts: np.ndarray, counts: np.ndarray
    ) -> bool:
        total = int(counts.sum())
        if total <= self._scope.pace.rows:
            return self._emit(self._joined(frame, found, starts, counts, total))
        for start, end in cut(counts, self._scope.pace.limits()):
            self._run.guard.check()
            some = counts[start:end]
            rows = frame.slice(start, end)
            if not self._emit(self._joined(rows, found, starts[start:end], some, int(some.sum()))):
                return False
        return True

    def _joined(
        self, frame: Frame, found: Frame, starts: np.ndarray, counts: np.ndarray, total: int
    ) -> Frame:
        width = len(frame.numbers) + len(self._introduced)
        self._run.guard.expect(total * (16 + 4 * width), self._step.label)
        positions = positions_of(starts, counts, total)
        numbers = {name: np.repeat(array, counts) for name, array in frame.numbers.items()}
        numbers |= {name: at(found.numbers[name], positions) for name in self._introduced}
        weights = None if frame.weights is None else np.repeat(frame.weights, counts)
        joined = Frame(total, numbers, weights)
        return joined if found.weights is None else joined.weighted(at(found.weights, positions))


def _slices(found: Frame, place_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the inner rows of each place start, and how many there are; of none, the nulls."""
    counts = np.bincount(found.numbers[PLACE], minlength=place_count + 1)[:-1]
    starts = np.cumsum(counts) - counts
    is_empty = counts == 0
    starts[is_empty] = found.length - 1
    counts[is_empty] = 1
    return starts, counts


class _Inner:
    """The inner steps of a join and the rows they start from.

    They are chained once, since they remember what they learn of the graph.
    """

    __slots__ = ("_entry", "_outer", "_run", "_sink")

    def __init__(
        self, run: Run, step: AntiJoinStep | OptionalStep, scope: Scope, chain: Chain
    ) -> None:
        self._run = run
        self._outer = step.op.outer_vars
        self._sink: Sink | None = None
        inside = Scope(Pace(), frozenset((PLACE,)), scope.nullable)
        self._entry = chain(step.inner, inside, self._hand_on)

    def push(self, start: Frame, sink: Sink) -> None:
        """Hand everything the inner steps make of some rows to a sink."""
        self._sink = sink
        self._entry(start)
        self._sink = None  # it knows rows that nobody needs any more

    def _hand_on(self, frame: Frame) -> bool:
        return self._sink is not None and self._sink(frame)

    def start(self, frame: Frame) -> tuple[Frame, np.ndarray | None]:
        """The rows to start from, and for each row of the frame the place of its own.

        Equal combinations are made one where that saves much; None: row by row.
        """
        if not self._outer:
            return _start(1, {}), np.zeros(frame.length, np.int64)
        columns = {name: frame.numbers[name] for name in self._outer}
        alone = _start(frame.length, columns)
        if frame.length == 1:
            return alone, None
        counts = [self._run.dense(name).extent for name in self._outer]
        keys = pack(tuple(columns.values()), counts)
        if keys is None:
            return alone, None
        distinct = distinct_of(keys)
        if 2 * len(distinct) > frame.length:
            return alone, None
        columns = dict(zip(self._outer, unpack(distinct, counts), strict=True))
        return _start(len(distinct), columns), distinct.searchsorted(keys)


def _start(length: int, columns: dict[str, np.ndarray]) -> Frame:
    return Frame(length, {**columns, PLACE: np.arange(length, dtype=np.int32)})
