"""Compaction brings fragments and deleted rows down and changes no row, with or without indexes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from omnigraph_core import failpoints
from omnigraph_core.errors import PreconditionFailed, StorageError
from omnigraph_core.storage.compact import compact, plan_compaction, run_task, stage_compaction
from omnigraph_core.storage.dataset import EMPTY_VERSION, create_table, open_table
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import FIELDS, LARGE, by_id, contents, part, parts, present, rows
from tests.support.table_writes import (
    add_null_column,
    drop_column,
    stage_delete_keys,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

ID_INDEX = IndexRequest("id", SegmentKind.BTREE, "id_btree")


def sizes(table: Table) -> list[tuple[int, int]]:
    """Live and deleted rows of each fragment."""
    fragments = [fragment.metadata for fragment in table.dataset.get_fragments()]
    return [(fragment.num_rows, fragment.num_deletions) for fragment in fragments]


def narrow(table: Table, *counts: int, location: str = "nodes/narrow") -> Table:
    """A table of numbers whose fragments have so many rows."""
    schema = pa.schema([FIELDS["id"], FIELDS["stock"]])
    made = create_table(table.store, location, schema)
    first = 0
    for count in counts:
        numbers = range(first, first + count)
        data = pa.table([[str(number) for number in numbers], numbers], schema=schema)
        made = present(stage_append(made, data))
        first += count
    return made


def planned(
    table: Table, target_rows: int = 100, max_deleted_share: float = 0.1
) -> list[list[int]]:
    plan = plan_compaction(table, target_rows=target_rows, max_deleted_share=max_deleted_share)
    return [] if plan is None else [json.loads(task)["fragments"] for task in plan.tasks]


def test_many_small_fragments_become_one(empty: Table) -> None:
    table = empty
    for number in range(70):
        table = present(stage_append(table, rows([part(number)])))
        if number in (10, 20, 30):
            table = present(stage_index(table, ID_INDEX))
    assert table.count_fragments() == 70
    after = present(compact(table))
    assert after.count_fragments() == 1
    assert contents(after) == contents(table) == by_id(parts(range(70)))
    assert after.read().column("id").to_pylist() == [str(number) for number in range(70)]
    assert after.dataset.latest_version == EMPTY_VERSION
    assert contents(open_table(after.store, after.location, after.physical_version)) == contents(
        table
    )
    assert compact(after) is None


def test_deleted_rows_leave_the_files(stocked: Table) -> None:
    table = present(stage_delete_keys(stocked, pa.array(["0", "4"])))
    assert sizes(table) == [(2, 1), (2, 1)]
    after = present(compact(table))
    assert sizes(after) == [(4, 0)]
    assert contents(after) == by_id(parts([1, 2, 3, 5]))


def test_which_fragments_are_rewritten_together(empty: Table) -> None:
    assert planned(narrow(empty, 30, 30, 30, 30)) == [[0, 1, 2]]
    assert compact(narrow(empty, 50, 60, 100, location="nodes/full"), target_rows=100) is None


def test_full_fragments_stay_unless_much_is_deleted(empty: Table) -> None:
    table = narrow(empty, 100, 10, 100, 10)
    assert planned(table) == [[1, 3]]
    table = present(stage_delete_where(table, "`stock` < 10"))
    assert planned(table) == [[1, 3]]
    table = present(stage_delete_where(table, "`stock` = 10"))
    assert planned(table) == [[1, 3], [0]]
    assert planned(table, max_deleted_share=0.5) == [[1, 3]]
    after = present(compact(table, target_rows=100))
    assert sorted(sizes(after)) == [(20, 0), (89, 0), (100, 0)]
    assert sorted(after.read().column("stock").to_pylist()) == list(range(11, 220))
    assert compact(after, target_rows=100) is None


def test_a_lone_small_fragment_is_rewritten_for_its_deletions_only(empty: Table) -> None:
    table = narrow(empty, 20)
    assert planned(table) == []
    table = present(stage_delete_where(table, "`stock` < 2"))
    assert planned(table) == []
    table = present(stage_delete_where(table, "`stock` < 3"))
    assert planned(table) == [[0]]


def test_an_empty_table_has_nothing_to_compact(empty: Table) -> None:
    assert compact(empty) is None
    assert stage_compaction(empty, []) is None


def test_one_compaction_is_enough(empty: Table) -> None:
    for number, counts in enumerate([(1,) * 30, (49,) * 9, (60, 1, 49, 2, 51, 49), (10,) * 25]):
        table = narrow(empty, *counts, location=f"nodes/t{number}")
        after = present(compact(table, target_rows=100))
        assert sum(1 for live, _ in sizes(after) if live < 50) <= 1
        assert sum(live for live, _ in sizes(after)) == sum(counts)
        assert compact(after, target_rows=100) is None


def test_blobs_and_evolved_columns_survive(stocked: Table) -> None:
    table = present(stage_upsert(stocked, rows([part(1, drawing=LARGE), part(7, drawing=None)])))
    table = drop_column(table, "tags")
    table = add_null_column(table, pa.field("note", pa.utf8()))
    table = present(stage_append(table, rows([part(8, note="new", drawing=LARGE)], table.schema)))
    after = present(compact(table))
    assert contents(after) == contents(table)
    assert after.schema == table.schema
    assert after.count_fragments() == 1


def test_indexes_are_right_while_they_catch_up(empty: Table) -> None:
    table = empty
    for number in range(6):
        table = present(stage_append(table, rows(parts([number * 2, number * 2 + 1]))))
        if number < 3:
            table = present(stage_index(table, ID_INDEX))
    table = present(stage_upsert(table, rows(parts([1, 6], stock=100))))
    after = present(compact(table))
    coverage = index_coverage(after)[0]
    assert (coverage.segment_count, coverage.indexed_fragments) == (0, ())
    assert coverage.unindexed_rows == 12
    indexed = present(stage_index(after, ID_INDEX))
    assert index_coverage(indexed)[0].unindexed_fragments == ()
    assert index_coverage(indexed)[0].segment_count == 1
    assert len(indexed.dataset.describe_indices()[0].segments) == 1
    for version in (after, indexed):
        for number in range(12):
            stock = 100 if number in (1, 6) else number
            found = version.read(["stock"], where=f"`id` = '{number}'")
            assert found.column("stock").to_pylist() == [stock]


def test_a_rewritten_fragment_gets_an_id_no_index_has_seen(empty: Table) -> None:
    """The highest fragments are gone, their ids are still listed by the index."""
    table = narrow(empty, 5, 5, 5, 5)
    table = present(stage_index(table, ID_INDEX))
    table = present(stage_delete_where(table, "`stock` >= 10"))
    after = present(compact(table))
    assert [fragment.fragment_id for fragment in after.dataset.get_fragments()] == [4]
    for number in range(10):
        assert after.read(where=f"`id` = '{number}'").num_rows == 1


def test_tasks_run_elsewhere_and_survive_later_writes(empty: Table) -> None:
    table = narrow(empty, 40, 40, 40, 40)
    plan = plan_compaction(table, target_rows=100)
    assert plan is not None
    assert plan.row_count == 160
    assert len(plan.tasks) == 2
    elsewhere = open_table(table.store, table.location, table.physical_version)
    results = [run_task(elsewhere, task) for task in plan.tasks]
    assert all(len(result) < 5_000 for result in results)
    schema = table.schema
    moved = present(stage_append(table, pa.table([["late"], [1000]], schema=schema)))
    after = present(stage_compaction(moved, results))
    assert sorted(sizes(after)) == [(1, 0), (80, 0), (80, 0)]
    assert sorted(after.read().column("stock").to_pylist()) == [*range(160), 1000]


def test_a_change_to_rewritten_rows_voids_the_work(empty: Table) -> None:
    table = narrow(empty, 10, 10)
    plan = plan_compaction(table)
    assert plan is not None
    results = [run_task(table, task) for task in plan.tasks]
    for moved in (
        stage_delete_where(table, "`stock` = 3"),
        stage_delete_where(table, "`stock` < 10"),
        compact(table),
    ):
        with pytest.raises(PreconditionFailed, match=r"fragment \d of `nodes/narrow`"):
            stage_compaction(present(moved), results)
    with pytest.raises(PreconditionFailed, match="column layout"):
        stage_compaction(add_null_column(table, pa.field("note", pa.utf8())), results)
    with pytest.raises(PreconditionFailed, match=r"fragment \d of `nodes/narrow`"):
        run_task(present(compact(table)), plan.tasks[0])


def test_failing_before_the_commit_leaves_the_table(stocked: Table) -> None:
    for point in ("compact.after_rewrite", "stage.after_files", "stage.after_version"):
        with failpoints.arm(point, "error"), pytest.raises(StorageError, match=point):
            compact(stocked)
        assert contents(stocked) == by_id(parts(range(6)))
    assert present(compact(stocked)).count_fragments() == 1
