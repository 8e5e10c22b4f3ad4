"""Columns of every type are added, filled, renamed and dropped; the table works afterwards."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import EMPTY_VERSION, open_table
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import (
    LARGE,
    SCHEMA,
    by_id,
    contents,
    files_below,
    part,
    parts,
    present,
    rows,
)
from tests.support.table_writes import (
    add_filled_column,
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

BOX = pa.struct(
    [
        pa.field("size", pa.int32()),
        pa.field("slots", pa.list_(pa.field("item", pa.struct([pa.field("label", pa.utf8())])))),
    ]
)
NEW_FIELDS: dict[str, tuple[pa.Field, Any]] = {
    "number": (pa.field("extra", pa.int64()), 5),
    "text": (pa.field("extra", pa.utf8()), "five"),
    "date": (pa.field("extra", pa.date32()), date(2024, 2, 29)),
    "list": (pa.field("extra", pa.list_(pa.field("item", pa.utf8()))), ["a", None]),
    "vector": (pa.field("extra", pa.list_(pa.field("item", pa.float32()), 3)), [1.0, 2.0, 3.0]),
    "struct": (pa.field("extra", BOX), {"size": 1, "slots": [{"label": "top"}]}),
    "bytes": (pa.field("extra", pa.large_binary()), b"\x00\x01"),
    "blob": (pa.field("extra", pa.large_binary()), LARGE),
}


def with_value(items: list[dict[str, Any]], name: str, value: Any) -> dict[str, dict[str, Any]]:
    return by_id([{**item, name: value} for item in items])


def field_ids(table: Table) -> dict[str, int]:
    return {field.name(): field.id() for field in table.dataset.lance_schema.fields()}


@pytest.mark.parametrize("kind", NEW_FIELDS)
def test_a_null_column_of_any_type(stocked: Table, tmp_path: Path, kind: str) -> None:
    field, value = NEW_FIELDS[kind]
    before = files_below(tmp_path, "data")
    table = add_null_column(stocked, field)
    assert files_below(tmp_path, "data") == before
    assert table.schema == pa.schema([*SCHEMA, field])
    assert contents(table) == with_value(parts(range(6)), "extra", None)
    new = part(9, extra=value)
    table = present(stage_append(table, rows([new], table.schema)))
    table = present(stage_upsert(table, rows([part(0, extra=value)], table.schema)))
    expected = with_value(parts(range(1, 6)), "extra", None)
    assert contents(table) == {**expected, **by_id([new, part(0, extra=value)])}
    assert contents(present(compact(table))) == contents(table)
    dropped = drop_column(table, "extra")
    assert dropped.schema == SCHEMA
    assert contents(dropped) == by_id(parts([*range(6), 9]))


@pytest.mark.parametrize("kind", NEW_FIELDS)
def test_values_of_a_dropped_column_do_not_come_back(stocked: Table, kind: str) -> None:
    """The ids of a dropped column stay taken while a data file holds values under them."""
    field, value = NEW_FIELDS[kind]
    table = add_null_column(stocked, field)
    table = present(stage_append(table, rows([part(9, extra=value)], table.schema)))
    table = drop_column(table, "extra")
    for again in (
        field,
        pa.field("extra", pa.float64()),
        *(item for item, _ in NEW_FIELDS.values()),
    ):
        added = add_null_column(table, again)
        assert set(added.read(["extra"]).column("extra").to_pylist()) == {None}
        items = rows([part(10, extra=None)], added.schema)
        assert contents(present(stage_upsert(added, items)))["10"]["extra"] is None


def test_metadata_changes_write_a_version_and_nothing_else(stocked: Table, tmp_path: Path) -> None:
    folders = ("data", "_deletions", "_indices")
    before = [files_below(tmp_path, folder) for folder in folders]
    changes: tuple[Callable[[Table], Table], ...] = (
        lambda table: add_null_column(table, pa.field("note", pa.utf8())),
        lambda table: rename_column(table, "note", "remark"),
        lambda table: rename_column(table, "stock", "on_hand"),
        lambda table: drop_column(table, "tags"),
        lambda table: drop_column(table, "shape"),
        lambda table: rename_column(table, "remark", "tags"),
        lambda table: add_null_column(table, pa.field("stock", pa.utf8())),
    )
    table = stocked
    for change in changes:
        table = change(table)
        assert table.dataset.latest_version == EMPTY_VERSION
    assert [files_below(tmp_path, folder) for folder in folders] == before
    assert table.schema.names == ["id", "name", "on_hand", "drawing", "tags", "stock"]
    row = contents(open_table(table.store, table.location, table.physical_version))["4"]
    assert row == {
        "id": "4",
        "name": "bolt number4",
        "on_hand": 4,
        "drawing": b"drawing 4",
        "tags": None,
        "stock": None,
    }
    assert contents(stocked) == by_id(parts(range(6)))


def test_a_dropped_column_takes_its_indexes_along(stocked: Table) -> None:
    """A later column may get the dropped one's id: an index left behind would answer for it."""
    table = add_null_column(stocked, pa.field("note", pa.utf8()))
    table = present(stage_index(table, IndexRequest("note", SegmentKind.BTREE, "note_btree")))
    table = present(stage_index(table, IndexRequest("id", SegmentKind.BTREE, "id_btree")))
    taken = field_ids(table)["note"]
    table = drop_column(table, "note")
    assert [found.name for found in index_coverage(table)] == ["id_btree"]
    table = add_null_column(table, pa.field("height", pa.int64()))
    assert field_ids(table)["height"] == taken
    assert table.read(where="`height` IS NULL").num_rows == 6


DEFAULTS: dict[str, tuple[pa.Field, pa.Scalar]] = {
    "number": (pa.field("extra", pa.int64(), nullable=False), pa.scalar(7)),
    "text": (pa.field("extra", pa.utf8()), pa.scalar("seven")),
    "flag": (pa.field("extra", pa.bool_(), nullable=False), pa.scalar(False)),
    "date": (pa.field("extra", pa.date32()), pa.scalar(date(2024, 2, 29))),
    "list": (
        pa.field("extra", pa.list_(pa.field("item", pa.utf8()))),
        pa.scalar(["a"], pa.list_(pa.utf8())),
    ),
    "vector": (
        pa.field("extra", pa.list_(pa.field("item", pa.float32()), 2)),
        pa.scalar([1.0, 2.0], pa.list_(pa.float32(), 2)),
    ),
}


@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_filled_column_of_any_type(stocked: Table, kind: str) -> None:
    field, value = DEFAULTS[kind]
    table = drop_column(stocked, "name")
    table = present(stage_delete_where(table, "`stock` IN (1, 5)"))
    table = present(stage_index(table, IndexRequest("id", SegmentKind.BTREE, "id_btree")))
    table = add_filled_column(table, field, value)
    assert table.schema.field("extra") == field
    assert table.schema.field("extra").nullable == field.nullable
    expected = with_value(parts([0, 2, 3, 4]), "extra", value.as_py())
    for row in expected.values():
        del row["name"]
    assert contents(table) == expected
    assert index_coverage(table)[0].unindexed_fragments == ()
    assert table.read(["extra"], where="`id` = '3'").to_pylist() == [{"extra": value.as_py()}]
    assert contents(present(compact(table))) == expected
    row = part(9, extra=value.as_py())
    assert len(contents(present(stage_append(table, rows([row], table.schema))))) == 5


def test_a_required_column_in_a_table_without_rows(empty: Table) -> None:
    field = pa.field("extra", pa.int64(), nullable=False)
    for table in (add_null_column(empty, field), add_filled_column(empty, field, pa.scalar(1))):
        assert table.schema.field("extra") == field
        filled = present(stage_append(table, rows([part(1, extra=4)], table.schema)))
        assert contents(filled)["1"]["extra"] == 4


def test_a_filled_column_longer_than_a_batch(empty: Table) -> None:
    count = 70_000
    table = drop_column(drop_column(empty, "drawing"), "shape")
    ids = pa.array([str(number) for number in range(count)])
    columns = [ids if field.name == "id" else pa.nulls(count, field.type) for field in table.schema]
    table = present(stage_append(table, pa.Table.from_arrays(columns, schema=table.schema)))
    table = add_filled_column(table, pa.field("extra", pa.int64()), pa.scalar(3))
    assert table.dataset.count_rows("`extra` = 3") == count
