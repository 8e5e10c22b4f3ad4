"""Merges while the log of commits cannot be written: what was merged is known all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.failpoints import arm
from omnigraph_core.merge.model import MergeOutcome
from tests.faults.writes import records

if TYPE_CHECKING:
    from tests.faults.conftest import Copies

DROP = 'query drop() { delete Part where sku = "new" }'


def test_a_base_among_commits_that_nobody_could_record(copies: Copies) -> None:
    """`first` has what `second` was forked from; what main has dropped since does not come back."""
    address = copies.of("written")
    og = Omnigraph.open(address)
    og.branch_create("first")
    og.load(records(["new"]), branch="first")
    fork = og.head_commit_id_for_branch("first")
    og.branch_create("second", source="first")
    og.load(records(["newer"]), branch="first")
    with arm("log.before_append", "error"):
        og.branch_merge("first")
    og.mutate(DROP)
    og.load(records(["late"]), branch="second")
    result = Omnigraph.open(address).branch_merge("second")
    assert (result.outcome, result.base_commit_id) == (MergeOutcome.MERGED, fork)
    skus = og.table(og.snapshot(), "node:Part").read(["sku"])["sku"].to_pylist()
    assert "new" not in skus
    assert {"newer", "late"} <= set(skus)
