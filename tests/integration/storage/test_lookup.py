"""Rows are found by value, filter and address, with or without an index, and no others are read."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.storage import lookup
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import (
    ADDRESS,
    MAX_INDEXED_KEYS,
    find_rows,
    find_where,
    iter_rows,
    take_rows,
)
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_delete_keys
from tests.support.parts import by_id, part, parts, present, rows

if TYPE_CHECKING:
    from omnigraph_core.storage.dataset import Table

COUNT = 6000
NUMBERS = range(COUNT)
AWKWARD = ["", "it's", 'say "so"', "back\\slash", "`tick`", "line\nbreak", "Ünï", "🔩", "-- x", "%"]
VALUES: dict[str, pa.Array] = {
    "text": pa.array([*AWKWARD, *(f"k{n}" for n in range(len(AWKWARD), COUNT))]),
    "i32": pa.array([n - 9 for n in NUMBERS], pa.int32()),
    "i64": pa.array([n - 2**62 for n in NUMBERS], pa.int64()),
    "u32": pa.array([2**32 - 1 - n for n in NUMBERS], pa.uint32()),
    "u64": pa.array([2**64 - 1 - n for n in NUMBERS], pa.uint64()),
    "f32": pa.array([n / 10 for n in NUMBERS], pa.float32()),
    "f64": pa.array([n / 10 for n in NUMBERS], pa.float64()),
    "day": pa.array([n - 99 for n in NUMBERS], pa.int32()).view(pa.date32()),
    "moment": pa.array([n * 997 - 10**12 for n in NUMBERS], pa.int64()).view(pa.date64()),
    "text#uri": pa.array([f"https://example.org/{n}" for n in NUMBERS]),
}
FEW = [0, 3, len(AWKWARD) - 1, 4711]
SEVERAL = random.Random(1).sample(NUMBERS, MAX_INDEXED_KEYS - 10)
MANY = random.Random(2).sample(NUMBERS, COUNT // 2)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A column of every type that can be looked up, in two fragments, nothing indexed."""
    store = open_store(str(tmp_path_factory.mktemp("wide")))
    store.create_root()
    content = pa.table(VALUES)
    table = create_table(store, "nodes/wide", content.schema)
    for start in (0, COUNT // 3):
        end = COUNT // 3 if start == 0 else COUNT
        table = present(stage_append(table, content.slice(start, end - start)))
    return table


@pytest.fixture(scope="module")
def indexed(wide: Table) -> Table:
    table = wide
    for column in VALUES:
        request = IndexRequest(column, SegmentKind.BTREE, f"{column.replace('#', '_')}_btree")
        table = present(stage_index(table, request))
    return table


@pytest.mark.parametrize("places", [FEW, SEVERAL, MANY], ids=["few", "several", "many"])
@pytest.mark.parametrize("fixture", ["wide", "indexed"])
@pytest.mark.parametrize("column", VALUES)
def test_values_of_every_type_are_found(
    request: pytest.FixtureRequest, fixture: str, column: str, places: list[int]
) -> None:
    table: Table = request.getfixturevalue(fixture)
    wanted = VALUES[column].take(pa.array(places))
    other = "i32" if column == "text" else "text"
    found = find_rows(table, column, wanted, [other, column], has_addresses=True)
    expected = VALUES[column].take(pa.array(sorted(places)))
    assert found.column(column).combine_chunks() == expected, "in insertion order"
    assert found.column(other).combine_chunks() == VALUES[other].take(pa.array(sorted(places)))
    assert found.column_names == [other, column, ADDRESS]
    again = take_rows(table, found.column(ADDRESS), ["text#uri"])
    assert again.column(0).combine_chunks() == VALUES["text#uri"].take(pa.array(sorted(places)))


def test_few_values_are_looked_up_in_the_index(wide: Table, indexed: Table) -> None:
    for column, values in VALUES.items():
        where = lookup._is_one_of(column, values[:2])
        plans = [table.scanner(["text"], where=where).explain_plan() for table in (wide, indexed)]
        assert ["ScalarIndexQuery" in plan for plan in plans] == [False, True], column


def test_the_cost_of_a_key_is_the_same_in_a_longer_table(wide: Table, indexed: Table) -> None:
    """What is read is a page of the index and a part of a page of the column, not the column."""

    def bytes_read(table: Table) -> int:
        table.dataset.io_stats_incremental()
        assert find_rows(table, "text", pa.array(["k4711"]), ["i64"]).num_rows == 1
        return int(table.dataset.io_stats_incremental().read_bytes)

    bytes_read(indexed)
    assert bytes_read(indexed) < bytes_read(wide) / 4


def test_boolean_values(stocked: Table) -> None:
    schema = pa.schema([("id", pa.utf8()), ("is_small", pa.bool_())])
    table = create_table(stocked.store, "nodes/flags", schema)
    table = present(stage_append(table, pa.table([list("abc"), [True, False, None]], schema)))
    for wanted, expected in (([True], "a"), ([False, None], "b"), ([True, False], "ab")):
        found = find_rows(table, "is_small", pa.array(wanted), ["id"])
        assert found.column("id").to_pylist() == list(expected)


@pytest.mark.parametrize("count", [0, MAX_INDEXED_KEYS])
def test_both_zeros_are_one_value(stocked: Table, count: int) -> None:
    schema = pa.schema([("id", pa.utf8()), ("weight", pa.float64())])
    table = create_table(stocked.store, "nodes/weights", schema)
    table = present(stage_append(table, pa.table([list("abc"), [0.0, -0.0, 1.0]], schema)))
    others = [float(number) for number in range(2, count + 2)]
    for zero in (0.0, -0.0):
        found = find_rows(table, "weight", pa.array([zero, *others]), ["id"])
        assert found.column("id").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("has_addresses", [True, False])
def test_nothing_wanted_is_nothing_read(stocked: Table, has_addresses: bool) -> None:
    stocked.dataset.io_stats_incremental()
    for none in (pa.array([], pa.utf8()), pa.array([None], pa.utf8())):
        found = find_rows(stocked, "id", none, ["drawing", "id"], has_addresses=has_addresses)
        assert found.num_rows == 0
        fields = [stocked.schema.field("drawing"), stocked.schema.field("id")]
        marks = [pa.field(ADDRESS, pa.uint64())] if has_addresses else []
        assert found.schema == pa.schema([*fields, *marks])
    assert take_rows(stocked, pa.array([], pa.uint64())).schema == stocked.schema
    assert stocked.dataset.io_stats_incremental().read_iops == 0


@pytest.mark.parametrize("count", [1, MAX_INDEXED_KEYS + 1])
def test_what_is_not_there_is_not_found(stocked: Table, count: int) -> None:
    wanted = pa.array([f"no {number}" for number in range(count)])
    found = find_rows(stocked, "id", wanted, ["id", "drawing"], has_addresses=True)
    assert found.num_rows == 0
    assert found.schema.names == ["id", "drawing", ADDRESS]
    assert find_rows(stocked, "id", wanted, []).num_rows == 0


@pytest.mark.parametrize("count", [3, MAX_INDEXED_KEYS + 3])
def test_repeated_values_and_rows_and_nulls(stocked: Table, count: int) -> None:
    table = present(stage_append(stocked, rows(parts([10, 11], stock=2))))
    table = present(stage_append(table, rows(parts([12], stock=None))))
    wanted = pa.chunked_array([[2, 2, None], [5, *range(100, 100 + count)]])
    found = find_rows(table, "stock", wanted, ["id", "drawing"])
    assert found.to_pylist() == [
        {"id": key, "drawing": f"drawing {key}".encode()} for key in ("2", "5", "10", "11")
    ]
    only = find_rows(table, "stock", wanted, [], has_addresses=True)
    assert only.column_names == [ADDRESS]
    assert take_rows(table, only.column(ADDRESS), ["id"]) == found.select(["id"])


def test_values_of_another_type_are_refused(stocked: Table) -> None:
    with pytest.raises(InvariantBroken, match="values for `stock` of `nodes/parts` are int64"):
        find_rows(stocked, "stock", pa.array([1], pa.int32()), ["id"])


def test_unwanted_wide_rows_are_passed_by(stocked: Table) -> None:
    chance = random.Random(3)
    noise = [chance.randbytes(2000).hex() for _ in range(1000)]
    schema = pa.schema([("id", pa.utf8()), ("body", pa.utf8())])
    table = create_table(stocked.store, "nodes/bodies", schema)
    ids = [str(number) for number in range(len(noise))]
    table = present(stage_append(table, pa.table([ids, noise], schema)))
    absent = [f"no {number}" for number in range(MAX_INDEXED_KEYS)]
    for wanted in (["7"], ["7", *absent]):
        table.dataset.io_stats_incremental()
        found = find_rows(table, "id", pa.array(wanted), ["body"])
        assert found.column("body").to_pylist() == [noise[7]]
        assert table.dataset.io_stats_incremental().read_bytes < sum(map(len, noise)) / 4


def test_filters_give_rows_and_addresses(stocked: Table) -> None:
    for where in ("`stock` IN (1, 4)", pc.field("stock").isin([1, 4])):
        found = find_where(stocked, where, ["id", "drawing"], has_addresses=True)
        assert found.column("id").to_pylist() == ["1", "4"]
        assert found.column(ADDRESS).to_pylist() == [1, (1 << 32) + 1]
        assert found.schema.field("drawing") == stocked.schema.field("drawing")
    assert find_where(stocked, None, ["id"]).num_rows == 6
    with pytest.raises(StorageError, match="looking up rows failed"):
        find_where(stocked, "`nmae` = 'x'", ["id"])


def test_rows_are_taken_in_the_order_given(stocked: Table) -> None:
    fourth, first = (1 << 32) + 1, 1
    taken = take_rows(stocked, pa.array([fourth, first, fourth], pa.uint64()))
    assert taken.schema == stocked.schema
    assert taken.to_pylist() == parts([4, 1, 4])
    drawings = take_rows(stocked, pa.chunked_array([[first], [fourth]], pa.uint64()), ["drawing"])
    assert drawings.column(0).to_pylist() == [b"drawing 1", b"drawing 4"]


def test_addresses_where_no_row_is(stocked: Table) -> None:
    table = present(stage_delete_keys(stocked, pa.array(["1"])))
    gone, never = pa.array([0, 1], pa.uint64()), pa.array([7 << 32], pa.uint64())
    with pytest.raises(InvariantBroken, match="has a row at every address that is read"):
        take_rows(table, gone, ["id", "drawing"])
    with pytest.raises(StorageError, match="must not target deleted rows"):
        take_rows(table, gone, ["drawing"])
    with pytest.raises(StorageError, match="non-existent fragment"):
        take_rows(table, never)


def test_rows_one_after_another(stocked: Table) -> None:
    table = present(stage_delete_keys(stocked, pa.array(["1"])))
    batches = list(iter_rows(table, ["stock", "id"], batch_rows=2))
    assert max(batch.num_rows for batch in batches) == 2
    assert pa.Table.from_batches(batches) == table.read(["stock", "id"])
    with_blobs = pa.Table.from_batches(iter_rows(table))
    assert with_blobs.schema == table.schema
    assert with_blobs.to_pylist() == parts([0, 2, 3, 4, 5])


def test_large_blobs_come_a_few_at_a_time(empty: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_PORTION_BYTES", 1000)
    sizes = [300, 300, 300, 300, 5000, 0, None, 300, 300]
    items = [
        part(number, drawing=None if size is None else bytes([number]) * size)
        for number, size in enumerate(sizes)
    ]
    table = present(stage_append(empty, rows(items)))
    batches = list(iter_rows(table))
    held = [sum(map(len, filter(None, batch.column("drawing").to_pylist()))) for batch in batches]
    assert held == [900, 300, 5600], "the limit, or a blob that is larger and a bit"
    assert pa.Table.from_batches(batches).to_pylist() == items


def test_columns_are_found_for_most_and_for_few_rows(stocked: Table) -> None:
    """Picking rows out and passing over all of them, after deletions and a compaction."""
    table = stocked
    for start in range(10, 90, 20):
        table = present(stage_append(table, rows(parts(range(start, start + 20)))))
    table = present(compact(present(stage_delete_keys(table, pa.array(["12", "50"])))))
    table = present(stage_append(table, rows(parts(range(90, 95)))))
    present_rows = by_id(table.read().to_pylist())
    absent = [f"no {number}" for number in range(MAX_INDEXED_KEYS)]
    for keys in (["3", "92", "12"], [str(number) for number in range(5, 95)]):
        wanted = pa.array([*keys, *absent])
        found: dict[str, dict[str, Any]] = by_id(
            find_rows(table, "id", wanted, table.schema.names).to_pylist()
        )
        assert found == {key: row for key, row in present_rows.items() if key in set(keys)}
