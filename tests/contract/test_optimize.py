"""Optimize: the same rows in fewer files, with the indexes the schema asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.optimize import OptimizeReason
from omnigraph_core.errors import BranchNotFound
from omnigraph_core.manifest.changes import AdoptTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.layout import GRAPH_COMMITS, GRAPH_RUN_ACTORS, GRAPH_RUNS
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.indexes import index_coverage
from omnigraph_core.storage.log import FOLDED_FRAGMENTS, open_log
from omnigraph_core.storage.session import open_store
from tests.support.graphs import (
    BIN,
    HOLDS,
    PART,
    append,
    append_pair,
    append_parts,
    content,
    ids,
    publish,
)
from tests.support.table_writes import stage_delete_where

if TYPE_CHECKING:
    from omnigraph_core.engine.optimize import TableOptimizeStats
    from omnigraph_core.storage.session import Store

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")

IDLE = OptimizeReason.NOTHING_TO_DO
INHERITED = OptimizeReason.INHERITED


def committed(stats: tuple[TableOptimizeStats, ...]) -> tuple[TableOptimizeStats, ...]:
    return tuple(item for item in stats if item.committed)


def reasons(stats: tuple[TableOptimizeStats, ...]) -> dict[str, OptimizeReason | None]:
    return {item.table_key: item.reason for item in stats}


def indexes(og: Omnigraph, key: str, branch: str = "main") -> dict[str, int]:
    """Rows no index covers yet, by index."""
    table = og.table(og.snapshot(branch), key)
    return {coverage.name: coverage.unindexed_rows for coverage in index_coverage(table)}


def test_fewer_files_same_rows(og: Omnigraph) -> None:
    for number in range(4):
        append_pair(og, [f"a{number}", f"b{number}"])
    before = og.snapshot()
    rows = content(og, before)
    every = og.optimize(actor="ann")
    after = og.snapshot()
    assert reasons(every) == {HOLDS: None, BIN: IDLE, PART: None}
    stats = committed(every)
    assert [(item.fragments_removed, item.fragments_added) for item in stats] == [(4, 1), (4, 1)]
    assert content(og, after) == rows == content(og, before)
    assert after.manifest_version == before.manifest_version + 1, "one commit for all tables"
    assert (after.commit.operation, after.commit.actor_id) == ("optimize", "ann")
    for key in (HOLDS, PART):
        entry = after.table(key)
        assert (entry.fragment_count, entry.operation) == (1, TableOperation.COMPACTION)
        assert entry.row_count == 8 == og.table(after, key).count_rows()
    assert after.table(BIN) == before.table(BIN)


def test_the_indexes_of_the_schema_are_built_and_completed(og: Omnigraph) -> None:
    append_pair(og, ["a", "b"])
    (holds, part) = committed(og.optimize())
    assert indexes(og, PART) == dict.fromkeys(part.indexes_built, 0)
    assert indexes(og, HOLDS) == dict.fromkeys(holds.indexes_built, 0)
    assert {"id_btree", "name_inverted"} <= set(part.indexes_built)
    assert {"src_btree", "dst_btree"} <= set(holds.indexes_built)
    assert (part.fragments_removed, part.fragments_added) == (0, 0)
    assert og.snapshot().table(PART).operation is TableOperation.INDEX
    append_parts(og, ["c"])
    assert set(indexes(og, PART).values()) == {1}
    og.optimize()
    assert set(indexes(og, PART).values()) == {0}
    assert ids(og, og.snapshot()) == ["a", "b", "c"]
    assert og.entity_at(PART, "c", version=og.snapshot().manifest_version) is not None


def test_nothing_to_do_is_no_commit(og: Omnigraph) -> None:
    nothing = {HOLDS: IDLE, BIN: IDLE, PART: IDLE}
    assert reasons(og.optimize()) == nothing
    append_pair(og, ["a"])
    og.optimize()
    settled = og.snapshot()
    again = og.optimize()
    assert reasons(again) == nothing
    assert not any(item.fragments_removed or item.indexes_built for item in again)
    assert og.snapshot() == settled


def test_deleted_rows_are_left_out(og: Omnigraph) -> None:
    append_parts(og, [f"p{number}" for number in range(10)])
    snapshot = og.snapshot()
    fewer = stage_delete_where(og.table(snapshot, PART), "`id` <> 'p3'")
    assert fewer is not None
    publish(og, snapshot, {PART: fewer}, TableOperation.DELETE)
    (stats,) = committed(og.optimize())
    assert (stats.table_key, stats.fragments_removed, stats.fragments_added) == (PART, 1, 1)
    table = og.table(og.snapshot(), PART)
    assert [f.physical_rows for f in table.dataset.get_fragments()] == [1]
    assert ids(og, og.snapshot()) == ["p3"]


def test_a_branch_is_optimized_by_itself(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    append_parts(og, ["b"])
    og.branch_create("review")
    before = og.snapshot()
    assert reasons(og.optimize(branch="review")) == dict.fromkeys((HOLDS, BIN, PART), INHERITED)
    assert og.snapshot("review").tables == before.tables
    append(og, BIN, ["bin"], "review")
    stats = og.optimize(branch="review")
    assert reasons(stats) == {HOLDS: INHERITED, BIN: None, PART: INHERITED}
    assert og.snapshot("review").table(PART) == before.table(PART), "still shared"
    stats = og.optimize(branch="review", include_inherited=True)
    assert reasons(stats) == {HOLDS: IDLE, BIN: IDLE, PART: None}
    assert og.snapshot() == before
    assert og.snapshot("review").table(PART).fragment_count == 1
    assert ids(og, og.snapshot("review")) == ids(og, og.snapshot()) == ["a", "b"]
    with pytest.raises(BranchNotFound):
        og.optimize(branch="nope")


def test_writes_go_on_after_it(og: Omnigraph) -> None:
    for number in range(3):
        append_pair(og, [str(number)])
        append(og, BIN, [str(number)])
        og.optimize()
    for key in (PART, BIN, HOLDS):
        assert ids(og, og.snapshot(), key) == ["0", "1", "2"]


def test_what_main_has_adopted_is_its_own(og: Omnigraph) -> None:
    og.branch_create("review")
    append_parts(og, ["a"], "review")
    append_parts(og, ["b"], "review")
    theirs, ours = og.snapshot("review"), og.snapshot()
    adopted = AdoptTable(theirs.table(PART), theirs.read_at)
    og.commit([adopted], requirements_of(ours, touched=[PART]))
    assert og.snapshot().table(PART).branch == "review"
    assert reasons(og.optimize()) == {HOLDS: IDLE, BIN: IDLE, PART: None}
    assert og.snapshot().table(PART).fragment_count == 1
    assert ids(og, og.snapshot("review")) == ids(og, og.snapshot()) == ["a", "b"]


def test_the_logs_are_folded(og: Omnigraph) -> None:
    store = open_store(og.uri)
    for number in range(6):
        append_parts(og, [str(number)])
        og.list_commits()  # whoever lists completes the log
        og.begin_run(operation_hash=str(number), actor="ann")
    listed, runs = og.list_commits(), og.list_runs()
    assert fragments(store, GRAPH_COMMITS) > FOLDED_FRAGMENTS
    assert fragments(store, GRAPH_RUNS) > FOLDED_FRAGMENTS
    og.optimize()
    for path in (GRAPH_COMMITS, GRAPH_RUNS, GRAPH_RUN_ACTORS):
        assert 0 < fragments(store, path) <= FOLDED_FRAGMENTS
    for handle in (og, Omnigraph.open(og.uri)):
        assert handle.list_commits()[1:] == listed
        assert handle.list_runs() == runs
    append_parts(og, ["more"])
    assert og.list_commits()[2:] == listed


def fragments(store: Store, path: str) -> int:
    log = open_log(store, path)
    return 0 if log is None else log.count_fragments()
