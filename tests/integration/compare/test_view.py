"""A table seen as rows of a type: every way a column can come about, and portions of rows."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.compare.equality import equal_columns
from omnigraph_core.compare.view import RowView
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.reshape import ColumnSource, reshape
from omnigraph_core.storage import lookup
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.row_space import fragment_states
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.storage.version_rows import OwnRows
from tests.integration.compare.lines import (
    COLUMNS,
    PART,
    addresses_of,
    exact,
    new_line,
    part_type,
    rows_of,
    some_row,
)
from tests.support.parts import present
from tests.support.table_writes import stage_delete_keys

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.schema.catalog import NodeType
    from omnigraph_core.storage.dataset import Table

EARLIER = """
node Part {
  sku: String @key
  small: I32?
  count: U32
  many: U32?
  ratio: F32?
  sizes: [I32]?
  ratios: [F32]?
  name: String?
  shape: Vector(2)?
  drawing: Blob?
}
"""
LATER = """
node Part {
  sku: String @key
  title: String @default("none")
  small: I64 @default(-1)
  count: U64
  many: I64?
  ratio: F64?
  sizes: [I64] @default([1, 2])
  ratios: [F64]?
  shape: Vector(2)?
  made: Date @default("2026-01-31")
  seen: DateTime @default("2026-01-31T10:00:00.123Z")
  days: [Date] @default(["1970-01-02"])
  ok: Bool @default(true)
  note: String?
  drawing: Blob?
  photo: Blob?
}
"""
ROWS: list[dict[str, Any]] = [
    {
        "id": "a", "sku": "a", "small": 7, "count": 2**32 - 1, "many": 2**32 - 1, "ratio": 0.1,
        "sizes": [1, None, -5], "ratios": [0.1, -0.0], "name": "bolt", "shape": [1.0, 2.0],
        "drawing": b"", "drawing#uri": None,
    },
    {
        "id": "b", "sku": "b", "small": None, "count": 0, "many": None, "ratio": None,
        "sizes": None, "ratios": None, "name": None, "shape": None,
        "drawing": None, "drawing#uri": "s3://bucket/b",
    },
    {
        "id": "c", "sku": "c", "small": 0, "count": 1, "many": 0, "ratio": -0.0,
        "sizes": [], "ratios": [], "name": "", "shape": [0.0, -0.0],
        "drawing": b"line", "drawing#uri": None,
    },
]  # fmt: skip


def stocked(root: Path, type: NodeType, rows: list[dict[str, Any]]) -> Table:
    store = open_store(str(root))
    store.create_root()
    table = create_table(store, "nodes/parts", table_schema(type))
    return present(stage_append(table, rows_of(rows, table_schema(type))))


def later_view(root: Path) -> RowView:
    before, after = part_type(EARLIER), part_type(LATER)
    renamed = {name: "title" if name == "name" else name for name in before.properties}
    table = stocked(root, before, ROWS)
    return RowView.of(table, after, reshape(before, after, renamed))


def f32(value: float) -> float:
    return float(np.float32(value))


def test_an_earlier_table_seen_as_a_later_type(tmp_path: Path) -> None:
    view = later_view(tmp_path)
    rows = view.take(addresses_of(view.table))
    rows.drop_columns(["seen"]).validate(full=True)
    assert rows.schema == view.schema == table_schema(view.type)
    assert view.columns == tuple(rows.column_names)
    seen = rows.column("seen").combine_chunks().view(pa.int64()).to_pylist()
    moment = dt.datetime(2026, 1, 31, 10, 0, 0, 123_000, tzinfo=dt.UTC)
    assert set(seen) == {round(moment.timestamp() * 1000)}
    found = rows.drop_columns(["seen"]).to_pylist()
    every = {
        "made": dt.date(2026, 1, 31), "days": [dt.date(1970, 1, 2)], "ok": True, "note": None,
        "photo": None, "photo#uri": None,
    }  # fmt: skip
    kept = [
        {name: row[name] for name in ("id", "sku", "count", "many", "shape", "drawing#uri")}
        for row in ROWS
    ]
    own: list[dict[str, Any]] = [
        {
            "small": 7, "ratio": f32(0.1), "sizes": [1, None, -5], "ratios": [f32(0.1), -0.0],
            "title": "bolt", "drawing": b"",
        },
        {
            "small": -1, "ratio": None, "sizes": [1, 2], "ratios": None,
            "title": "none", "drawing": None,
        },
        {
            "small": 0, "ratio": -0.0, "sizes": [], "ratios": [], "title": "", "drawing": b"line",
        },
    ]  # fmt: skip
    expected = [{**every, **same, **row} for same, row in zip(kept, own, strict=True)]
    assert [exactly(row) for row in found] == [exactly(row) for row in expected]


def exactly(row: dict[str, Any]) -> dict[str, Any]:
    return {name: exact(row[name]) for name in sorted(row)}


def test_some_columns_in_the_order_given(tmp_path: Path) -> None:
    view = later_view(tmp_path)
    places = addresses_of(view.table).to_numpy()[[2, 0, 2]]
    rows = view.take(places, ["title", "id", "made"])
    assert rows.column_names == ["title", "id", "made"]
    assert rows.column("title").to_pylist() == ["", "bolt", ""]
    constant = view.take(places, ["ok", "note"])
    assert constant.to_pylist() == [{"ok": True, "note": None}] * 3
    assert [item.num_rows for item in view.iter_taken(places, ["ok"])] == [3]
    assert view.take(places[:0]).schema == view.schema
    assert view.take(places[:0], ["ok"]).num_rows == 0


def test_a_table_in_the_shape_of_its_type(tmp_path: Path) -> None:
    chance = random.Random(1)
    rows = rows_of(some_row(chance, str(n)) for n in range(5))
    table = present(stage_append(new_line(tmp_path), rows))
    view = RowView.of(table, PART)
    taken = view.take(addresses_of(table))
    assert taken.schema == COLUMNS
    assert all(mask.all() for mask in equal_columns(taken, table.read()).values())


def test_rows_that_are_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    table = new_line(tmp_path)
    for start in (0, 10, 20):
        more = rows_of(some_row(chance, f"{n:02}") for n in range(start, start + 10))
        table = present(stage_append(table, more))
    table = present(stage_delete_keys(table, pa.array(["03", "21", "22"])))
    first, _, third = (state.id for state in fragment_states(table))
    own = OwnRows((first,), np.array([(third << 32) + 5, (third << 32) + 7], np.uint64), 11)
    view = RowView.of(table, PART)
    expected = [f"{n:02}" for n in (0, 1, 2, 4, 5, 6, 7, 8, 9, 25, 27)]
    for columns in (["id"], ["id", "tags", "name"], list(COLUMNS.names)):
        rows = pa.concat_tables(view.iter_own(own, columns))
        assert rows.column_names == [*columns, ADDRESS]
        assert rows.column("id").to_pylist() == expected
        taken = view.take(rows.column(ADDRESS).combine_chunks(), columns)
        assert all(mask.all() for mask in equal_columns(taken, rows.select(columns)).values())
    monkeypatch.setattr(lookup, "PORTION_BYTES", 1)
    assert sum(rows.num_rows for rows in view.iter_own(own, ["drawing"])) == 11
    nothing = OwnRows((), np.zeros(0, np.uint64), 0)
    assert list(view.iter_own(nothing, ["id"])) == []


def test_constant_columns_of_rows_that_are_not_shared(tmp_path: Path) -> None:
    view = later_view(tmp_path)
    (state,) = fragment_states(view.table)
    own = OwnRows((state.id,), np.zeros(0, np.uint64), 3)
    rows = pa.concat_tables(view.iter_own(own, ["ok"]))
    assert rows.column_names == ["ok", ADDRESS]
    assert rows.column(ADDRESS).to_pylist() == addresses_of(view.table).to_pylist()


def test_large_blobs_come_a_few_at_a_time(tmp_path: Path) -> None:
    chance = random.Random(3)
    size = lookup.PORTION_BYTES // 3
    rows = [{**some_row(chance, str(n)), "drawing": bytes([n]) * size} for n in range(8)]
    table = present(stage_append(new_line(tmp_path), rows_of(rows)))
    view = RowView.of(table, PART)
    own = OwnRows((fragment_states(table)[0].id,), np.zeros(0, np.uint64), 8)
    for portions in (view.iter_own(own, ["drawing"]), view.iter_taken(addresses_of(table))):
        assert max(portion.nbytes for portion in portions) < 2 * lookup.PORTION_BYTES


def test_what_cannot_be_seen_so(tmp_path: Path) -> None:
    before, after = part_type(EARLIER), part_type(LATER)
    table = stocked(tmp_path, before, ROWS)
    sources = reshape(before, after, {name: name for name in before.properties})
    with pytest.raises(InvariantBroken, match="has a column `title`"):
        RowView.of(table, after)
    with pytest.raises(InvariantBroken, match="`note` of `nodes/parts` has a source"):
        RowView.of(table, after, {k: v for k, v in sources.items() if k != "note"})
    with pytest.raises(InvariantBroken, match="`small` of `nodes/parts` is int64: int32"):
        RowView.of(table, after, {**sources, "small": ColumnSource("small")})
