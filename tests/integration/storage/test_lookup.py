"""Rows are found by value, filter and address, with or without an index, and no others are read."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
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
    iter_taken,
    spans,
    take_rows,
)
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from tests.support.cases import each
from tests.support.parts import by_id, part, parts, present, rows
from tests.support.table_writes import stage_delete_keys

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


@pytest.mark.parametrize("fixture", ["wide", "indexed"])
@each("places", [FEW, SEVERAL, MANY], ids=["few", "several", "many"])
@each("column", VALUES)
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


SIZES = [300, 300, 300, 300, 5000, 0, None, 300, 300]
"""Of blobs, one after another."""


def of_sizes(table: Table) -> tuple[Table, list[dict[str, Any]]]:
    items = [
        part(number, drawing=None if size is None else bytes([number]) * size)
        for number, size in enumerate(SIZES)
    ]
    return present(stage_append(table, rows(items))), items


def drawn(content: pa.RecordBatch | pa.Table) -> int:
    return sum(map(len, filter(None, content.column("drawing").to_pylist())))


def test_large_blobs_come_a_few_at_a_time(empty: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "PORTION_BYTES", 1000)
    table, items = of_sizes(empty)
    batches = list(iter_rows(table))
    assert [drawn(batch) for batch in batches] == [900, 300, 5000, 600], "the limit, or one blob"
    assert pa.Table.from_batches(batches).to_pylist() == items


def addresses_of(table: Table) -> pa.ChunkedArray:
    return find_where(table, None, [], has_addresses=True).column(ADDRESS)


def test_blobs_are_taken_a_few_at_a_time(empty: Table) -> None:
    table, items = of_sizes(empty)
    backwards = addresses_of(table).take(pa.array(range(len(items) - 1, -1, -1)))
    portions = list(iter_taken(table, backwards, ["id", "drawing"], portion_bytes=1200))
    held = [drawn(portion) for portion in portions]
    assert max(size for size in held if size != 5000) <= 1200
    assert held.count(5000) == 1, "what is larger comes alone"
    assert len(held) <= 4, "and the others together"
    assert pa.concat_tables(portions).to_pylist() == [
        {"id": item["id"], "drawing": item["drawing"]} for item in reversed(items)
    ]


@pytest.mark.parametrize("size", [None, 0, 1, 999, 1000, 1001, 2000, 60_500])
def test_a_blob_that_comes_alone(
    empty: Table, monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    monkeypatch.setattr(lookup, "_PIECE_BYTES", 1000)
    drawing = None if size is None else random.Random(size).randbytes(size)
    item = part(1, drawing=drawing)
    table = present(stage_append(empty, rows([item, part(2)])))
    taken = take_rows(table, addresses_of(table)[:1])
    taken.validate(full=True)
    assert taken.schema == table.schema
    assert taken.to_pylist() == [item]
    assert present(stage_append(table, taken)).read().to_pylist() == [item, part(2), item]


def test_no_more_blobs_are_read_than_asked_for(empty: Table) -> None:
    blobs = [random.Random(seed).randbytes(100_000) for seed in range(8)]
    items = [part(number, drawing=blob) for number, blob in enumerate(blobs)]
    table = present(stage_append(empty, rows(items)))
    portions = iter_taken(table, addresses_of(table), ["drawing"], portion_bytes=250_000)
    table.dataset.io_stats_incremental()
    assert drawn(next(portions)) == 200_000
    assert 200_000 <= table.dataset.io_stats_incremental().read_bytes < 300_000


@pytest.mark.parametrize("portion_bytes", [1, 5_000, 50_000, lookup.PORTION_BYTES])
def test_long_texts_are_taken_a_few_at_a_time(empty: Table, portion_bytes: int) -> None:
    items = [part(number, name="x" * 900) for number in range(200)]
    table = present(stage_append(empty, rows(items)))
    sizes = [
        portion.nbytes
        for portion in iter_taken(table, addresses_of(table), portion_bytes=portion_bytes)
    ]
    assert max(sizes) < portion_bytes + 3_000
    assert len(sizes) <= max(1, min(200, 3 * sum(sizes) // portion_bytes))
    found = pa.concat_tables(iter_taken(table, addresses_of(table), portion_bytes=portion_bytes))
    assert found.schema == table.schema
    assert found.to_pylist() == items


def test_nothing_to_take(stocked: Table) -> None:
    assert list(iter_taken(stocked, pa.array([], pa.uint64()))) == []


@each(
    ("sizes", "most_rows", "expected"),
    [
        ([], 9, []),
        ([9], 9, [(0, 1)]),
        ([5, 5, 5], 9, [(0, 2), (2, 3)]),
        ([0, 10, 0, 0, 11, 0, 1], 9, [(0, 4), (4, 5), (5, 7)]),
        ([0] * 5, 2, [(0, 2), (2, 4), (4, 5)]),
        ([9, 9, 1, 1, 1], 2, [(0, 1), (1, 3), (3, 5)]),
    ],
)
def test_spans(sizes: list[int], most_rows: int, expected: list[tuple[int, int]]) -> None:
    assert list(spans(np.array(sizes, np.int64), 10, most_rows=most_rows)) == expected


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
