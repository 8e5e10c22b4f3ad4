"""All columns of a table change with one version; rows stay where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core import failpoints
from omnigraph_core.errors import InvariantBroken, RecordError, StorageError
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import EMPTY_VERSION, open_table
from omnigraph_core.storage.indexes import index_coverage, stage_index
from omnigraph_core.storage.lookup import ADDRESS
from omnigraph_core.storage.rearrange import WantedColumn, WrittenColumns, rearrange
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import stage_append
from tests.support.parts import (
    FIELDS,
    LARGE,
    SCHEMA,
    by_id,
    contents,
    files_below,
    new_table,
    part,
    parts,
    present,
    rows,
)
from tests.support.table_writes import stage_delete_where, stage_upsert

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

SAME = [WantedColumn(field, field.name) for field in SCHEMA]
NUMBERS = pa.list_(pa.field("item", pa.int32()))
WIDE_NUMBERS = pa.list_(pa.field("item", pa.int64()))


def wanted(**changed: WantedColumn | None) -> list[WantedColumn]:
    """The columns there are, with some replaced, left out (None), or added."""
    given = {item.field.name: item for item in SAME} | changed
    return [item for item in given.values() if item is not None]


def addresses(table: Table) -> dict[str, int]:
    found = table.scanner(["id"], has_addresses=True).to_table()
    return dict(zip(*(found.column(name).to_pylist() for name in ("id", ADDRESS)), strict=True))


def field_ids(table: Table) -> dict[str, int]:
    return {field.name(): field.id() for field in table.dataset.lance_schema.fields()}


@pytest.fixture
def used(stocked: Table) -> Table:
    """Parts with nulls, a large drawing, deleted rows and three fragments."""
    changed = [part(1, name=None, drawing=LARGE), part(4, stock=None), part(7)]
    return present(stage_upsert(stocked, rows(changed)))


USED = by_id([*parts((0, 2, 3, 5, 7)), part(1, name=None, drawing=LARGE), part(4, stock=None)])


def test_nothing_to_do(used: Table) -> None:
    assert rearrange(used, SAME) is None
    assert rearrange(used, SAME[::-1]) is None
    filled = WantedColumn(FIELDS["tags"], "tags", pa.scalar(["none"], FIELDS["tags"].type))
    assert rearrange(used, wanted(tags=filled)) is None


def test_metadata_changes_write_no_data(used: Table, tmp_path: Path) -> None:
    before = files_below(tmp_path, "data")
    note = WantedColumn(pa.field("note", pa.utf8()), None)
    bytes_ = WantedColumn(pa.field("photo", pa.large_binary()), None)
    label = WantedColumn(pa.field("label", pa.utf8()), "name")
    plan = [note, *wanted(name=label, tags=None, photo=bytes_)]
    table = present(rearrange(used, plan))
    assert files_below(tmp_path, "data") == before
    assert table.schema.names == [item.field.name for item in plan]
    assert table.dataset.latest_version == EMPTY_VERSION
    assert table.base_version == used.base_version
    assert addresses(table) == addresses(used)

    def seen(row: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in row.items() if key not in ("name", "tags")}
        return {**kept, "label": row["name"], "note": None, "photo": None}

    expected = {key: seen(row) for key, row in USED.items()}
    assert contents(table) == expected
    assert contents(open_table(table.store, table.location, table.physical_version)) == expected
    new = {**seen(part(8)), "note": "new", "photo": LARGE}
    table = present(stage_append(table, rows([new], table.schema)))
    changed = {**seen(part(0)), "note": "old"}
    table = present(stage_upsert(table, rows([changed], table.schema)))
    assert contents(table) == expected | {"8": new, "0": changed}
    assert contents(present(compact(table))) == expected | {"8": new, "0": changed}
    assert contents(used) == USED


def test_written_columns_hold_their_values_at_the_same_addresses(used: Table) -> None:
    stock = WantedColumn(
        pa.field("on_hand", pa.float64(), nullable=False), "stock", pa.scalar(-1.5, pa.float64())
    )
    name = WantedColumn(pa.field("name", pa.utf8(), nullable=False), "name", pa.scalar("?"))
    grade = WantedColumn(
        pa.field("grade", WIDE_NUMBERS, nullable=False), None, pa.scalar([1, None], WIDE_NUMBERS)
    )
    table = present(rearrange(used, wanted(stock=stock, name=name, grade=grade)))
    assert addresses(table) == addresses(used)
    rows_now = contents(table)
    assert {key: row["on_hand"] for key, row in rows_now.items()} == {
        key: -1.5 if row["stock"] is None else float(row["stock"]) for key, row in USED.items()
    }
    assert {key: row["name"] for key, row in rows_now.items()} == {
        key: row["name"] or "?" for key, row in USED.items()
    }
    assert all(row["grade"] == [1, None] for row in rows_now.values())
    assert {key: (row["tags"], row["drawing"]) for key, row in rows_now.items()} == {
        key: (row["tags"], row["drawing"]) for key, row in USED.items()
    }
    rest = present(stage_delete_where(table, "`id` = '3'"))
    smaller = present(compact(rest))
    assert contents(smaller) == {key: row for key, row in rows_now.items() if key != "3"}
    assert smaller.schema == table.schema
    # What was written before is not read again once the column is another one.
    again = present(rearrange(table, wanted(stock=None, name=None, grade=None)))
    back = WantedColumn(pa.field("stock", pa.int64()), None)
    plan = [*(WantedColumn(field, field.name) for field in again.schema), back]
    assert set(present(rearrange(again, plan)).read(["stock"]).column(0).to_pylist()) == {None}


def test_lists_widen(tmp_path: Path) -> None:
    schema = pa.schema([FIELDS["id"], pa.field("sizes", NUMBERS)])
    items = [{"id": "a", "sizes": [1, None]}, {"id": "b", "sizes": None}, {"id": "c", "sizes": []}]
    table = present(stage_append(new_table(tmp_path, schema), rows(items, schema)))
    plan = [
        WantedColumn(FIELDS["id"], "id"),
        WantedColumn(pa.field("sizes", WIDE_NUMBERS), "sizes"),
    ]
    table = present(rearrange(table, plan))
    assert table.schema.field("sizes").type == WIDE_NUMBERS
    assert contents(table) == by_id(items)


@pytest.mark.parametrize("kind", ["full", "empty"])
def test_nullability_is_metadata(stocked: Table, empty: Table, kind: str) -> None:
    table = {"full": stocked, "empty": empty}[kind]
    required = WantedColumn(FIELDS["stock"].with_nullable(False), "stock")
    tight = present(rearrange(table, wanted(stock=required)))
    assert not tight.schema.field("stock").nullable
    assert contents(tight) == contents(table)
    with pytest.raises(RecordError):
        stage_append(tight, rows([part(9, stock=None)]))
    tight = present(stage_append(tight, rows([part(9)])))
    loose = present(rearrange(tight, SAME))
    assert loose.schema.field("stock").nullable
    loose = present(stage_upsert(loose, rows([part(9, stock=None)])))
    assert contents(loose)["9"]["stock"] is None
    assert contents(present(compact(loose, max_deleted_share=-1.0))) == contents(loose)


def test_a_null_that_was_deleted_is_in_nobodys_way(used: Table) -> None:
    table = present(stage_upsert(used, rows([part(4)])))
    required = WantedColumn(FIELDS["stock"].with_nullable(False), "stock")
    table = present(rearrange(table, wanted(stock=required)))
    assert contents(table)["4"] == part(4)
    assert contents(present(compact(table))) == contents(table)


def test_an_empty_table_takes_any_columns(empty: Table) -> None:
    plan = wanted(
        stock=WantedColumn(pa.field("stock", pa.float64(), nullable=False), "stock"),
        shape=None,
        grade=WantedColumn(pa.field("grade", pa.int32(), nullable=False), None),
    )
    table = present(rearrange(empty, plan))
    assert table.schema == pa.schema([item.field for item in plan])
    row = {**part(1, stock=1.5, grade=3)}
    row.pop("shape")
    assert contents(present(stage_append(table, rows([row], table.schema)))) == by_id([row])


def test_what_takes_two_versions(used: Table) -> None:
    """A name taken over, nullability both ways, a written and a renamed column, all together."""
    start = present(
        rearrange(used, wanted(shape=WantedColumn(FIELDS["shape"].with_nullable(False), "shape")))
    )
    plan = wanted(
        name=WantedColumn(pa.field("label", pa.utf8()), "name"),
        tags=WantedColumn(pa.field("name", FIELDS["tags"].type, nullable=False), "tags"),
        tags_again=WantedColumn(pa.field("tags", pa.int64()), None),
        shape=WantedColumn(FIELDS["shape"], "shape"),
        stock=WantedColumn(
            pa.field("stock", pa.float64(), nullable=False), "stock", pa.scalar(0.5)
        ),
    )
    table = present(rearrange(start, plan))
    assert table.schema == pa.schema([item.field for item in plan])
    assert addresses(table) == addresses(used)

    def seen(row: dict[str, Any]) -> dict[str, Any]:
        stock = 0.5 if row["stock"] is None else float(row["stock"])
        moved = {"label": row["name"], "name": row["tags"], "tags": None, "stock": stock}
        return {**row, **moved}

    assert contents(table) == {key: seen(row) for key, row in USED.items()}
    assert contents(present(compact(table))) == contents(table)


def test_indexes_of_columns_that_stay_serve_on(stocked: Table) -> None:
    table = stocked
    for column in ("id", "stock", "name"):
        request = IndexRequest(column, SegmentKind.BTREE, f"{column}_btree")
        table = present(stage_index(table, request))
    plan = wanted(
        stock=WantedColumn(pa.field("stock", pa.float64()), "stock"),
        name=WantedColumn(pa.field("label", pa.utf8()), "name"),
        name_again=WantedColumn(pa.field("name", pa.utf8()), None),
    )
    table = present(rearrange(table, plan))
    assert [(found.name, found.unindexed_rows) for found in index_coverage(table)] == [
        ("id_btree", 0)
    ]
    assert "ScalarIndexQuery" in table.dataset.scanner(filter="`id` = '4'").explain_plan()
    for column in ("stock", "name", "label"):
        request = IndexRequest(column, SegmentKind.BTREE, f"{column}_btree")
        table = present(stage_index(table, request))
    assert table.read(["id"], where="`label` = 'bolt number4'").to_pylist() == [{"id": "4"}]
    assert table.read(["id"], where="`stock` = 4.0").to_pylist() == [{"id": "4"}]


def test_what_cannot_be_is_refused(used: Table) -> None:
    refused = (
        wanted(note=WantedColumn(pa.field("note", pa.utf8()), "missing")),
        wanted(note=WantedColumn(pa.field("note", pa.utf8(), nullable=False), None)),
        wanted(note=WantedColumn(pa.field("note", pa.utf8()), None, pa.scalar(1))),
        wanted(stock=WantedColumn(FIELDS["stock"].with_nullable(False), "stock")),
        wanted(note=WantedColumn(pa.field("note", pa.large_binary()), "name")),
    )
    for plan in refused:
        with pytest.raises(InvariantBroken):
            rearrange(used, plan)


def test_a_failure_leaves_the_table_alone(used: Table) -> None:
    grade = WantedColumn(pa.field("grade", pa.int64()), None, pa.scalar(1))
    for point in ("stage.before_files", "stage.after_files", "stage.after_version"):
        with failpoints.arm(point, "error"), pytest.raises(StorageError):
            rearrange(used, wanted(grade=grade))
    assert contents(used) == USED
    assert present(rearrange(used, wanted(grade=grade))).read(["grade"]).column(0)[0].as_py() == 1


def test_what_was_written_serves_a_later_version(used: Table) -> None:
    grade = WantedColumn(pa.field("grade", pa.int64(), nullable=False), None, pa.scalar(1))
    stock = WantedColumn(pa.field("stock", pa.float64()), "stock")
    plan = wanted(stock=stock, grade=grade)
    done = WrittenColumns()
    rearrange(used, plan, done=done)
    later = present(stage_upsert(used, rows([part(0, stock=9), part(8)])))
    table = present(rearrange(later, plan, done=done))
    assert done.reused == len(used.dataset.get_fragments())
    assert contents(table) == contents(present(rearrange(later, plan)))
    assert addresses(table) == addresses(later)


def test_rows_that_come_back_are_written_again(stocked: Table) -> None:
    """As after a reset: what was written left out rows that were deleted then."""
    plan = wanted(stock=WantedColumn(pa.field("stock", pa.float64()), "stock"))
    done = WrittenColumns()
    rearrange(present(stage_delete_where(stocked, "`id` = '3'")), plan, done=done)
    table = present(rearrange(stocked, plan, done=done))
    assert contents(table) == contents(present(rearrange(stocked, plan)))
    assert done.reused == len(stocked.dataset.get_fragments()) - 1
