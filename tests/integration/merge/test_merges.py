"""Merges of branches: outcomes, strategies, resolutions, and what is read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    MergeConflicts,
    PreconditionFailed,
)
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.merge.model import MergeOutcome
from tests.integration.merge.small_graph import (
    BIN,
    FITS,
    HOLDS,
    PART,
    bin,
    change,
    column,
    dispositions,
    drop,
    evolve,
    fits,
    graph,
    holds,
    new_graph,
    part,
    put,
    rows,
    told,
)
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Main and `side`, at the same commit."""
    graph = new_graph(tmp_path / "graph")
    graph.branch_create("side")
    return graph


# Outcomes


def test_the_source_has_nothing_new(og: Omnigraph) -> None:
    put(og, "main", part("p9"))
    before = og.head_commit_id_for_branch()
    result = og.branch_merge("side")
    assert (result.outcome, result.commit) == (MergeOutcome.ALREADY_UP_TO_DATE, None)
    assert og.head_commit_id_for_branch() == before


def test_a_fast_forward_makes_the_target_what_the_source_is(og: Omnigraph) -> None:
    put(og, "side", part("p1", stock=2), holds("h2", "b2", "p2"))
    drop(og, "side", "p3")
    parents = og.head_commit_id_for_branch(), og.head_commit_id_for_branch("side")
    result = og.branch_merge("side", actor="ann")
    assert result.outcome is MergeOutcome.FAST_FORWARD
    assert dispositions(result) == {PART: "adopted", HOLDS: "adopted"}
    assert graph(og, "main") == graph(og, "side")
    assert result.commit is not None
    assert result.commit.parents == parents
    assert (result.commit.actor_id, result.commit.operation) == ("ann", "merge")
    entry, source = og.snapshot().table(PART), og.snapshot("side").table(PART)
    assert entry.physical_version == source.physical_version
    assert entry.table_version == 3, "the target's own count goes on"
    assert og.branch_merge("side").outcome is MergeOutcome.ALREADY_UP_TO_DATE


@pytest.mark.parametrize("target", ["main", "apart"])
def test_a_fast_forward_and_an_adopted_table_read_no_data(
    og: Omnigraph, target: str, tmp_path: Path
) -> None:
    og.branch_create("apart")
    evolve(og, "apart", ("code: String @key", "code: String @key\n}\nnode Note {\n  text: String?"))
    put(og, "side", part("p1", stock=2), holds("h2", "b2", "p2"))
    put(og, "side", bin("b9"))
    kept = {path: path.rename(path.with_name("away")) for path in tmp_path.rglob("*/data")
            if path.parent.parent.name in ("nodes", "edges")}  # fmt: skip
    assert kept
    og = Omnigraph.open(og.uri)
    result = og.branch_merge("side", into=target)
    assert dispositions(result) == {PART: "adopted", HOLDS: "adopted", BIN: "adopted"}
    for path, moved in kept.items():
        moved.rename(path)
    assert column(og, target, "stock")["p1"] == 2


def test_both_sides_have_something(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=10))
    put(og, "side", part("p2", stock=20), part("p9"), bin("b9"))
    drop(og, "side", "p4")
    parents = og.head_commit_id_for_branch(), og.head_commit_id_for_branch("side")
    result = og.branch_merge("side")
    assert result.outcome is MergeOutcome.MERGED
    assert dispositions(result) == {PART: "merged", BIN: "adopted"}
    merged = next(table for table in result.tables if table.table_key == PART)
    assert (merged.inserted, merged.updated, merged.deleted) == (1, 1, 1)
    assert column(og, "main", "stock") == {"p1": 10, "p2": 20, "p3": 1, "p9": None}
    assert result.commit is not None
    assert result.commit.parents == parents
    assert og.snapshot().table(PART).operation is TableOperation.MERGE
    assert og.snapshot().table(PART).row_count == 4
    assert og.branch_merge("side").outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_merged_back_and_forth(og: Omnigraph) -> None:
    for round in range(3):
        put(og, "main", part(f"m{round}"), part("p1", stock=round))
        put(og, "side", part(f"s{round}"), part("p2", stock=round))
        assert og.branch_merge("side").outcome is MergeOutcome.MERGED
        assert og.branch_merge("main", into="side").outcome is MergeOutcome.FAST_FORWARD
        assert graph(og, "main") == graph(og, "side")
    assert len(rows(og, "main")) == 10


def test_work_that_cancels_itself_out(og: Omnigraph) -> None:
    put(og, "side", part("p9"))
    drop(og, "side", "p9")
    before = graph(og, "main")
    assert og.branch_merge("side").outcome is MergeOutcome.FAST_FORWARD
    og.branch_create("left")
    put(og, "left", part("p9"))
    drop(og, "left", "p9")
    put(og, "main", part("p8"))
    drop(og, "main", "p8")
    result = og.branch_merge("left")
    assert (result.outcome, dispositions(result)) == (MergeOutcome.MERGED, {})
    assert graph(og, "main") == before
    assert og.branch_merge("left").outcome is MergeOutcome.ALREADY_UP_TO_DATE


def test_rows_that_were_only_moved(og: Omnigraph) -> None:
    put(og, "side", part("p2", stock=5))
    og.branch_create("tidied")
    for n in range(3):
        put(og, "tidied", part("p3", stock=n))
    og.optimize(branch="tidied")
    og.optimize(branch="side")
    result = og.branch_merge("side", into="tidied")
    assert dispositions(result)[PART] == "merged"
    assert column(og, "tidied", "stock") == {"p1": 1, "p2": 5, "p3": 2, "p4": 1}
    og.optimize(branch="tidied")
    put(og, "side", part("p2", stock=5))
    og.optimize(branch="side")
    before = og.snapshot("tidied").table(PART)
    result = og.branch_merge("side", into="tidied")
    assert (result.outcome, dispositions(result)) == (MergeOutcome.MERGED, {})
    assert og.snapshot("tidied").table(PART) == before


# Refusals


def test_names(og: Omnigraph) -> None:
    with pytest.raises(ConfigError, match="distinct source and target"):
        og.branch_merge(" main ")
    with pytest.raises(ConfigError, match="distinct source and target"):
        og.branch_merge("side", into=" side")
    with pytest.raises(ConfigError, match="reserved for internal use"):
        og.branch_merge("__run__1")
    with pytest.raises(BranchNotFound):
        og.branch_merge("nowhere")
    with pytest.raises(BranchNotFound):
        og.branch_merge("side", into="nowhere")
    with pytest.raises(ConfigError, match="no strategy `magic`"):
        og.branch_merge("side", strategy="magic")
    with pytest.raises(ConfigError, match="no side `mine`"):
        og.branch_merge("side", resolve="mine")


def test_only_on_the_expected_head(og: Omnigraph) -> None:
    put(og, "side", part("p9"))
    old = og.head_commit_id_for_branch()
    put(og, "main", part("p8"))
    with pytest.raises(PreconditionFailed):
        og.branch_merge("side", if_commit=old)
    now = og.head_commit_id_for_branch()
    with meanwhile(lambda: put(og, "main", bin("b7"))), pytest.raises(PreconditionFailed):
        og.branch_merge("side", if_commit=now)
    result = og.branch_merge("side", if_commit=og.head_commit_id_for_branch())
    assert result.outcome is MergeOutcome.MERGED


# Conflicts


def divided(og: Omnigraph) -> None:
    """One conflict of each kind that a choice settles, and a row that is none."""
    put(og, "main", part("p1", stock=2), part("p9", stock=3), part("p2", name="ours", stock=1))
    drop(og, "main", "p3")
    put(og, "main", part("p4", stock=7))
    put(og, "side", part("p1", stock=4), part("p9", stock=5), part("p2", name="theirs", stock=1))
    put(og, "side", part("p3", stock=6))
    drop(og, "side", "p4")


KINDS = [
    (PART, "p1", "divergent_update"),
    (PART, "p2", "divergent_update"),
    (PART, "p3", "delete_vs_update"),
    (PART, "p4", "delete_vs_update"),
    (PART, "p9", "divergent_insert"),
]


def test_every_conflict_is_told_and_nothing_written(og: Omnigraph) -> None:
    divided(og)
    before = og.snapshot()
    with pytest.raises(MergeConflicts) as caught:
        og.branch_merge("side")
    assert caught.value.message == (
        "merge conflicts: node:Part:p1 (divergent_update); node:Part:p2 (divergent_update); "
        "node:Part:p3 (delete_vs_update); and 2 more"
    )
    shown: list[dict[str, Any]] = list(caught.value.conflicts)
    assert [(item["table_key"], item["row_id"], item["kind"]) for item in shown] == KINDS
    by_id = {item["row_id"]: item for item in shown}
    assert [by_id["p1"][side]["stock"] for side in ("base", "ours", "theirs")] == [1, 2, 4]
    assert by_id["p1"]["properties"] == ["stock"]
    assert (by_id["p3"]["ours"], by_id["p4"]["theirs"], by_id["p9"]["base"]) == (None, None, None)
    assert by_id["p9"]["properties"] == ["stock"]
    assert og.snapshot() == before


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("strategy", ["row", "property"])
def test_one_side_wins_everything(og: Omnigraph, side: str, strategy: str) -> None:
    divided(og)
    put(og, "side", part("p8"))
    result = og.branch_merge("side", resolve=side, strategy=strategy)
    assert (result.resolved, result.conflicts) == (5, ())
    wanted = rows(og, "side") if side == "theirs" else {**rows(og, "main")}
    assert rows(og, "main") == wanted | {"p8": {"id": "p8", "sku": "p8"}}


def test_choices_for_single_rows(og: Omnigraph) -> None:
    divided(og)
    choices = {(PART, "p1"): "theirs", (PART, "p3"): "theirs", (PART, "p4"): "ours"}
    found = og.branch_merge("side", choices=choices, dry_run=True)
    assert told(found) == [KINDS[1], KINDS[4]]
    assert found.resolved == 3
    og.branch_merge("side", choices=choices, resolve="ours")
    assert column(og, "main", "stock") == {"p1": 4, "p2": 1, "p3": 6, "p4": 7, "p9": 3}


def test_choices_for_what_is_not_in_conflict(og: Omnigraph) -> None:
    divided(og)
    choices = {(PART, "p1"): "ours", (PART, "zz"): "ours", ("node:Ghost", "p1"): "theirs"}
    with pytest.raises(ConfigError) as caught:
        og.branch_merge("side", choices=choices)
    assert "node:Ghost:p1: there is no such conflict" in caught.value.message
    assert "node:Part:zz: there is no such conflict" in caught.value.message
    assert "node:Part:p1" not in caught.value.message


def test_property_by_property(og: Omnigraph) -> None:
    change(og, "main", 'update Part set { stock: 9, name: "same" } where sku = "p1"')
    change(og, "side", 'update Part set { serial: "x", name: "same" } where sku = "p1"')
    change(og, "main", 'update Part set { stock: 9 } where sku = "p2"')
    change(og, "side", 'update Part set { stock: 8, name: "b" } where sku = "p2"')
    with pytest.raises(MergeConflicts) as caught:
        og.branch_merge("side")
    shown: list[dict[str, Any]] = list(caught.value.conflicts)
    assert "merging by property keeps both" in shown[0]["message"]
    found = og.branch_merge("side", strategy="property", dry_run=True)
    assert told(found) == [(PART, "p2", "divergent_update")]
    assert found.conflicts[0].properties == ("stock",)
    og.branch_merge("side", strategy="property", choices={(PART, "p2"): "ours"})
    both = rows(og, "main")
    assert both["p1"] == {"id": "p1", "sku": "p1", "stock": 9, "name": "same", "serial": "x"}
    assert both["p2"] == {"id": "p2", "sku": "p2", "stock": 9, "name": "b"}


def test_properties_with_bytes_and_vectors(og: Omnigraph) -> None:
    large = "base64:" + "QUJD" * 100_000
    put(og, "main", part("p1", stock=1, shape=[1.0, -0.0]), part("p2", stock=5))
    put(og, "side", part("p1", stock=1, drawing=large), part("p2", stock=1, shape=[0.0, 2.0]))
    og.branch_merge("side", strategy="property")
    both = rows(og, "main")
    assert both["p1"]["drawing"] == large
    assert both["p1"]["shape"] == [1.0, -0.0]
    assert (both["p2"]["stock"], both["p2"]["shape"]) == (5, [0.0, 2.0])
    put(og, "main", part("p1", drawing=large + "QUJD"))
    put(og, "side", part("p1", drawing="base64:QUJD"))
    (conflict,) = og.branch_merge("side", dry_run=True).conflicts
    assert conflict.ours is not None
    assert str(conflict.ours["drawing"]).startswith("300003 bytes, sha256:")
    assert conflict.theirs is not None
    assert str(conflict.theirs["drawing"]).startswith("3 bytes, sha256:")


def test_zeros_of_different_sign_differ(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=1, shape=[0.0, 1.0]))
    put(og, "side", part("p1", stock=1, shape=[-0.0, 1.0]))
    assert told(og.branch_merge("side", dry_run=True)) == [(PART, "p1", "divergent_update")]


# Broken rules


def test_rules_that_only_both_together_break(og: Omnigraph) -> None:
    put(og, "main", part("p5"), part("p6"), part("p7"))
    og.branch_merge("main", into="side")
    put(og, "main", part("p1", serial="x"), holds("h2", "b1", "p2"), fits("f1", "p5", "p6"))
    drop(og, "main", "p4")
    put(og, "side", part("p3", serial="x"), holds("h4", "b1", "p4"), fits("f2", "p5", "p7"))
    drop(og, "side", "p2")
    found = og.branch_merge("side", dry_run=True)
    assert told(found) == [
        (FITS, None, "cardinality_violation"),
        (HOLDS, "h2", "orphan_edge"),
        (HOLDS, "h4", "orphan_edge"),
        (PART, "p3", "unique_violation"),
    ]
    for side in ("ours", "theirs"):
        assert told(og.branch_merge("side", resolve=side, dry_run=True)) == told(found)


def test_properties_of_both_sides_keep_the_rules_of_a_row(og: Omnigraph) -> None:
    put(og, "main", part("p1", stock=1, serial="x"), part("p2", stock=1, name="n"))
    put(og, "side", part("p1", stock=1, name="n"), part("p2", stock=1, serial="x"))
    found = og.branch_merge("side", strategy="property", dry_run=True)
    assert told(found) == [(PART, "p2", "unique_violation")]


def test_a_node_that_goes_with_its_edges_leaves_no_orphan(og: Omnigraph) -> None:
    put(og, "main", part("p9"), bin("b9"))
    drop(og, "side", "p1")
    og.branch_merge("side")
    assert rows(og, "main", HOLDS) == {}
    assert set(rows(og, "main")) == {"p2", "p3", "p4", "p9"}


def test_edges_of_rows_in_conflict_are_no_conflict_of_their_own(og: Omnigraph) -> None:
    drop(og, "main", "p1")
    put(og, "side", part("p1", stock=5), holds("h9", "b2", "p1"))
    assert told(og.branch_merge("side", dry_run=True)) == [(PART, "p1", "delete_vs_update")]
    og.branch_merge("side", resolve="theirs")
    assert set(rows(og, "main", HOLDS)) == {"h9"}


# Dry runs and what is written


def files(path: Path) -> set[str]:
    return {str(item) for item in path.rglob("*") if item.is_file()}


def test_a_dry_run_writes_no_file(og: Omnigraph, tmp_path: Path) -> None:
    put(og, "main", part("p1", stock=2))
    put(og, "side", part("p2", stock=3), part("p1", name="x", stock=1))
    og.list_commits()  # what the log lacks is appended by whoever asks
    og.list_commits("side")
    before, head = files(tmp_path), og.snapshot()
    for strategy in ("row", "property"):
        found = og.branch_merge("side", dry_run=True, strategy=strategy)
        assert (found.is_dry_run, found.commit) == (True, None)
    assert told(found) == []
    with pytest.raises(MergeConflicts):
        og.branch_merge("side")
    assert files(tmp_path) == before
    assert og.snapshot() == head
    result = og.branch_merge("side", strategy="property")
    assert result.tables == found.tables


def test_one_version_for_each_table(og: Omnigraph, tmp_path: Path) -> None:
    put(og, "main", part("p1", stock=2))
    put(og, "side", part("p2", stock=3), part("p8"))
    drop(og, "side", "p3")
    before = files(tmp_path)
    og.branch_merge("side")
    new = [item for item in files(tmp_path) - before if "/nodes/" in item]
    assert sum(item.endswith(".manifest") for item in new) == 1
    assert sum(item.endswith(".lance") for item in new) == 1


# Races


def test_many_conflicts_carry_values_up_to_a_limit(og: Omnigraph) -> None:
    many = [f"x{n:04}" for n in range(1100)]
    put(og, "main", *(part(sku, stock=1) for sku in many))
    put(og, "side", *(part(sku, stock=2) for sku in many))
    found = og.branch_merge("side", dry_run=True).conflicts
    assert [item.row_id for item in found] == many
    assert [item.ours is not None for item in found] == [True] * 1000 + [False] * 100
    assert [item.has_rows for item in found] == [True] * 1000 + [False] * 100
    rows = {"base", "ours", "theirs"}
    assert found[0].to_json().keys() >= rows
    assert not found[-1].to_json().keys() & rows, "null would be a row that is not there"
    assert found[-1].message == "both sides inserted the row, with different values"
