"""The way from the engine to merges and diffs on Spark, and for those who bring a runner.

Rights, attempts, checks of rules and the one commit are the engine's. What grows with the rows is
done by tasks; until the commit nothing is visible, whatever becomes of them.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from omnigraph_core.engine.diffs import diff_by
from omnigraph_core.engine.merging import merge_by
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.merge.model import MergeStrategy
from omnigraph_core.spark.merge.workers import PORTION_ROWS, ByNumber, Executors, executors
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.spark.settings import MERGE_FROM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.diff.model import ChangeFilter, ChangeSet
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.merge.model import MergeResult, MergeSide
    from omnigraph_core.merge.workers import MergeWorkers
    from omnigraph_core.spark.runner import Runner
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


def merge_on(
    graph: Omnigraph,
    runner: Runner,
    source: str,
    *,
    into: str = MAIN,
    strategy: MergeStrategy | str = MergeStrategy.ROW,
    resolve: MergeSide | str | None = None,
    choices: Mapping[tuple[str, str], str] | None = None,
    dry_run: bool = False,
    portion_rows: int = PORTION_ROWS,
    actor: str | None = None,
) -> MergeResult:
    """Merge branches as `Omnigraph.branch_merge` does, by the tasks of a runner.

    Args:
        portion_rows: rows that one task has to do with, about.

    Raises:
        What `Omnigraph.branch_merge` raises.
        JobFailed: a task could not be carried out; nothing was committed.
    """
    with executors(runner, graph._context.store, portion_rows=portion_rows) as others:
        return merge_by(
            graph,
            others,
            source,
            into=into,
            strategy=strategy,
            resolve=resolve,
            choices=choices,
            dry_run=dry_run,
            actor=actor,
        )


def diff_on(
    graph: Omnigraph,
    runner: Runner,
    source: str | ReadTarget,
    target: str | ReadTarget,
    filter: ChangeFilter | None = None,
    *,
    has_values: bool = True,
    limit: int | None = None,
    portion_rows: int = PORTION_ROWS,
) -> ChangeSet:
    """Compare states as `Omnigraph.diff_between` does, by the tasks of a runner.

    Args:
        portion_rows: rows that one task has to do with, about.

    Raises:
        What `Omnigraph.diff_between` raises.
        JobFailed: a task could not be carried out.
    """
    with executors(runner, graph._context.store, portion_rows=portion_rows) as others:
        return diff_by(graph, others, source, target, filter, has_values=has_values, limit=limit)
