"""A merge and a diff cut into portions tell and leave what one process does, whatever the cuts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import MergeConflicts
from omnigraph_core.spark.runner import InProcessRunner
from tests.support.examples import seeds
from tests.support.merge_worlds import SCHEMA, World, graph_of
from tests.support.spark_merges import diff_on, merge_on

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.merge.model import MergeResult

WAYS: list[dict[str, Any]] = [
    {"strategy": strategy, "resolve": side}
    for side in (None, "ours", "theirs")
    for strategy in ("row", "property")
]


def told(act: Callable[..., MergeResult], into: str, **options: Any) -> object:
    """All that a dry run says."""
    result = act(into=into, dry_run=True, **options)
    return result.outcome, result.tables, result.resolved, result.conflicts


def left(og: Omnigraph, branch: str, act: Callable[..., MergeResult], **options: Any) -> object:
    """What a merge leaves on a branch, or everything that stands in its way."""
    try:
        result = act(into=branch, **options)
    except MergeConflicts as refused:
        return list(refused.conflicts), graph_of(og, branch)
    return result.tables, result.resolved, graph_of(og, branch)


@pytest.mark.parametrize("seed", seeds(900, 1))
def test_portions_tell_and_leave_the_same(tmp_path: Path, seed: int) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    made = World(og, seed)
    made.fill("main")
    og.branch_create("left")
    og.branch_create("right")
    runner, draw = InProcessRunner(), made.random
    for step in range(2):
        made.edit("left", draw.randint(2, 4))
        made.edit("right", draw.randint(2, 4))
        rows = draw.choice((2, 5, 100))
        here = partial(og.branch_merge, "left", engine="local")
        there = partial(merge_on, og, runner, "left", portion_rows=rows)
        for options in draw.sample(WAYS, 2):
            assert told(there, "right", **options) == told(here, "right", **options)
        found = diff_on(og, runner, "left", "right", portion_rows=rows)
        assert found == og.diff_between("left", "right", engine="local")
        options, twin, before = draw.choice(WAYS), f"twin-{step}", f"before-{step}"
        og.branch_create(twin, source="right")
        og.branch_create(before, source="right")
        assert left(og, twin, there, **options) == left(og, "right", here, **options)
        # The other way round as well: the next base is made of two commits.
        left(og, "left", partial(merge_on, og, runner, before, portion_rows=rows), resolve="ours")
