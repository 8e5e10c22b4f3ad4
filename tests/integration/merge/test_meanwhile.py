"""Merges while others move the target, the source or the tables that rules join."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    MergeConflicts,
)
from omnigraph_core.failpoints import arm
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import (
    bin,
    column,
    drop,
    holds,
    new_graph,
    part,
    put,
    rows,
)
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Main and `side`, at the same commit."""
    graph = new_graph(tmp_path / "graph")
    graph.branch_create("side")
    return graph


def test_the_target_moves_meanwhile(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2))
    with meanwhile(lambda: put(og, "main", part("p2", stock=3))):
        result = og.branch_merge("side")
    assert result.outcome is MergeOutcome.MERGED, "what was a fast-forward is none any more"
    assert column(og, "main", "stock") == {"p1": 2, "p2": 3, "p3": 1, "p4": 1}
    put(og, "side", part("p1", stock=4))
    put(og, "main", part("p3", stock=5))
    with meanwhile(lambda: put(og, "main", part("p1", stock=6))), pytest.raises(MergeConflicts):
        og.branch_merge("side")


def test_a_table_that_rules_join_moves_meanwhile(og: Omnigraph) -> None:
    put(og, "main", bin("b9"))
    put(og, "side", holds("h2", "b2", "p2"))
    with meanwhile(lambda: drop(og, "main", "p2")), pytest.raises(MergeConflicts) as caught:
        og.branch_merge("side")
    assert [item["kind"] for item in caught.value.conflicts] == ["orphan_edge"]


def test_the_source_moves_meanwhile(og: Omnigraph) -> None:
    put(og, "side", part("p8"))
    with meanwhile(lambda: put(og, "side", part("p9"))):
        result = og.branch_merge("side", delete_branch=True)
    assert result.source_commit_id != og.head_commit_id_for_branch("side")
    assert not result.is_source_deleted, "it has what was not merged"
    assert og.head_commit_id_for_branch("side") in (result.source_note or "")
    assert "p9" not in rows(og, "main")
    assert og.branch_merge("side").outcome is MergeOutcome.MERGED
    assert "p9" in rows(og, "main")


# Deleting the source


def test_the_source_goes_with_the_merge(og: Omnigraph) -> None:
    put(og, "side", part("p9"))
    assert not og.branch_merge("side", delete_branch=True, dry_run=True).is_source_deleted
    result = og.branch_merge("side", delete_branch=True)
    assert (result.is_source_deleted, result.source_note) == (True, None)
    assert og.branch_list() == ("main",)
    assert len(og.list_commits()) == 4, "its commits stay known"


def test_failing_to_delete_does_not_fail_the_merge(og: Omnigraph) -> None:
    put(og, "side", part("p8"))
    og.branch_create("child", source="side")
    result = og.branch_merge("side", delete_branch=True)
    assert not result.is_source_deleted
    assert "`child`" in (result.source_note or "")
    og.branch_delete("child")
    with arm("merge.after_publish", "error"):
        result = og.branch_merge("side", delete_branch=True)
    assert (result.outcome, result.is_source_deleted) == (MergeOutcome.ALREADY_UP_TO_DATE, False)
    assert result.source_note is not None
