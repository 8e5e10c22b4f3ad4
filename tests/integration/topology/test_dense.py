"""Rows by dense number: columns, codes, vectors, ids and addresses of one version of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology import columns
from omnigraph_core.topology import dense as dense_module
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.memory import ByteCache
from tests.support.cases import each
from tests.support.parts import new_table, part, parts, present, rows
from tests.support.table_writes import stage_delete_keys

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

ROOM = 64 << 20
COUNT = 40
NUMBERS = range(COUNT)


def gaps(values: list[Any]) -> list[Any]:
    return [None if n % 7 == 3 else value for n, value in enumerate(values)]


def member(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", kind))


VALUES: dict[str, pa.Array] = {
    "id": pa.array([f"w{n}" for n in NUMBERS]),
    "text": pa.array(gaps([f"t{n % 5}" for n in NUMBERS])),
    "flag": pa.array(gaps([n % 3 == 0 for n in NUMBERS])),
    "i32": pa.array(gaps([n - 9 for n in NUMBERS]), pa.int32()),
    "i64": pa.array(gaps([n - 2**62 for n in NUMBERS]), pa.int64()),
    "u32": pa.array(gaps([2**32 - 1 - n for n in NUMBERS]), pa.uint32()),
    "u64": pa.array(gaps([2**64 - 1 - n for n in NUMBERS]), pa.uint64()),
    "f32": pa.array(gaps([n / 10 for n in NUMBERS]), pa.float32()),
    "f64": pa.array([n / 10 for n in NUMBERS], pa.float64()),
    "day": pa.array(gaps([n - 9 for n in NUMBERS]), pa.int32()).view(pa.date32()),
    "moment": pa.array(gaps([n * 997 - 10**12 for n in NUMBERS]), pa.int64()).view(pa.date64()),
    "texts": pa.array(gaps([[f"x{n}", None] for n in NUMBERS]), member(pa.utf8())),
    "moments": pa.array(gaps([[n * 997] for n in NUMBERS]), member(pa.int64()))
    .cast(member(pa.timestamp("ms")))
    .cast(member(pa.date64())),
    "vector": pa.array(
        gaps([[n, 0.5, -1.0] for n in NUMBERS]), pa.list_(pa.field("item", pa.float32()), 3)
    ),
}
NUMERIC = ["flag", "i32", "i64", "u32", "u64", "f32", "f64", "day", "moment"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A column of every type in three fragments, the second of which has lost rows."""
    store = open_store(str(tmp_path_factory.mktemp("wide")))
    store.create_root()
    content = pa.table(VALUES)
    table = create_table(store, "nodes/wide", content.schema)
    for start, end in ((0, 10), (10, 25), (25, 40)):
        table = present(stage_append(table, content.slice(start, end - start)))
    return present(stage_delete_keys(table, pa.array(["w12", "w24"])))


@pytest.fixture
def dense(wide: Table) -> DenseTable:
    return DenseTable(wide, ByteCache(ROOM))


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table that counts as large, with an index on its ids; two of its rows are deleted."""
    monkeypatch.setattr(dense_module, "_SMALL", 10)
    table = new_table(tmp_path)
    for numbers in (range(20), range(20, 60)):
        table = present(stage_append(table, rows(parts(numbers))))
    table = present(stage_index(table, IndexRequest("id", SegmentKind.BTREE, "id_btree")))
    return present(stage_delete_keys(table, pa.array(["3", "40"])))


def stored(table: Table, name: str) -> pa.Array:
    return pa.concat_arrays([pa.array([], VALUES[name].type), *table.read([name]).column(0).chunks])


@pytest.mark.parametrize("name", VALUES)
def test_a_column_has_the_rows_in_scan_order(wide: Table, dense: DenseTable, name: str) -> None:
    column = dense.column(name)
    assert column.equals(stored(wide, name))
    assert column.null_count == stored(wide, name).null_count
    assert (column.type, column.offset, len(column)) == (VALUES[name].type, 0, dense.count)
    assert dense.column(name) is column


@pytest.mark.parametrize("name", VALUES)
def test_values_come_in_the_order_asked_for(wide: Table, dense: DenseTable, name: str) -> None:
    whole = stored(wide, name).to_pylist()
    numbers = np.array([5, -1, 37, 5, 0], np.int32)
    expected = [None if n < 0 else whole[n] for n in numbers]
    assert dense.values(name, numbers).to_pylist() == expected
    assert dense.values(name, np.zeros(0, np.int32)).to_pylist() == []
    assert dense.values(name, None).equals(stored(wide, name))


@each("name", NUMERIC)
def test_numbers_truths_and_dates_are_numpy_arrays(wide: Table, name: str) -> None:
    values, mask = DenseTable(wide, ByteCache(ROOM)).numpy(name)
    column = stored(wide, name)
    plain = {"day": pa.int32(), "moment": pa.int64()}.get(name)
    expected = (column if plain is None else column.view(plain)).to_pylist()
    is_there = [value is not None for value in expected]
    assert (None if all(is_there) else is_there) == (None if mask is None else mask.tolist())
    chosen = values if mask is None else values[mask]
    assert chosen.tolist() == [value for value in expected if value is not None]
    assert not values.flags.writeable


def test_texts_are_no_numbers(dense: DenseTable) -> None:
    with pytest.raises(InvariantBroken, match="not numbers"):
        dense.numpy("text")


@pytest.mark.parametrize("name", ["text", "i64", "moment", "flag"])
def test_codes_stand_for_the_distinct_values(wide: Table, dense: DenseTable, name: str) -> None:
    codes, values = dense.codes(name)
    assert codes.dtype == np.int32
    assert len(values.unique()) == len(values)
    assert values.null_count == 0
    decoded = [None if code < 0 else values[code].as_py() for code in codes.tolist()]
    assert decoded == stored(wide, name).to_pylist()


def test_ids_and_addresses_lead_to_numbers_and_back(wide: Table, dense: DenseTable) -> None:
    numbers = np.arange(dense.count, dtype=np.int32)
    addresses = wide.scanner(["id"], has_addresses=True).to_table().column(ADDRESS).to_numpy()
    assert dense.addresses_of(numbers).tolist() == addresses.tolist()
    assert dense.numbers_at(addresses[::-1]).tolist() == numbers[::-1].tolist()
    ids = stored(wide, "id")
    assert [dense.number_of(id) for id in ids.to_pylist()] == numbers.tolist()
    assert dense.numbers_of(ids.take(pa.array(numbers[::-1]))).tolist() == numbers[::-1].tolist()


def test_what_is_not_there_has_no_number(dense: DenseTable) -> None:
    deleted, beyond, no_fragment = (1 << 32) + 2, 10, 99 << 32
    wanted = np.array([deleted, beyond, no_fragment, (2 << 32) + 15, 0], np.uint64)
    assert dense.numbers_at(wanted).tolist() == [-1, -1, -1, -1, 0]
    assert dense.number_of("w12") == -1
    assert dense.numbers_of(pa.array(["w12", "w13", None])).tolist() == [-1, 12, -1]


def test_a_filter_finds_ascending_numbers(dense: DenseTable) -> None:
    found = dense.find_where("`i32` >= 13 AND `i32` < 18")
    assert found.dtype == np.int32
    names = dense.values("id", found).to_pylist()
    assert names == ["w22", "w23", "w25", "w26"]
    assert dense.find_where("`i32` > 1000").tolist() == []
    assert dense.find_where(None).tolist() == list(range(dense.count))


def test_an_empty_table_has_all_of_it_empty(tmp_path: Path) -> None:
    dense = DenseTable(new_table(tmp_path), ByteCache(ROOM))
    assert (dense.count, dense.fragments) == (0, ())
    assert dense.column("name").equals(pa.array([], pa.utf8()))
    assert dense.values("stock", None).type == pa.int64()
    assert dense.values("stock", np.array([-1], np.int32)).to_pylist() == [None]
    assert dense.numpy("stock")[0].tolist() == []
    assert dense.codes("name")[0].tolist() == []
    assert dense.number_of("1") == -1
    assert dense.numbers_of(pa.array(["1"])).tolist() == [-1]
    assert dense.numbers_at(np.array([0], np.uint64)).tolist() == [-1]
    assert dense.find_where("`stock` > 1").tolist() == []
    assert dense.fits("name")


def test_a_table_made_anew_at_its_place_is_not_mistaken(tmp_path: Path) -> None:
    cache = ByteCache(ROOM)
    DenseTable(new_table(tmp_path / "a"), cache).column("stock")
    (tmp_path / "a").rename(tmp_path / "b")
    schema = pa.schema([pa.field("id", pa.utf8()), pa.field("stock", pa.utf8())])
    again = DenseTable(new_table(tmp_path / "a", schema), cache)
    assert again.column("stock").type == pa.utf8()
    assert again.codes("stock")[1].type == pa.utf8()


def test_blobs_are_read_and_never_kept(wide: Table, tmp_path: Path) -> None:
    items = [part(0), part(1, drawing=None), part(2, drawing=b"")]
    table = present(stage_append(new_table(tmp_path), rows(items)))
    dense = DenseTable(table, ByteCache(ROOM))
    dense.preload(["drawing", "stock"])
    assert dense.is_resident("stock")
    assert not dense.is_resident("drawing")
    assert not dense.fits("drawing")
    numbers = np.array([2, -1, 0, 1, 2], np.int32)
    assert dense.values("drawing", numbers).to_pylist() == [b"", None, b"drawing 0", None, b""]
    assert dense.values("drawing", None).to_pylist() == [b"drawing 0", None, b""]
    with pytest.raises(InvariantBroken, match="bytes are not kept"):
        dense.column("drawing")


def test_columns_are_loaded_together(wide: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[str, ...]] = []
    original = columns.read_fragments

    def counting(table: Table, names: Any, fragments: Any) -> Any:
        reads.append(tuple(names))
        return original(table, names, fragments)

    monkeypatch.setattr(columns, "read_fragments", counting)
    dense = DenseTable(wide, ByteCache(ROOM))
    dense.column("i32")
    dense.preload(["i32", "text", "vector", "text"])
    assert reads == [("i32",), ("text", "vector")]
    assert dense.column("text").equals(stored(wide, "text"))
    assert dense.column("vector").equals(stored(wide, "vector"))


def test_a_column_that_is_too_large_is_fetched_by_rows(wide: Table) -> None:
    dense = DenseTable(wide, ByteCache(1_000))
    assert dense.fits("flag")
    assert not dense.fits("i64")
    dense.preload(["i64", "flag"])
    whole = stored(wide, "i64").to_pylist()
    for _ in range(4):
        numbers = np.array([30, -1, 2, 30], np.int32)
        expected = [whole[30], None, whole[2], whole[30]]
        assert dense.values("i64", numbers).to_pylist() == expected
    assert not dense.is_resident("i64")
    assert dense.column("i64").to_pylist() == whole
    assert dense.values("i64", None).to_pylist() == whole


def test_rows_that_are_longer_later_on_are_reckoned_with(tmp_path: Path) -> None:
    count = 70_000
    texts = pa.array(["short" if n < count // 2 else "long" * 50 for n in range(count)])
    content = pa.table({"id": pa.array([str(n) for n in range(count)]), "text": texts})
    store = open_store(str(tmp_path))
    table = present(stage_append(create_table(store, "nodes/part", content.schema), content))
    dense = DenseTable(table, ByteCache(4 * 4 * 2**20))
    assert dense.fits("id")
    assert not dense.fits("text")
    assert DenseTable(table, ByteCache(ROOM)).fits("text")
    assert dense.column("text").equals(texts)
    assert dense.numbers_of(content.column("id").chunk(0)).tolist() == list(range(count))


def test_single_rows_of_a_large_table_leave_the_rest_unread(large: Table) -> None:
    dense = DenseTable(large, ByteCache(ROOM))
    for _ in range(2):
        assert dense.values("stock", np.array([50, 4], np.int32)).to_pylist() == [52, 5]
    assert not dense.is_resident("stock")
    assert dense.values("stock", np.array([50, -1], np.int32)).to_pylist() == [52, None]
    assert dense.is_resident("stock")


def test_single_ids_of_a_large_table_are_looked_up(large: Table) -> None:
    dense = DenseTable(large, ByteCache(ROOM))
    assert dense.number_of("52") == 50
    assert dense.numbers_of(pa.array(["40", "59", None, "0", "59"])).tolist() == [-1, 57, -1, 0, 57]
    assert not dense.is_resident("id")
    assert dense.number_of("3") == -1
    assert dense.is_resident("id")
    assert dense.number_of("52") == 50


def test_many_ids_of_a_large_table_are_mapped(large: Table) -> None:
    dense = DenseTable(large, ByteCache(ROOM))
    ids = pa.array([str(n % 60) for n in range(600)])
    left = [n for n in range(60) if n not in (3, 40)]
    expected = [left.index(n % 60) if n % 60 in left else -1 for n in range(600)]
    assert dense.numbers_of(ids).tolist() == expected
    assert dense.is_resident("id")


def test_handles_of_one_version_share_everything(wide: Table) -> None:
    cache = ByteCache(ROOM)
    column = DenseTable(wide, cache).column("text")
    other = DenseTable(wide.reopened(), cache)
    assert other.is_resident("text")
    assert other.column("text") is column
    assert other.identity[:3] == (wide.store.root.text, wide.location, wide.physical_version)
