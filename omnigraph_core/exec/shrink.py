"""Fewer rows after an expand, where they mean the same: repeats dropped, or added up as weights.

Wraps whoever takes the rows of an expand; which wrapping is right is decided once, from the plan.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from omnigraph_core.exec.dedupe import SeenNumbers, distinct_rows, merged
from omnigraph_core.exec.frame import Frame

if TYPE_CHECKING:
    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.scope import Scope, Sink
    from omnigraph_core.plan.steps import ExpandStep

_MERGE_SHARE: Final = 4
"""Adding up pays from a row for so many numbers."""


def shrinking(run: Run, step: ExpandStep, scope: Scope, emit: Sink) -> Sink:
    """A taker of the expand's rows that hands on fewer, or `emit` itself."""
    if step.is_deduplicating:
        return _Distinct(run, step.label, emit)
    if scope.is_merging and scope.kept(step.needed) == {step.op.dst_var}:
        return partial(_push_merged, run, step.op.dst_var, emit)
    return emit


class _Distinct:
    """Drops rows that came before: all of them if they bind one variable, else in a portion."""

    __slots__ = ("_counts", "_emit", "_label", "_run", "_seen")

    def __init__(self, run: Run, label: str, emit: Sink) -> None:
        self._run = run
        self._label = label
        self._emit = emit
        self._seen: SeenNumbers | None = None
        self._counts: dict[str, int] = {}

    def __call__(self, frame: Frame) -> bool:
        if not frame.numbers:
            # One empty row is like another: nobody needs a second.
            self._emit(Frame(1))
            return False
        ((variable, numbers), *more) = frame.numbers.items()
        if more or variable not in self._run.read.types:
            return self._emit(distinct_rows(frame, self._sizes(frame)))
        if self._seen is None:
            self._seen = SeenNumbers(self._sizes(frame)[variable])
            self._run.guard.hold(self._seen.nbytes, self._label)
        fresh = self._seen.fresh(numbers)
        return not len(fresh) or self._emit(Frame(len(fresh), {variable: fresh}))

    def _sizes(self, frame: Frame) -> dict[str, int]:
        """How many numbers each variable may have; places of outer rows belong to no table."""
        types, sizes = self._run.read.types, self._counts
        for variable, numbers in frame.numbers.items():
            if variable not in types:
                sizes[variable] = int(numbers.max()) + 1
            elif variable not in sizes:
                sizes[variable] = self._run.dense(variable).extent
        return sizes


def _push_merged(run: Run, variable: str, emit: Sink, frame: Frame) -> bool:
    count = run.dense(variable).extent
    if frame.length * _MERGE_SHARE < count:
        return emit(frame)
    return emit(merged(frame, variable, count))
