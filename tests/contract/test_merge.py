"""Merging on every store: outcomes, parents, conflicts, picks, reverts and resets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import MergeConflicts
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.merge.model import MergeOutcome
from tests.support.graphs import BIN, HOLDS, PART, append, append_parts, content, ids

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")


def test_forward_merged_and_up_to_date(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    og.branch_create("side")
    append_parts(og, ["s"], "side")
    forward = og.branch_merge("side", actor="ann")
    assert forward.outcome is MergeOutcome.FAST_FORWARD
    assert content(og, og.snapshot()) == content(og, og.snapshot("side"))
    append_parts(og, ["m"])
    append_parts(og, ["t"], "side")
    parents = og.head_commit_id_for_branch(), og.head_commit_id_for_branch("side")
    merged = og.branch_merge("side")
    assert merged.outcome is MergeOutcome.MERGED
    assert merged.commit is not None
    assert merged.commit.parents == parents
    assert ids(og, og.snapshot()) == ["a", "m", "s", "t"]
    assert og.branch_merge("side").outcome is MergeOutcome.ALREADY_UP_TO_DATE
    assert {commit.graph_commit_id for commit in og.list_commits()} >= set(parents)


def test_a_conflict_and_its_resolution(og: Omnigraph) -> None:
    og.branch_create("side")
    for branch, stock in (("main", 1), ("side", 2)):
        record = f'{{"type": "Part", "data": {{"sku": "a", "stock": {stock}}}}}'
        og.load(record.encode(), branch=branch)
    before = og.snapshot()
    with pytest.raises(MergeConflicts, match=r"node:Part:a \(divergent_insert\)"):
        og.branch_merge("side")
    assert og.snapshot() == before
    og.branch_merge("side", choices={(PART, "a"): "theirs"})
    assert og.table(og.snapshot(), PART).read(["stock"]).to_pydict() == {"stock": [2]}


def test_rows_of_two_tables_that_need_each_other(og: Omnigraph) -> None:
    append(og, BIN, ["bin"])
    append_parts(og, ["a"])
    og.branch_create("side")
    append(og, HOLDS, ["a"], "side")
    og.mutate('query q() { delete Part where sku = "a" }')
    found = og.branch_merge("side", dry_run=True).conflicts
    assert [(item.table_key, item.row_id, str(item.kind)) for item in found] == [
        (HOLDS, "a", "orphan_edge")
    ]


def test_branches_merged_at_the_same_time(og: Omnigraph) -> None:
    names = [f"b{number}" for number in range(4)]
    for name in names:
        og.branch_create(name)
        append_parts(og, [name], name)
    with ThreadPoolExecutor(len(names)) as pool:
        done = list(pool.map(og.branch_merge, names))
    assert ids(og, og.snapshot()) == names
    outcomes = [result.outcome for result in done]
    assert outcomes.count(MergeOutcome.FAST_FORWARD) == 1
    assert outcomes.count(MergeOutcome.MERGED) == 3
    for name in names:
        assert og.branch_merge(name).outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_pick_revert_and_reset(og: Omnigraph) -> None:
    start = og.head_commit_id_for_branch()
    og.branch_create("side")
    append_parts(og, ["a"], "side")
    picked = append_parts(og, ["b"], "side").graph_commit_id
    og.cherry_pick(picked)
    assert ids(og, og.snapshot()) == ["b"]
    og.revert(og.head_commit_id_for_branch())
    assert ids(og, og.snapshot()) == []
    og.branch_reset("main", ReadTarget(branch="side"), confirm=True)
    assert ids(og, og.snapshot()) == ["a", "b"]
    og.branch_reset("main", start, confirm=True)
    assert ids(og, og.snapshot()) == []
    operations = [commit.operation for commit in og.list_commits(limit=4)]
    assert operations == ["reset", "reset", "revert", "cherry_pick"]
