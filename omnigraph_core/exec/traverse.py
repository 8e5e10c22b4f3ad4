"""The expand step: rows in, rows with the far end of a traversal out.

How many matches each row has is known before any is made, so the output is cut into portions, and
where only the number or the presence of matches matters, none is made at all.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.exec.closing import LinkTest
from omnigraph_core.exec.ends import EndFilter
from omnigraph_core.exec.expand import at, counts_of_all, cut, positions_of, slices_of, sums_by_row
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.pairs import are_linked, slices_between
from omnigraph_core.exec.scope import PORTION_ROWS
from omnigraph_core.exec.shrink import shrinking
from omnigraph_core.exec.walk import Walk
from omnigraph_core.plan.steps import Making

if TYPE_CHECKING:
    from collections.abc import Collection

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.scope import Scope, Sink
    from omnigraph_core.exec.walk import Part
    from omnigraph_core.plan.steps import ExpandStep
    from omnigraph_core.topology.neighbours import Neighbours

_TALLY_SHARE: Final = 4
"""Counting for all nodes costs about as much as counting this share of all edges row by row."""


class Traversal:
    """One expand step of a running match."""

    __slots__ = (
        "_asked", "_emit", "_ends", "_is_test", "_kept", "_op", "_run", "_scope", "_step",
        "_tally", "_test", "_walk",
    )  # fmt: skip

    def __init__(self, run: Run, step: ExpandStep, scope: Scope, emit: Sink) -> None:
        op = step.op
        self._run = run
        self._step = step
        self._op = op
        self._scope = scope
        self._kept = scope.kept(step.needed)
        is_presence = step.making is Making.EXISTS and not op.dst_filters and not op.is_closing
        self._walk = Walk(run, op, step.label, is_presence=is_presence)
        self._ends = EndFilter(run, op)
        self._test = LinkTest(run, op)
        self._is_test = op.is_closing and op.edge_binding is None
        """Rows are kept or dropped and nothing else."""
        self._emit = shrinking(run, step, scope, emit)
        self._tally: np.ndarray | None = None
        self._asked = 0

    def __call__(self, frame: Frame) -> bool:
        """Take rows and hand on what they become."""
        self._run.guard.check()
        if (bound := self._bound(frame)) is not None:
            frame = frame.where(bound)
        if not frame.length:
            return True
        if self._is_test or self._step.making is not Making.ROWS:
            return self._push_counted(frame)
        for part in self._walk.parts(frame.numbers[self._op.src_var]):
            if not self._push_rows(_rows_of(part, frame), part):
                return False
        return True

    def matches(self, frame: Frame) -> np.ndarray:
        """How many matches each row has; of a closing expand that binds no edge, whether."""
        if (bound := self._bound(frame)) is None:
            return self._counts(frame)
        found = np.zeros(frame.length, np.int64)
        places = np.flatnonzero(bound)
        if len(places):
            found[places] = self._counts(frame.take(places))
        return found

    def _bound(self, frame: Frame) -> np.ndarray | None:
        """Which rows have what the step starts from; None if all do."""
        op, nullable = self._op, self._scope.nullable
        bound: np.ndarray | None = None
        if op.src_var in nullable:
            bound = frame.numbers[op.src_var] >= 0
        if op.is_closing and op.dst_var in nullable:
            is_ended = frame.numbers[op.dst_var] >= 0
            bound = is_ended if bound is None else bound & is_ended
        return bound

    # Presence and number

    def _push_counted(self, frame: Frame) -> bool:
        counts = self._counts(frame)
        places = np.flatnonzero(counts)
        if not len(places):
            return True
        is_all = len(places) == frame.length
        frame = frame.keeping(self._kept)
        frame = frame if is_all else frame.take(places)
        if self._step.making is Making.COUNT and not self._is_test:
            frame = frame.weighted(counts if is_all else counts.take(places))
        return self._emit(frame)

    def _counts(self, frame: Frame) -> np.ndarray:
        found: np.ndarray | None = None
        for part in self._walk.parts(frame.numbers[self._op.src_var]):
            counts = self._counts_in(_rows_of(part, frame), part)
            if part.places is None:
                return counts
            if found is None:
                found = np.zeros(frame.length, np.int64)
            found[part.places] = counts
        return np.zeros(frame.length, np.int64) if found is None else found

    def _counts_in(self, frame: Frame, part: Part) -> np.ndarray:
        op = self._op
        if not op.is_closing:
            starts, counts = slices_of(part.neighbours, part.numbers)
            return counts if self._ends.is_open else self._passing(part, starts, counts)
        targets = frame.numbers[op.dst_var]
        if op.edge_binding is not None:
            return slices_between(part.neighbours, part.numbers, targets)[1]
        if self._walk.is_direct:
            return self._test.holds(part.neighbours, part.numbers, targets)
        return are_linked(part.neighbours, part.numbers, targets)

    def _passing(self, part: Part, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """How many neighbours of each row pass the conditions on the far end."""
        self._asked += int(counts.sum())
        if self._tally is None and self._walk.is_direct:
            edge_count = part.neighbours.entry_count
            if self._asked * _TALLY_SHARE > edge_count:
                mask = self._ends.mask()
                if mask is None:
                    return counts
                self._run.guard.expect(12 * edge_count, self._step.label)
                self._tally = counts_of_all(part.neighbours, mask)
        if self._tally is not None:
            return self._tally.take(part.numbers)
        return self._passing_one_by_one(part.neighbours, starts, counts)

    def _passing_one_by_one(
        self, neighbours: Neighbours, starts: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        found: list[np.ndarray] = []
        for start, end in cut(counts, repeat(PORTION_ROWS)):
            self._run.guard.check()
            some = counts[start:end]
            positions = positions_of(starts[start:end], some, int(some.sum()))
            keep = self._ends.keep(at(neighbours.targets, positions))
            found.append(some if keep is None else sums_by_row(keep, some))
        return found[0] if len(found) == 1 else np.concatenate(found)

    # Rows

    def _push_rows(self, frame: Frame, part: Part) -> bool:
        op, neighbours = self._op, part.neighbours
        if op.is_closing:
            starts, counts = slices_between(neighbours, part.numbers, frame.numbers[op.dst_var])
        else:
            starts, counts = slices_of(neighbours, part.numbers)
        total = int(counts.sum())
        frame = frame.keeping(self._kept)
        if total <= self._scope.pace.rows:
            return total == 0 or self._push_portion(frame, neighbours, starts, counts, total)
        for start, end in cut(counts, self._scope.pace.limits()):
            self._run.guard.check()
            some = counts[start:end]
            portion = int(some.sum())
            if portion and not self._push_portion(
                frame.slice(start, end), neighbours, starts[start:end], some, portion
            ):
                return False
        return True

    def _push_portion(
        self,
        frame: Frame,
        neighbours: Neighbours,
        starts: np.ndarray,
        counts: np.ndarray,
        total: int,
    ) -> bool:
        """Make the rows of some slices: each row as often as it has matches, beside them."""
        self._run.guard.expect(total * (24 + 4 * len(frame.numbers)), self._step.label)
        op = self._op
        positions = positions_of(starts, counts, total)
        made: dict[str, np.ndarray] = {}
        keep: np.ndarray | None = None
        if not op.is_closing and (op.dst_var in self._kept or not self._ends.is_open):
            made[op.dst_var] = at(neighbours.targets, positions)
            keep = self._ends.keep(made[op.dst_var])
        if op.edge_binding in self._kept and op.edge_binding is not None:
            made[op.edge_binding] = at(neighbours.edges, positions)
        if keep is None:
            return self._emit(_repeated(frame, counts, total, _only(made, self._kept)))
        kept = np.flatnonzero(keep)
        return not len(kept) or self._emit(_picked(frame, counts, kept, _only(made, self._kept)))


def _rows_of(part: Part, frame: Frame) -> Frame:
    return frame if part.places is None else frame.take(part.places)


def _only(made: dict[str, np.ndarray], kept: Collection[str]) -> dict[str, np.ndarray]:
    return {name: array for name, array in made.items() if name in kept}


def _repeated(frame: Frame, counts: np.ndarray, total: int, made: dict[str, np.ndarray]) -> Frame:
    numbers = {name: np.repeat(array, counts) for name, array in frame.numbers.items()}
    weights = None if frame.weights is None else np.repeat(frame.weights, counts)
    return Frame(total, numbers | made, weights)


def _picked(
    frame: Frame, counts: np.ndarray, kept: np.ndarray, made: dict[str, np.ndarray]
) -> Frame:
    picked = {name: array.take(kept) for name, array in made.items()}
    if frame.weights is None and len(frame.numbers) <= 1:
        # A single column is as quickly repeated as the places to take it from.
        alone = {n: np.repeat(array, counts).take(kept) for n, array in frame.numbers.items()}
        return Frame(len(kept), alone | picked)
    places = np.repeat(np.arange(frame.length), counts).take(kept)
    numbers = {name: array.take(places) for name, array in frame.numbers.items()}
    weights = None if frame.weights is None else frame.weights.take(places)
    return Frame(len(kept), numbers | picked, weights)
