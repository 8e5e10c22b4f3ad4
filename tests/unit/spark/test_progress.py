"""Rows of tasks that are done are reported while others run."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from omnigraph_core.spark.progress import RowProgress
from omnigraph_core.write.progress import Progress, Reporter, Step

if TYPE_CHECKING:
    from omnigraph_core.storage.scratch import Scratch


class Left:
    """Names that tasks have left."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def names(self, kind: str) -> list[str]:
        return [name for name in self.all if name.startswith(kind)]


def test_a_task_that_was_done_twice_counts_once() -> None:
    reported: list[Progress] = []
    left = Left()
    progress = RowProgress(
        cast("Scratch", left), Reporter(reported.append), "read", Step.READ, Step.STAGED
    )
    left.all = ["read-0-10-A", "read-0-10-B", "reading-9-9-A"]
    progress.tell(1)
    left.all += ["read-1-5-A"]
    progress.tell(2)
    progress.end(15)
    assert reported == [
        Progress(step, rows) for rows in (10, 15) for step in (Step.READ, Step.STAGED)
    ]
