"""Merges and diffs for tests of Spark, as functions of a runner; arguments and results are JSON.

Whoever holds a session can be told to do them."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.spark.merge import entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from omnigraph_core.diff.model import ChangeSet
    from omnigraph_core.merge.model import MergeResult
    from omnigraph_core.spark.runner import Runner


def merge_on(
    og: Omnigraph, runner: Runner, source: str, *, portion_rows: int, **options: Any
) -> MergeResult:
    """Merge branches by the tasks of a runner, about so many rows each."""
    with _spark_is(runner, portion_rows):
        return og.branch_merge(source, engine="spark", **options)


def diff_on(
    og: Omnigraph, runner: Runner, source: str, target: str, *, portion_rows: int
) -> ChangeSet:
    """Compare branches by the tasks of a runner, about so many rows each."""
    with _spark_is(runner, portion_rows):
        return og.diff_between(source, target, engine="spark")


@contextmanager
def _spark_is(runner: Runner, portion_rows: int) -> Iterator[None]:
    """Merges and diffs on Spark take this runner instead of one on the session of the process."""
    with (
        mock.patch.object(entry, "open_session"),
        mock.patch.object(entry, "SparkRunner", return_value=runner),
        mock.patch.object(entry, "executors", partial(entry.executors, portion_rows=portion_rows)),
    ):
        yield


def merge_there(
    runner: Runner, address: str, source: str, into: str, portion_rows: int, options: dict[str, Any]
) -> Any:
    """What became of a merge in portions."""
    og = Omnigraph.open(address)
    return outcome(
        lambda: merge_on(og, runner, source, into=into, portion_rows=portion_rows, **options)
    )


def diff_there(runner: Runner, address: str, source: str, target: str, portion_rows: int) -> Any:
    """What differs, compared in portions."""
    found = diff_on(Omnigraph.open(address), runner, source, target, portion_rows=portion_rows)
    return found.to_json(has_values=True)


def outcome(act: Callable[[], MergeResult]) -> Any:
    """What a merge did to which table, or everything that stands in its way."""
    try:
        result = act()
    except MergeConflicts as refused:
        return list(refused.conflicts)
    told = result.to_json()
    return [told["outcome"], told["tables"], result.resolved, told["merge_conflicts"]]
