"""Export of real tables to Parquet: files, columns, row groups."""

from __future__ import annotations

import datetime as dt
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph_core.errors import ConfigError, StorageError
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.write import export_parquet as export_parquet_module
from tests.support.exports import FULL, NOTE, SENSOR, WATCHES, Tables, note


def test_a_file_for_each_table(full: Tables) -> None:
    out = full.root / "out"
    files = full.parquet()
    assert [(file.table_key, file.path, file.row_count) for file in files] == [
        ("edge:Watches", out / "edges" / "Watches.parquet", 2),
        ("node:Note", out / "nodes" / "Note.parquet", 2),
        ("node:Sensor", out / "nodes" / "Sensor.parquet", 2),
    ]
    assert [file.byte_count for file in files] == [file.path.stat().st_size for file in files]
    assert {path for path in out.rglob("*") if path.is_file()} == {file.path for file in files}


def test_columns_are_the_properties(full: Tables) -> None:
    edges, _, sensors = (pq.read_table(file.path) for file in full.parquet())
    assert edges.column_names == ["id", "from", "to", "weight", "sketch", "sketch#uri"]
    names = list(FULL)
    names.insert(names.index("picture") + 1, "picture#uri")
    assert sensors.column_names == ["id", *names]
    assert sensors.schema.field("picture").type == pa.large_binary()
    assert sensors.schema.field("place").type == table_schema(SENSOR).field("place").type
    assert edges["id"].to_pylist() == ["e1", "e2"]
    assert edges["to"].to_pylist() == ["bare", "bare"]


def test_values_are_those_of_the_table(full: Tables) -> None:
    found = pq.read_table(full.parquet(SENSOR)[0].path).to_pylist()
    moment = dt.datetime(2026, 1, 31, 10, 11, 12, 345_000, tzinfo=dt.UTC)
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
    exact = {
        name: given for name, (given, _) in FULL.items() if name not in ("ratio", "place", "times")
    }
    assert found[0] == {"id": "bare", **dict.fromkeys(FULL), "name": "bare", "picture#uri": None}
    assert found[1]["ratio"] == pa.scalar(0.1, pa.float32()).as_py()
    assert found[1]["times"] == [moment, before]
    assert {name: found[1][name] for name in exact} == {**exact, "seen": moment}


def test_an_empty_table_is_a_file_with_columns(tables: Tables) -> None:
    found = pq.read_table(tables.parquet(WATCHES)[0].path)
    assert found.num_rows == 0
    assert found.column_names == ["id", "from", "to", "weight", "sketch", "sketch#uri"]


def test_small_batches_share_a_row_group(tables: Tables) -> None:
    tables.append(NOTE, [note(f"n{number * 7 % 1000:03d}") for number in range(1000)])
    path = tables.parquet(NOTE)[0].path
    assert pq.ParquetFile(path).num_row_groups == 1
    assert pq.read_table(path)["id"].to_pylist() == [f"n{number:03d}" for number in range(1000)]


def test_a_failed_export_leaves_the_file_that_was_there(tables: Tables) -> None:
    tables.append(NOTE, [note("a")])
    path = tables.parquet(NOTE)[0].path
    before = path.read_bytes()
    tables.append(NOTE, [note(f"n{number}", "x" * 1000) for number in range(1000)])
    shutil.rmtree(tables.root / "node" / "Note" / "data")
    with pytest.raises(StorageError):
        tables.parquet(NOTE)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_cannot_be(tables: Tables) -> None:
    (tables.root / "out").write_text("a file")
    with pytest.raises(ConfigError, match=r"cannot write .*/out/nodes: Not a directory"):
        tables.parquet(NOTE)


def test_row_groups_are_small_where_blobs_are_large(
    pictured: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_parquet_module, "_GROUP_BYTES", 8_000)
    path = pictured.parquet(SENSOR)[0].path
    found = pq.ParquetFile(path)
    groups = [found.read_row_group(at, ["picture"]).nbytes for at in range(found.num_row_groups)]
    assert sorted(groups)[-2] < 15_000
    assert len(groups) >= 4
    assert found.read().num_rows == 34


def test_blobs_have_no_dictionary_and_no_statistics(full: Tables) -> None:
    """For either, a writer holds values that may be very large."""
    group = pq.ParquetFile(full.parquet(SENSOR)[0].path).metadata.row_group(0)
    columns = {item.path_in_schema: item for item in map(group.column, range(group.num_columns))}
    has = {name: (item.has_dictionary_page, item.is_stats_set) for name, item in columns.items()}
    assert has["picture"] == (False, False)
    assert has["name"] == has["words.list.element"] == (True, True)
