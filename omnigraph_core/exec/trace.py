"""What the steps of a run have done: each portion is noted, and `profile` shows the sums.

Steps are told apart by being that very object: two equal ones may stand in one plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.plan.report import Work

if TYPE_CHECKING:
    from omnigraph_core.plan.steps import Step


class Trace:
    """The work of one run by step, or by the name of a part of the result."""

    __slots__ = ("_parts", "_work")

    def __init__(self) -> None:
        self._parts: list[Step | str] = []
        self._work: dict[int | str, Work] = {}

    def add(self, step: Step | str, rows_in: int, rows_out: int, seconds: float) -> None:
        """Note a portion.

        Args:
            seconds: the step's own, without those of the steps after it; of a join, with those of
                its inner steps.
        """
        key, done = _key(step), Work(rows_in, rows_out, seconds)
        known = self._work.get(key)
        if known is None:
            self._parts.append(step)  # kept, so that its identity is not given to another
        self._work[key] = done if known is None else known.plus(done)

    def work_of(self, part: Step | str) -> Work | None:
        """What a step has done so far; None if it was never reached."""
        return self._work.get(_key(part))


def _key(part: Step | str) -> int | str:
    return part if isinstance(part, str) else id(part)
