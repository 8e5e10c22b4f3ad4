"""What merges are compared with outlives cleanup, however the branches came to share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import new_graph, part, put, rows
from tests.support.ageing import clean_up

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def staged(tmp_path: Path) -> Omnigraph:
    """What dev made went on to prod by way of staging, which then got more of it."""
    og = new_graph(tmp_path / "g")
    for branch in ("dev", "staging", "prod"):
        og.branch_create(branch)
    put(og, "dev", part("d1"))
    og.branch_merge("dev", into="staging")
    og.branch_merge("staging", into="prod")
    put(og, "dev", part("d2"))
    og.branch_merge("dev", into="staging")
    put(og, "dev", part("d3"))
    put(og, "prod", part("o1"))
    return og


@pytest.mark.parametrize(("source", "target"), [("dev", "prod"), ("prod", "dev")])
def test_a_base_that_came_by_way_of_a_third_branch(
    staged: Omnigraph, source: str, target: str
) -> None:
    clean_up(staged, keep=1)
    assert staged.branch_merge(source, into=target).outcome is MergeOutcome.MERGED
    assert {"d1", "d3", "o1"} <= rows(staged, target).keys()


def test_also_when_the_third_branch_is_gone(staged: Omnigraph) -> None:
    staged.branch_delete("staging")
    clean_up(staged, keep=1)
    assert staged.branch_merge("dev", into="prod").outcome is MergeOutcome.MERGED


def test_what_no_merge_needs_still_goes(staged: Omnigraph) -> None:
    staged.branch_delete("staging")
    staged.branch_delete("prod")
    staged.branch_merge("dev")
    staged.branch_delete("dev")
    report = clean_up(staged, keep=1)
    kept = {branch.branch: branch.versions_kept for branch in report.branches}
    assert kept == {"main": 1, "dev": 0, "staging": 0, "prod": 0}
