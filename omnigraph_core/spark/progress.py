"""How many rows the tasks of a running job have done, by the names of the objects they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.storage.scratch import Scratch
    from omnigraph_core.write.progress import Reporter, Step


class RowProgress:
    """Reports rows of tasks that are done.

    A task leaves an object `<kind>-<task>-<rows>-…`. A task that was done twice counts once.
    """

    def __init__(self, scratch: Scratch, reporter: Reporter, kind: str, *steps: Step) -> None:
        self._scratch = scratch
        self._reporter = reporter
        self._kind = kind
        self._steps = steps
        self._reported = 0

    def tell(self, done: int) -> None:
        """Report the rows so far; a listener of a job, which says how many tasks are done."""
        rows = {}
        for name in self._scratch.names(f"{self._kind}-"):
            _, task, count, *_ = name.split("-")
            rows[task] = int(count)
        self.end(sum(rows.values()))

    def end(self, rows: int) -> None:
        """Report the rows of all tasks."""
        for step in self._steps:
            self._reporter.add(step, max(rows - self._reported, 0))
        self._reported = max(rows, self._reported)
