"""The way from the engine to merges and diffs on Spark.

Rights, attempts, checks of rules and the one commit are the engine's. What grows with the rows is
done by tasks; until the commit nothing is visible, whatever becomes of them.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from omnigraph_core.spark.merge.workers import ByNumber, Executors, executors
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.spark.settings import MERGE_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.merge.workers import MergeWorkers
    from omnigraph_core.storage.session import Store


@contextmanager
def workers(store: Store, *, is_asked: bool) -> Iterator[MergeWorkers]:
    """Workers on the session of this process, which is opened when the first of them is needed.

    Args:
        is_asked: for every table of which rows have to be looked at; otherwise for those of which
            many have changed.
    """
    with ExitStack() as stack:

        @cache
        def opened() -> Executors:
            runner = SparkRunner(open_session())
            return stack.enter_context(executors(runner, store))

        yield ByNumber(opened, 0 if is_asked else MERGE_FROM.read())
