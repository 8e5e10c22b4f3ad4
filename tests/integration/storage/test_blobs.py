"""Blobs of any size go through every operation, are read in parts, and swept with their rows."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.errors import ConfigError, InvariantBroken, RecordError, StorageError
from omnigraph_core.storage.blobs import open_blob
from omnigraph_core.storage.compact import compact
from omnigraph_core.storage.dataset import create_table, open_empty, open_table
from omnigraph_core.storage.fragments import layout, write_append
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.lookup import ADDRESS, find_rows, iter_rows
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_overwrite, stage_replace
from omnigraph_core.storage.sweep import delete_files, list_files, reachable_files
from tests.support.parts import files_below, present
from tests.support.table_writes import (
    add_filled_column,
    add_null_column,
    drop_column,
    rename_column,
    stage_delete_keys,
    stage_delete_where,
    stage_upsert,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.storage.dataset import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("photo", pa.large_binary()),
        pa.field("photo#uri", pa.utf8()),
        pa.field("scan", pa.large_binary()),
        pa.field("scan#uri", pa.utf8()),
    ]
)
LOCATION = "nodes/parts"
BY_ID = IndexRequest("id", SegmentKind.BTREE, "id_btree")
SMALL = b"\x00\xff small"
PACKED = random.Random(1).randbytes(100_000)
HUGE = random.Random(2).randbytes(5_000_000)
OTHER = random.Random(3).randbytes(4_500_000)


def row(key: str, photo: bytes | None = None, scan: bytes | None = None) -> dict[str, Any]:
    uri = "https://example.org/scan" if scan is None else None
    return {"id": key, "photo": photo, "photo#uri": None, "scan": scan, "scan#uri": uri}


def rows(*items: dict[str, Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(list(items), schema=schema)


START = (row("null"), row("empty", b"", b""), row("small", SMALL, HUGE), row("huge", HUGE, PACKED))


def contents(table: Table) -> dict[str, dict[str, Any]]:
    """Every row by its id, read by a cold handle, and by one that looks for it."""
    cold = open_table(open_store(str(table.store.root)), LOCATION, table.physical_version)
    found = {item["id"]: item for item in cold.read().to_pylist()}
    looked_up = find_rows(cold, "id", pa.array(list(found)), cold.schema.names).to_pylist()
    assert {item["id"]: item for item in looked_up} == found
    return found


def by_id(*items: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in items}


@pytest.fixture
def empty(tmp_path: Path) -> Table:
    store = open_store(str(tmp_path))
    store.create_root()
    return create_table(store, LOCATION, SCHEMA)


@pytest.fixture
def stocked(empty: Table) -> Table:
    table = present(stage_append(empty, rows(*START[:2])))
    return present(stage_append(table, rows(*START[2:])))


def replaced(table: Table, *items: dict[str, Any]) -> Table | None:
    ids = pa.array([item["id"] for item in items])
    there = find_rows(table, "id", ids, [], has_addresses=True).column(ADDRESS)
    return stage_replace(table, rows(*items), there)


NEW = (row("small", OTHER, None), row("new", PACKED, b""))
OPERATIONS: dict[str, tuple[Callable[[Table], Table | None], dict[str, dict[str, Any]]]] = {
    "append": (lambda table: stage_append(table, rows(NEW[1])), by_id(*START, NEW[1])),
    "files": (
        lambda table: stage_append(table, write_append(table, rows(NEW[1]).to_reader())),
        by_id(*START, NEW[1]),
    ),
    "upsert": (lambda table: stage_upsert(table, rows(*NEW)), by_id(*START, *NEW)),
    "replace": (lambda table: replaced(table, *NEW), by_id(*START, *NEW)),
    "delete": (
        lambda table: stage_delete_keys(table, pa.array(["null", "small"])),
        by_id(START[1], START[3]),
    ),
    "delete nulls": (
        lambda table: stage_delete_where(table, "`photo` IS NULL AND `scan#uri` LIKE 'https%'"),
        by_id(*START[1:]),
    ),
    "overwrite": (lambda table: stage_overwrite(table, rows(*NEW)), by_id(*NEW)),
    "compact": (compact, by_id(*START)),
    "index": (lambda table: stage_index(table, BY_ID), by_id(*START)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("is_indexed", [False, True])
def test_blobs_survive_every_operation(stocked: Table, name: str, is_indexed: bool) -> None:
    operation, expected = OPERATIONS[name]
    table = present(stage_index(stocked, BY_ID)) if is_indexed else stocked
    if is_indexed and name == "index":
        table = present(stage_append(table, rows(row("new"))))
        expected = {**expected, "new": row("new")}
    after = present(operation(table))
    assert contents(after) == expected
    assert after.schema == SCHEMA
    compacted = compact(after)
    if compacted is not None:
        assert contents(compacted) == expected
    assert contents(stocked) == by_id(*START)


def test_tables_speak_of_bytes(stocked: Table) -> None:
    assert stocked.schema == SCHEMA
    assert stocked.read().schema == SCHEMA
    assert stocked.read(["scan"], where="`id` = 'null'").schema == pa.schema([SCHEMA.field("scan")])
    assert stocked.read(["id"]).schema == pa.schema([SCHEMA.field("id")])
    assert stocked.blobs_of() == ("photo", "scan")
    assert stocked.blobs_of(["id", "scan", "scan#uri"]) == ("scan",)


def test_an_empty_table_is_known_by_its_columns(empty: Table) -> None:
    assert open_empty(empty.store, LOCATION, SCHEMA) is not None
    assert open_empty(empty.store, LOCATION, SCHEMA.remove(1)) is None
    assert layout(present(open_empty(empty.store, LOCATION, SCHEMA))) == layout(empty)


def test_bytes_of_another_type_are_refused(empty: Table) -> None:
    short = rows(START[0]).set_column(1, "photo", pa.array([b"x"], pa.binary()))
    with pytest.raises(RecordError, match="`photo` is binary, expected large_binary"):
        stage_append(empty, short)


def test_rows_in_chunks_and_batches(empty: Table) -> None:
    """Sliced and chunked columns, as readers give them, keep each blob with its row."""
    whole = pa.concat_tables([rows(*START), rows(*NEW[1:])]).slice(1)
    expected = by_id(*START[1:], NEW[1])
    assert contents(present(stage_append(empty, whole))) == expected
    assert contents(present(stage_append(empty, whole.to_reader(max_chunksize=2)))) == expected
    assert contents(present(stage_upsert(empty, whole))) == expected


def test_columns_come_and_go(stocked: Table) -> None:
    table = rename_column(stocked, "photo", "picture")
    assert {key: item["picture"] for key, item in contents(table).items()} == {
        item["id"]: item["photo"] for item in START
    }
    table = add_null_column(table, pa.field("extra", pa.large_binary()))
    assert table.schema.field("extra") == pa.field("extra", pa.large_binary())
    assert {item["extra"] for item in contents(table).values()} == {None}
    added = {"id": "new", "picture": b"", "extra": HUGE, "scan": PACKED}
    table = present(stage_upsert(table, rows(added, {**added, "id": "null"}, schema=table.schema)))
    table = drop_column(present(compact(table)), "scan")
    found = contents(table)
    assert found["new"] == {
        "id": "new",
        "picture": b"",
        "photo#uri": None,
        "scan#uri": None,
        "extra": HUGE,
    }
    assert found["huge"]["picture"] == HUGE
    assert set(found) == {"null", "empty", "small", "huge", "new"}


def test_a_blob_has_no_default(stocked: Table) -> None:
    field = pa.field("extra", pa.large_binary())
    with pytest.raises(InvariantBroken, match="the bytes of `extra` stay as they are"):
        add_filled_column(stocked, field, pa.scalar(b"x", field.type))


def test_files_with_blobs_fit_a_newer_version(stocked: Table) -> None:
    written = write_append(stocked, rows(row("theirs", HUGE, OTHER)))
    ours = present(stage_append(stocked, rows(row("ours", OTHER))))
    both = present(stage_append(ours, written))
    assert contents(both) == by_id(*START, row("ours", OTHER), row("theirs", HUGE, OTHER))


def test_large_blobs_are_swept_with_their_rows(stocked: Table, tmp_path: Path) -> None:
    """Only what no kept version needs goes; files of blobs belong to the data file they are of."""
    updated = present(stage_upsert(stocked, rows(row("small", OTHER))))
    compacted = present(compact(updated))
    abandoned = write_append(stocked, rows(row("never", HUGE, OTHER)))
    assert abandoned.row_count == 1
    before = files_below(tmp_path, "data")
    reachable = reachable_files(compacted)
    doomed = [
        file.path for file in list_files(stocked.store, LOCATION) if file.unit not in reachable
    ]
    delete_files(stocked.store, LOCATION, doomed)
    left = files_below(tmp_path, "data")
    assert contents(compacted) == by_id(*START, row("small", OTHER))
    assert sum(path.endswith(".blob") for path in before) > sum(
        path.endswith(".blob") for path in left
    )
    kept = sum((tmp_path / LOCATION / path).stat().st_size for path in left)
    needed = len(HUGE) + len(PACKED) + len(OTHER)
    assert needed <= kept < needed + 100_000, "nothing of the old versions is left"
    with pytest.raises(StorageError):
        contents(stocked)


@pytest.mark.parametrize(
    ("key", "content"),
    [("empty", b""), ("small", SMALL), ("packed", PACKED), ("huge", HUGE)],
)
def test_a_blob_is_read_like_a_file(stocked: Table, key: str, content: bytes) -> None:
    table = present(stage_append(stocked, rows(row("packed", PACKED))))
    with present_blob(table, key) as blob:
        assert blob.size == len(content)
        assert blob.read() == content
        assert blob.read() == b""
        assert blob.seek(2) == 2
        assert blob.read(3) == content[2:5]
        assert blob.tell() == min(5, max(2, len(content)))
        assert blob.read_range(1, 4) == content[1:5]
        assert blob.read(2) == content[5:7], "a range moves nothing"
        assert blob.read_range(5, blob.size + 99) == content[5:]
        assert blob.read_range(blob.size + 5, 99) == b""
        assert blob.seek(0, io.SEEK_END) == len(content)
    with pytest.raises(StorageError, match="reading a blob failed"):
        blob.read()


@pytest.mark.parametrize(
    ("offset", "whence", "message"),
    [
        (-5, io.SEEK_SET, "negative position -5"),
        (-8, io.SEEK_CUR, "negative position -5"),
        (-(len(SMALL) + 1), io.SEEK_END, "negative position -1"),
        (0, 7, "whence of 0, 1 or 2, found 7"),
        (1.5, io.SEEK_SET, "the offset is a whole number, not 1.5"),
    ],
)
def test_places_that_cannot_be(stocked: Table, offset: Any, whence: int, message: str) -> None:
    with present_blob(stocked, "small") as blob:
        blob.seek(3)
        with pytest.raises(ConfigError, match=message):
            blob.seek(offset, whence)
        assert blob.tell() == 3, "it stays where it was"
        assert blob.seek(-2, io.SEEK_CUR) == 1
        assert blob.seek(-1, io.SEEK_END) == len(SMALL) - 1


@pytest.mark.parametrize(
    ("offset", "length", "message"),
    [
        (-5, 2, "no range begins at -5"),
        (0, -1, "no range begins at 0 and has length -1"),
        ("1", 2, "the offset is a whole number, not '1'"),
        (1, 2.0, "the length is a whole number, not 2.0"),
        (1, None, "the length is a whole number, not None"),
    ],
)
def test_ranges_that_cannot_be(stocked: Table, offset: Any, length: Any, message: str) -> None:
    with present_blob(stocked, "small") as blob:
        with pytest.raises(ConfigError, match=message):
            blob.read_range(offset, length)
        with pytest.raises(ConfigError, match="the count is a whole number, not 'x'"):
            blob.read("x")
        assert blob.read(np.int64(2)) == SMALL[:2]


def present_blob(table: Table, key: str) -> Any:
    found = open_blob(table, key, "photo")
    assert found is not None
    return found


def test_blobs_that_are_not_there(stocked: Table) -> None:
    assert open_blob(stocked, "null", "photo") is None
    assert open_blob(stocked, "nobody's", "photo") is None
    with pytest.raises(InvariantBroken, match="`photo#uri` of `nodes/parts` holds blobs"):
        open_blob(stocked, "small", "photo#uri")


def test_a_range_costs_that_range(stocked: Table) -> None:
    with present_blob(stocked, "huge") as blob:
        stocked.dataset.io_stats_incremental()
        middle = len(HUGE) // 2
        assert blob.read_range(middle, 10) == HUGE[middle : middle + 10]
        assert stocked.dataset.io_stats_incremental().read_bytes == 10


def test_opening_a_blob_reads_none_of_it(stocked: Table) -> None:
    stocked.dataset.io_stats_incremental()
    with present_blob(stocked, "huge") as blob:
        assert blob.size == len(HUGE)
    assert stocked.dataset.io_stats_incremental().read_bytes < 50_000


def test_blobs_on_every_store(graph_root: str) -> None:
    store = open_store(graph_root)
    store.create_root()
    table = create_table(store, LOCATION, SCHEMA)
    table = present(stage_append(table, rows(*START)))
    table = present(replaced(table, *NEW))
    assert contents(table) == by_id(*START, *NEW)
    for key, content in (("huge", HUGE), ("small", OTHER), ("new", PACKED)):
        with present_blob(table, key) as blob:
            assert blob.read_range(77, 7) == content[77:84]
            assert blob.read() == content
    iterated = pa.Table.from_batches(iter_rows(table)).to_pylist()
    assert by_id(*iterated) == by_id(*START, *NEW)


def test_other_columns_cost_nothing_of_the_blobs(stocked: Table) -> None:
    stocked.dataset.io_stats_incremental()
    assert stocked.read(["id", "scan#uri"]).num_rows == 4
    assert stocked.read(["id"], where="`photo` IS NOT NULL").num_rows == 3
    assert stocked.dataset.io_stats_incremental().read_bytes < 50_000
