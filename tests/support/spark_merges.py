"""Merges and diffs for tests of Spark, as functions of a runner; arguments and results are JSON.

Whoever holds a session can be told to do them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.spark.merge.entry import diff_on, merge_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.merge.model import MergeResult
    from omnigraph_core.spark.runner import Runner


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
