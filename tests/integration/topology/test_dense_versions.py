"""A new version of a table takes over what others had in memory, and reads only what is new.

What must not be read again is taken away: the files of old rows are deleted under the table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken, ObjectNotFound
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import open_table
from omnigraph_core.storage.row_space import fragment_states, is_extension, read_fragments
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from omnigraph_core.topology import columns
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.memory import ByteCache
from tests.support.parts import LOCATION, new_table, part, parts, present, rows
from tests.support.table_writes import (
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_keys,
    stage_upsert,
)

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

ROOM = 64 << 20
NAMES = ("id", "name", "stock", "tags", "shape")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Parts 0 to 39 in two fragments."""
    table = new_table(tmp_path)
    for numbers in (range(25), range(25, 40)):
        table = present(stage_append(table, rows(parts(numbers))))
    return table


def loaded(table: Table, cache: ByteCache) -> DenseTable:
    dense = DenseTable(table, cache)
    dense.preload(NAMES)
    return dense


def listed(dense: DenseTable, name: str) -> list[object]:
    """A column in scan order: numbers without a row are left out."""
    return dense.column(name).take(pa.array(dense.live_numbers())).to_pylist()


def check(table: Table, dense: DenseTable) -> None:
    """Everything by number is as a plain read has it."""
    expected = table.read(NAMES)
    numbers = dense.live_numbers()
    assert len(numbers) == dense.count == expected.num_rows
    for name in NAMES:
        assert listed(dense, name) == expected.column(name).to_pylist()
        assert dense.values(name, numbers).to_pylist() == expected.column(name).to_pylist()
        assert len(dense.column(name)) == dense.extent
    ids = expected.column("id").to_pylist()
    assert [dense.number_of(id) for id in ids] == numbers.tolist()
    assert dense.numbers_of(pa.array(ids, pa.utf8())).tolist() == numbers.tolist()
    assert dense.numbers_at(dense.addresses_of(numbers)).tolist() == numbers.tolist()
    codes, names = dense.codes("name")
    told = [None if code < 0 else names[code].as_py() for code in codes[numbers].tolist()]
    assert told == expected.column("name").to_pylist()


def remove_data(root: Path, table: Table) -> Table:
    """Delete the files of a version's rows; the version as a process without caches opens it."""
    for state in fragment_states(table):
        for name in state.files:
            (root / LOCATION / "data" / name).unlink(missing_ok=True)
    return unseen(root, table)


def unseen(root: Path, table: Table) -> Table:
    return open_table(open_store(str(root)), LOCATION, table.physical_version)


def test_after_appends_only_new_fragments_are_read(tmp_path: Path, table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    grown = present(stage_append(table, rows(parts(range(40, 50)))))
    grown = present(stage_append(grown, rows(parts(["x", "y"], name=None))))
    expected = {name: grown.read([name]).column(0).to_pylist() for name in NAMES}
    remove_data(tmp_path, table)
    dense = DenseTable(unseen(tmp_path, grown), cache)
    assert is_extension(fragment_states(table), dense.fragments)
    assert {name: dense.column(name).to_pylist() for name in NAMES} == expected
    assert (dense.number_of("7"), dense.number_of("y")) == (7, 51)


def test_after_deletions_no_column_is_read(tmp_path: Path, table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    once = present(stage_delete_keys(table, pa.array(["3", "4", "39"])))
    twice = present(stage_delete_keys(once, pa.array(["0", "24", "30"])))
    expected = {name: twice.read([name]).column(0).to_pylist() for name in NAMES}
    remove_data(tmp_path, table)
    loaded(unseen(tmp_path, once), cache)
    dense = loaded(unseen(tmp_path, twice), cache)
    assert {name: listed(dense, name) for name in NAMES} == expected
    assert [dense.number_of(id) for id in ("0", "1", "38")] == [-1, 1, 38], "rows keep numbers"
    assert dense.rows.gaps.tolist() == [0, 3, 4, 24, 30, 39]


def test_a_version_between_is_not_needed(tmp_path: Path, table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    once = present(stage_delete_keys(table, pa.array(["3", "4"])))
    twice = present(stage_delete_keys(once, pa.array(["5"])))
    remove_data(tmp_path, table)
    dense = loaded(unseen(tmp_path, twice), cache)
    assert listed(dense, "id") == [str(n) for n in range(40) if n not in (3, 4, 5)]


def test_an_older_version_is_read_again_where_it_has_more(table: Table) -> None:
    cache = ByteCache(ROOM)
    fewer = present(stage_delete_keys(table, pa.array(["3", "30"])))
    check(fewer, loaded(fewer, cache))
    check(table, loaded(table, cache))


def test_sides_that_lost_different_rows_do_not_mix(table: Table) -> None:
    cache = ByteCache(ROOM)
    ours = present(stage_delete_keys(table, pa.array(["3"])))
    theirs = present(stage_delete_keys(table, pa.array(["4", "5"])))
    check(ours, loaded(ours, cache))
    check(theirs, loaded(theirs, cache))
    check(ours, loaded(ours, cache))


def test_sides_that_gained_different_rows_do_not_mix(table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    ours = present(stage_append(table, rows(parts(["a", "b"]))))
    theirs = present(stage_append(table, rows(parts(["c", "d"]))))
    for side in (ours, theirs, ours):
        check(side, loaded(side, cache))
    assert DenseTable(theirs, cache).number_of("a") == -1


def test_updates_are_seen(table: Table) -> None:
    cache = ByteCache(ROOM)
    check(table, loaded(table, cache))
    updated = present(stage_upsert(table, rows(parts([5, 30, 99], name="changed", stock=None))))
    check(updated, loaded(updated, cache))


def test_compaction_changes_numbers_and_nothing_else(table: Table) -> None:
    cache = ByteCache(ROOM)
    fewer = present(stage_delete_keys(table, pa.array(["3", "30"])))
    before = loaded(fewer, cache)
    compacted = present(compact(fewer, target_rows=100))
    after = loaded(compacted, cache)
    check(compacted, after)
    numbers = before.live_numbers()
    moved = after.numbers_of(before.values("id", numbers))
    assert after.values("stock", moved).equals(before.values("stock", numbers))


def test_overwritten_rows_are_gone(table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    replaced = present(stage_overwrite(table, rows(parts(range(7, 9)))))
    check(replaced, loaded(replaced, cache))


def test_many_scattered_deletions(tmp_path: Path) -> None:
    cache = ByteCache(ROOM)
    table = present(stage_append(new_table(tmp_path), rows(parts(range(3_000)))))
    loaded(table, cache)
    odd = pa.array([str(n) for n in range(1, 3_000, 2)])
    check(half := present(stage_delete_keys(table, odd)), dense := loaded(half, cache))
    assert dense.extent == dense.count, "too many gaps: the rows are numbered anew"


def test_a_renamed_column_is_not_read_again(tmp_path: Path, table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    renamed = rename_column(table, "stock", "amount")
    dense = DenseTable(remove_data(tmp_path, renamed), cache)
    assert dense.column("amount").to_pylist() == list(range(40))


def test_a_column_made_again_is_another_one(table: Table) -> None:
    cache = ByteCache(ROOM)
    loaded(table, cache)
    for kind in (pa.int64(), pa.utf8()):
        again = add_null_column(drop_column(table, "stock"), pa.field("stock", kind))
        assert DenseTable(again, cache).column("stock").equals(pa.nulls(40, kind))


def test_answers_do_not_depend_on_what_is_kept(table: Table) -> None:
    history = [table]
    history.append(present(stage_append(history[-1], rows(parts(range(40, 60))))))
    history.append(present(stage_delete_keys(history[-1], pa.array(["3", "41", "59"]))))
    history.append(present(stage_upsert(history[-1], rows([part(5, name="new"), part(77)]))))
    for room in (1, 2_000, 6_000, 20_000):
        cache = ByteCache(room)
        for version in [*history, *reversed(history)]:
            check(version, DenseTable(version, cache))
            assert cache.held <= room


def test_files_that_are_gone_are_told(tmp_path: Path, table: Table) -> None:
    dense = DenseTable(remove_data(tmp_path, table), ByteCache(ROOM))
    for _ in range(2):
        with pytest.raises(ObjectNotFound):
            dense.column("stock")


def test_fragments_are_read_in_scan_order_without_deleted_rows(table: Table) -> None:
    grown = present(stage_append(table, rows(parts(range(40, 44)))))
    fewer = present(stage_delete_keys(grown, pa.array(["26", "42"])))
    first, second, third = (state.id for state in fragment_states(fewer))
    batches = read_fragments(fewer, ["id"], [third, second], has_addresses=True)
    read = pa.Table.from_batches(batches)
    left = [n for n in range(25, 44) if n not in (26, 42)]
    assert read.column("id").to_pylist() == [str(n) for n in left]
    assert read.column(1).to_pylist()[:2] == [second << 32, (second << 32) + 2]
    assert list(read_fragments(fewer, ["id"], [])) == []
    with pytest.raises(InvariantBroken):
        list(read_fragments(fewer, ["id"], [first, 99]))


def test_only_rows_added_at_the_end_extend_a_version(table: Table) -> None:
    before = fragment_states(table)
    grown = present(stage_append(table, rows(parts([40]))))
    assert is_extension(before, before)
    assert is_extension(before, fragment_states(grown))
    assert is_extension((), before)
    assert not is_extension(fragment_states(grown), before)
    updated = present(stage_upsert(grown, rows(parts([1], stock=0))))
    assert not is_extension(before, fragment_states(updated))


def test_threads_share_one_read(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = columns.read_fragments

    def counting(table: Table, names: Any, fragments: Any) -> Any:
        read.extend(names)
        return original(table, names, fragments)

    monkeypatch.setattr(columns, "read_fragments", counting)
    cache = ByteCache(ROOM)
    wanted = [("name", "stock"), ("stock", "tags"), ("tags", "id"), ("id", "name")] * 8

    def use(names: tuple[str, str]) -> list[list[object]]:
        dense = DenseTable(table, cache)
        dense.preload(names)
        return [dense.column(name).to_pylist() for name in names]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(use, wanted))
    plain = {name: table.read([name]).column(0).to_pylist() for name in NAMES}
    assert found == [[plain[name] for name in names] for names in wanted]
    assert sorted(read) == ["id", "name", "stock", "tags"]
