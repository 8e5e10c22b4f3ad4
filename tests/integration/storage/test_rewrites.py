"""Rows are followed through compactions: rewriting keeps their order, and records say so."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.storage import rewrites
from omnigraph_core.storage.compact import (
    compact,
    plan_compaction,
    run_task,
    stage_compaction,
)
from omnigraph_core.storage.lookup import ADDRESS, find_where
from omnigraph_core.storage.objects import put
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.storage.sweep import TableFile, list_files, reachable_files
from omnigraph_core.storage.version_rows import match_rows, unshared
from tests.support.parts import LARGE, new_table, parts, present, rows
from tests.support.table_writes import (
    add_filled_column,
    add_null_column,
    drop_column,
    stage_delete_keys,
    stage_upsert,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.storage.compact import CompactionPlan
    from omnigraph_core.storage.dataset import Table


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are kept of small compactions too."""
    monkeypatch.setattr(rewrites, "LEAST_ROWS", 1)


def filled(root: Path, count: int, size: int) -> Table:
    """A table of so many fragments of a size."""
    table = new_table(root)
    for start in range(0, count * size, size):
        table = present(stage_append(table, rows(parts(range(start, start + size)))))
    return table


def without(table: Table, numbers: Iterable[int]) -> Table:
    return present(stage_delete_keys(table, pa.array([str(number) for number in numbers])))


def places(table: Table) -> dict[str, int]:
    found = find_where(table, None, ["id"], has_addresses=True)
    return dict(zip(*(found.column(name).to_pylist() for name in ("id", ADDRESS)), strict=True))


def own_ids(table: Table, other: Table) -> set[str]:
    """The rows of a version that another one does not share, as far as is known."""
    at = places(table)
    own = unshared(table, other)[0]
    is_own = own.has(np.array(list(at.values()), np.uint64))
    assert own.count == int(is_own.sum())
    return {id for id, chosen in zip(at, is_own.tolist(), strict=True) if chosen}


def check_followed(before: Table, after: Table) -> None:
    """Every row of both is found again, at the right place."""
    old, new = places(before), places(after)
    assert own_ids(before, after) == old.keys() - new.keys()
    assert own_ids(after, before) == new.keys() - old.keys()
    shared = sorted(old.keys() & new.keys())
    match = match_rows(before, after)
    found = match.to_after(np.array([old[id] for id in shared], np.uint64))
    assert found.tolist() == [new[id] for id in shared]


@pytest.mark.parametrize("target_rows", [7, 50, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_rewriting_keeps_the_order(tmp_path: Path, seed: int, target_rows: int) -> None:
    """What all records rely on: live rows of the replaced fragments, one after another."""
    chance = random.Random(seed)
    table = filled(tmp_path, 6, 10)
    if seed % 2:  # blobs in files of their own
        large = parts(chance.sample(range(60), 5), drawing=LARGE)
        table = present(stage_upsert(table, rows(large)))
    table = without(table, chance.sample(range(60), 20))
    plan = present_plan(plan_compaction(table, target_rows=target_rows, max_deleted_share=0))
    results = [run_task(table, task) for task in plan.tasks]
    moved = present(stage_compaction(table, results))
    for result in map(json.loads, results):
        before = ids_in(table, [item["files"][0]["path"] for item in result["replaced"]])
        after = ids_in(moved, [item["files"][0]["path"] for item in result["rewritten"]])
        assert after == before != []
    check_followed(table, moved)


def present_plan(plan: CompactionPlan | None) -> CompactionPlan:
    assert plan is not None
    return plan


def ids_in(table: Table, files: list[str]) -> list[str]:
    """The ids of rows in these files, in the order of files and rows."""
    known = {state.files[0]: state.id for state in fragment_states(table)}
    return [
        id for file in files for id, place in places(table).items() if place >> 32 == known[file]
    ]


def test_rows_deleted_on_either_side(tmp_path: Path) -> None:
    table = without(filled(tmp_path, 4, 10), [3, 17])
    moved = present(compact(table))
    check_followed(table, moved)
    check_followed(without(table, [5, 6, 39]), without(moved, [5, 20]))
    check_followed(without(moved, [5, 20]), present(stage_append(table, rows(parts([99])))))
    updated = present(stage_upsert(table, rows(parts([7, 99]))))
    assert own_ids(moved, updated) == {"7"}
    assert own_ids(updated, moved) == {"7", "99"}


def test_several_compactions(tmp_path: Path) -> None:
    versions = [without(filled(tmp_path, 4, 10), [3])]
    chance = random.Random(1)
    for step in range(4):
        table = present(compact(versions[-1]))
        versions.append(table)
        table = present(stage_append(table, rows(parts(range(100 + step * 10, 108 + step * 10)))))
        known = [int(id) for id in places(table)]
        versions.append(without(table, chance.sample(known, 4)))
    for before in versions:
        for after in versions:
            check_followed(before, after)


def test_each_side_was_compacted_by_itself(tmp_path: Path) -> None:
    base = filled(tmp_path, 6, 10)
    ours = present(compact(without(base, [1, 2, 59]), target_rows=30))
    theirs = present(compact(without(base, [2, 3, 31]), target_rows=1000))
    check_followed(ours, theirs)
    theirs = present(stage_append(theirs, rows(parts(range(100, 120)))))
    check_followed(present(compact(theirs, max_deleted_share=0)), ours)


def test_columns_that_came_later(tmp_path: Path) -> None:
    """A row is followed whatever became of its columns; each column is known by itself."""
    table = without(filled(tmp_path, 2, 10), [4])
    moved = present(compact(table))
    filled_later = add_filled_column(moved, pa.field("grade", pa.int64()), pa.scalar(5))
    match = match_rows(table, filled_later)
    assert match.before_own.count == match.after_own.count == 0
    assert match.stored_otherwise("stock", "stock") == ()
    assert match.stored_otherwise(None, "grade") == match.parts
    assert unshared(table, filled_later)[0].count == 19, "not with all columns"
    empty = add_null_column(table, pa.field("note", pa.utf8()))
    moved = present(compact(empty))
    match = match_rows(table, moved)
    assert match.before_own.count == 0
    assert match.stored_otherwise(None, "note") == match.parts, "it may have got values"
    again = add_null_column(drop_column(moved, "note"), pa.field("note", pa.utf8()))
    match = match_rows(moved, present(compact(again, max_deleted_share=-1)))
    assert match.before_own.count == 0
    assert match.stored_otherwise("note", "note") == match.parts


def test_a_column_filled_between_two_compactions(tmp_path: Path) -> None:
    """What came in between is in no record of the first: older places are not told of."""
    table = filled(tmp_path, 2, 10)
    first = present(compact(table))
    between = add_filled_column(first, pa.field("grade", pa.int64()), pa.scalar(5))
    second = present(compact(between, max_deleted_share=-1))
    check_followed(between, second)
    assert own_ids(table, second) == places(table).keys(), "compared by content"


def records(table: Table) -> list[TableFile]:
    files = list_files(table.store, table.location)
    return [file for file in files if file.path.endswith("/moved.arrays")]


def test_a_record_goes_with_its_file(tmp_path: Path) -> None:
    table = filled(tmp_path, 3, 10)
    assert records(table) == []
    moved = present(compact(table))
    (record,) = records(table)
    assert record.unit in reachable_files(moved)
    assert record.unit not in reachable_files(table)
    assert record.size < 1_000


@pytest.mark.parametrize("content", [None, b"", b"something else", "cut"])
def test_without_a_sound_record(tmp_path: Path, content: bytes | str | None) -> None:
    table = filled(tmp_path, 3, 10)
    moved = present(compact(table))
    (record,) = records(table)
    path = tmp_path / table.location / record.path
    if content is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] if isinstance(content, str) else content)
    assert own_ids(table, moved) == places(table).keys()
    assert match_rows(table, moved).parts == ()


def test_a_record_of_something_else(tmp_path: Path) -> None:
    table = filled(tmp_path, 3, 10)
    moved = present(compact(table))
    (record,) = records(table)
    path = f"{table.location}/{record.path}"
    more = present(compact(present(stage_append(moved, rows(parts(range(50, 90)))))))
    (other,) = (item for item in records(table) if item.path != record.path)
    wrong = (tmp_path / table.location / other.path).read_bytes()
    put(table.store, path, wrong)
    assert match_rows(table, moved).parts == ()
    check_followed(moved, more)


def test_records_that_are_not_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path, 3, 10)
    monkeypatch.setenv("OMNIGRAPH_DERIVED_FILES", "false")
    compact(table)
    assert records(table) == []
    monkeypatch.delenv("OMNIGRAPH_DERIVED_FILES")
    monkeypatch.setattr(rewrites, "LEAST_ROWS", 31)
    compact(table)
    assert records(table) == []


def test_a_store_that_takes_no_records(tmp_path: Path) -> None:
    """A directory in the way of the file."""
    table = filled(tmp_path, 3, 10)

    def in_the_way(table: Table, files: tuple[str, ...]) -> str:
        Path(tmp_path, "way", files[0], "inside").mkdir(parents=True)
        return f"way/{files[0]}"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrites, "_path", in_the_way)
        moved = present(compact(table))
    assert places(moved).keys() == places(table).keys()
    assert own_ids(table, moved) == places(table).keys()


def test_a_record_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites, "MOST_SOURCES", 3)
    first = filled(tmp_path, 3, 10)
    table = present(compact(first))
    check_followed(first, table)
    table = present(stage_append(table, rows(parts([100, 101]))))
    later = present(compact(table))
    check_followed(table, later)
    assert own_ids(first, later) == {str(number) for number in range(10, 30)}, "what it still tells"
    monkeypatch.setattr(rewrites, "MOST_RUNS", 0)
    last = present(compact(present(stage_append(later, rows(parts([200]))))))
    assert own_ids(later, last) == places(later).keys()
