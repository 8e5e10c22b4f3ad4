"""Rows without repeats, taken portion by portion: of equal rows only the first is held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.exec.frame import concat
from omnigraph_core.exec.group import MERGE_BYTES, distinct_places
from omnigraph_core.exec.project import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.query.typed import TypedExpr

_MOST_WAITING: Final = 2**18


class DistinctFrames:
    """Frames of a match, one row per combination of values of some expressions."""

    def __init__(
        self, run: Run, exprs: Sequence[TypedExpr], clause: str, enough: int | None = None
    ) -> None:
        self._run = run
        self._exprs = exprs
        self._clause = clause
        self._enough = enough
        self._waiting: list[Frame] = []
        self._held = 0
        self._most_waiting = _MOST_WAITING

    def add(self, frame: Frame) -> bool:
        """Take some rows; False when there are enough different ones."""
        if frame.length:
            self._run.guard.check()
            self._hold(self._without_repeats(frame))
            if self._enough is not None or self._length > self._most_waiting:
                self._merge()
        return self._enough is None or self._length < self._enough

    def frame(self) -> Frame | None:
        """The different rows; None if there are none."""
        if not self._waiting:
            return None
        self._merge()
        return self._waiting[0]

    @property
    def _length(self) -> int:
        return sum(frame.length for frame in self._waiting)

    def _without_repeats(self, frame: Frame) -> Frame:
        places = distinct_places(self._run, Rows(frame), self._exprs)
        return frame if len(places) == frame.length else frame.take(places)

    def _hold(self, frame: Frame) -> None:
        self._run.guard.hold(frame.nbytes, self._clause)
        self._held += frame.nbytes
        self._waiting.append(frame)

    def _merge(self) -> None:
        if len(self._waiting) == 1:
            return
        self._run.guard.expect(self._held + MERGE_BYTES * self._length, self._clause)
        merged = self._without_repeats(concat(self._waiting))
        self._run.guard.release(self._held)
        self._waiting, self._held = [], 0
        self._hold(merged)
        self._most_waiting = max(_MOST_WAITING, 4 * merged.length)
