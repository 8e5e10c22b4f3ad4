"""CSV, Parquet and Arrow data as rows of a type."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph_core.write.records import raw_records
from omnigraph_core.write.sources import open_sources
from tests.support.cases import each
from tests.support.reading import Outcome, read

if TYPE_CHECKING:
    from pathlib import Path

DEFAULTS = {"colour": "grey", "rank": 3, "type": "plain"}


def csv(text: str | bytes, type_name: str = "Part", **options: Any) -> Outcome:
    data = text if isinstance(text, bytes) else text.encode()
    return read(data, format="csv", type_name=type_name, **options)


def test_csv_values() -> None:
    outcome = csv(
        "id,name,is_open,small,price,made,seen,shape,drawing,tags\n"
        '1,"a, ""b""",true,7,0.5,2020-01-01,2020-01-01T00:00:00Z,"[1,2,3]",base64:AQI=,"[""x""]"\n'
    )
    assert outcome.row() == {
        "id": "1",
        "name": 'a, "b"',
        "is_open": True,
        "small": 7,
        "price": 0.5,
        "made": dt.date(2020, 1, 1),
        "seen": 1577836800000,
        "shape": [1.0, 2.0, 3.0],
        "drawing": b"\x01\x02",
        "tags": ["x"],
        **DEFAULTS,
    }


def test_an_empty_field_is_null_and_a_quoted_one_is_text() -> None:
    outcome = csv('id,name,colour\n1,,\n2,"",""\n')
    first, second = outcome.rows()
    assert "name" not in first
    assert "colour" not in first  # given as null, so the default does not apply
    assert (second["name"], second["colour"]) == ("", "")


def test_csv_lines_are_counted_as_an_editor_does() -> None:
    outcome = csv(
        'id,"na\nme",name\n'.replace('"na\nme",', "") + '1,"a\nb"\n\n2,c,d\n3,"x\n\ny"\n4,z'
    )
    assert [(row["#line"], row["id"]) for row in outcome.rows()] == [(2, "1"), (6, "3"), (9, "4")]
    assert outcome.problems == [(5, "record")]
    assert outcome.messages == ["expected 2 fields, found 3"]


def test_a_ragged_last_row() -> None:
    assert csv("id,name\n1,a\n2\n").problems == [(3, "record")]


def test_a_ragged_row_that_is_not_utf8() -> None:
    outcome = csv(b"id,name\n1,a\n2,b,\xff\n3,c\n")
    assert outcome.problems == [(3, "record")]
    assert [row["id"] for row in outcome.rows()] == ["1", "3"]


@each(
    ("text", "line"),
    [
        ('id,name\n1,a\n2,"cut off in the mid', 3),
        ('id,name\n1,"x\n2,y\n3,z\n', 2),
        ('id,name\n1,"x\n\n"\n2,"y""\n3,z', 5),
        ('id,"name\n' + "1,a\n" * 100_000, 1),
        ('"', 1),
    ],
)
def test_a_quoted_field_that_does_not_end(text: str, line: int) -> None:
    """It may have swallowed rows, so nothing that can be left out mends it."""
    outcome = csv(text)
    assert (None, "record") in outcome.problems
    assert f"a quoted field that begins at line {line} does not end" in outcome.messages


def test_text_after_a_closing_quote() -> None:
    outcome = csv('id,name\n1,"abc"def\n2,"a\nb"\n3," ""x""" \n4,5" pipe\n')
    assert [(row["#line"], row["name"]) for row in outcome.rows()] == [
        (3, "a\nb"), (6, '5" pipe'),
    ]  # fmt: skip
    assert outcome.problems == [(2, "record"), (5, "record")]
    assert outcome.messages[0] == "text after the closing quote of a field"
    assert outcome.listed[0].value == '1,"abc"def'
    assert "names of the columns" in csv('"id"x,name\n1,a\n').messages[0]


@pytest.mark.parametrize("size", [17 << 20, 40 << 20])
def test_very_long_fields(size: int) -> None:
    long = "x\n" * (size // 2)
    outcome = csv(f'id,name\n1,a\n2,"{long}"\n3,c\n')
    assert [row["name"] for row in outcome.rows()] == ["a", long, "c"]
    assert outcome.rows()[2]["#line"] == 4 + size // 2


def test_lines_may_end_with_a_return() -> None:
    outcome = csv("id,name\r1,a\r\n2,x,y\r\r3,c")
    assert [(row["#line"], row["id"]) for row in outcome.rows()] == [(2, "1"), (5, "3")]
    assert outcome.problems == [(3, "record")]


def test_wrong_values_of_csv_have_their_line() -> None:
    outcome = csv(b"id,small,name\n1,x,a\n2,2,\xff\n3,3,c\n")
    assert [(row["#line"], row["small"]) for row in outcome.rows()] == [(4, 3)]
    small, name = outcome.listed
    assert (small.line, small.property, small.value) == (2, "small", "x")
    assert (name.line, name.message) == (3, "Part.name: not UTF-8")


@each("text", ["", "id,nmae,zzz\n1,2,3\n", "id,id\n1,2\n", b"\xff\n"])
def test_columns_are_judged_once(text: str | bytes) -> None:
    outcome = csv(text)
    assert outcome.rows() == []
    assert outcome.listed
    assert all(found.line is None for found in outcome.listed)


def test_unknown_columns_have_a_suggestion() -> None:
    outcome = csv("id,nmae,zzz\n1,2,3\n")
    assert [str(found.rule) for found in outcome.listed] == ["unknown_field", "unknown_field"]
    assert "did you mean `name`?" in outcome.messages[0] + outcome.messages[1]


@pytest.mark.parametrize("header", ["from,to", "src,dst", "src,to"])
def test_edges(header: str) -> None:
    outcome = csv(f"{header},since\na,b,2020-01-01\n,b,\na,,\n", "edge:holds")
    assert outcome.rows()[0]["src"] == "a"
    assert outcome.rows()[0]["dst"] == "b"
    assert outcome.rows()[0]["note"] == "none"
    assert outcome.problems == [(3, "record"), (4, "record")]
    assert outcome.messages == ["edge Holds without `from`", "edge Holds without `to`"]


def test_edges_need_their_ends() -> None:
    assert csv("since\n2020-01-01\n", "Holds").messages == [
        "edge Holds without a column `from`",
        "edge Holds without a column `to`",
    ]
    assert csv("from,src,to\na,a,b\n", "Holds").messages == ["column `src` is given twice"]


@pytest.mark.parametrize("name", ["Prt", "node:Holds", "edge:Part"])
def test_unknown_type(name: str) -> None:
    outcome = csv("id\n1\n", name)
    assert outcome.problems == [(None, "unknown_type")]
    assert f"unknown type `{name}`" in outcome.messages[0]


TABLE = pa.table(
    {
        "id": ["1", "2", "3"],
        "stock": [1.0, 2.5, None],
        "seen": pa.array([1_500, -1, None], pa.timestamp("us")),
        "drawing": pa.array([b"a", None, b"c"], pa.binary()),
        "drawing#uri": [None, "s3://x/y", "s3://x/z"],
    }
)


def written(path: Path, table: pa.Table = TABLE) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=2)
    elif path.name == "stream.arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return path


@each("name", ["a.parquet", "a.feather", "stream.arrow", "memory", "bytes"])
def test_tables(tmp_path: Path, name: str) -> None:
    given: Any = TABLE
    if name == "bytes":
        given = io.BytesIO(written(tmp_path / "a.parquet").read_bytes())
    elif name != "memory":
        given = written(tmp_path / name)
    format = "parquet" if name == "bytes" else None
    outcome = read(given, type_name="Part", format=format)
    (row,) = outcome.rows()
    assert row["#line"] == 1
    assert (row["stock"], row["seen"], row["drawing"]) == (1, 1, b"a")
    assert outcome.problems == [(2, "value"), (3, "value")]
    assert [found.unit for found in outcome.listed] == ["row", "row"]
    assert outcome.listed[0].value == 2.5
    assert outcome.messages[1] == "Part.drawing: both bytes and a URI are given"


def test_a_uri_column_holds_uris() -> None:
    table = pa.table({"drawing#uri": ["s3://x/y", "base64:AQI=", "x"]})
    outcome = read(table, type_name="Part")
    assert outcome.rows()[0]["drawing#uri"] == "s3://x/y"
    assert [line for line, _ in outcome.problems] == [2, 3]


LATIN1 = pa.array([b"tea", b"caf\xe9"], pa.binary()).view(pa.utf8())


@each("name", ["a.parquet", "a.arrow"])
@each("column", ["id", "name", "drawing", "drawing#uri", "tags"])
def test_text_that_is_not_utf8(tmp_path: Path, name: str, column: str) -> None:
    texts = pa.array([b"s3://x", b"caf\xe9"], pa.binary()).view(pa.utf8())
    values = pa.ListArray.from_arrays([0, 1, 2], texts) if column == "tags" else texts
    path = written(tmp_path / name, pa.table({column: values}))
    outcome = read(path, type_name="Part")
    assert [row["#line"] for row in outcome.rows()] == [1]
    assert outcome.problems == [(2, "value")]
    assert outcome.messages == [f"Part.{column}: not UTF-8"]
    (source,) = open_sources(path, type_name="Part")
    assert "caf\ufffd" in next(raw_records(source, {2}))[1]


def test_ends_that_are_not_utf8() -> None:
    table = pa.table({"from": LATIN1, "to": LATIN1})
    outcome = read(table, type_name="Holds")
    assert outcome.messages[:2] == ["Holds.from: not UTF-8", "Holds.to: not UTF-8"]
    assert [row["#line"] for row in outcome.rows()] == [1]


@each(
    ("column", "values", "shown"),
    [
        ("price", pa.array([float("nan")]), "NaN"),
        ("price", pa.array([float("-inf")]), "-Infinity"),
        ("made", pa.array([2**31 - 1], pa.int32()).view(pa.date32()), 2**31 - 1),
        ("seen", pa.array([2**62], pa.timestamp("s")), 2**62),
        ("made", pa.array([10**9], pa.timestamp("ns", "No/Where")), 10**9),
        ("times", pa.array([[2**62]], pa.list_(pa.timestamp("s"))), "[…]"),
    ],
)
def test_values_nobody_can_hold_are_reported(column: str, values: pa.Array, shown: object) -> None:
    table = pa.table({column: values})
    (found,) = read(table, type_name="Part").listed
    assert found.value == shown
    json.dumps(found.to_json(), allow_nan=False)
    (source,) = open_sources(table, type_name="Part")
    ((_, text),) = raw_records(source, {1})
    assert set(json.loads(text)) == {column}


def test_columns_of_the_wrong_type() -> None:
    table = pa.table({"small": pa.array([], pa.decimal128(5, 2)), "name": pa.array([], pa.int8())})
    assert read(table, type_name="Part").messages == [
        "Part.small: expected I32?, found a column of decimal128(5, 2)",
        "Part.name: expected String?, found a column of int8",
    ]


@each("name", ["Part.parquet", "Part.arrow", "Part.feather"])
@each("data", [b"", b"no such thing", b"ARROW1\0\0rest", b"PAR1PAR1"])
def test_damaged_files_are_reported(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    outcome = read(path)
    assert outcome.problems == [(None, "record")]
    assert outcome.listed[0].file == str(path)
    assert "cannot be read as" in outcome.messages[0]


def test_wide_rows_come_in_small_batches() -> None:
    table = pa.table({"name": ["x" * (1 << 20)] * 40})
    outcome = read(table, type_name="Part")
    assert len(outcome.batches) > 1
    assert [row["#line"] for row in outcome.rows()] == list(range(1, 41))


def test_gzipped_csv() -> None:
    assert csv(gzip.compress(b"name\na\n")).row()["name"] == "a"


def test_raw_rows() -> None:
    (source,) = open_sources(TABLE, type_name="Part")
    ((number, text),) = raw_records(source, {1})
    assert number == 1
    assert json.loads(text) == {
        "id": "1",
        "stock": 1.0,
        "seen": "1970-01-01 00:00:00.001500",
        "drawing": "a",
        "drawing#uri": None,
    }


def test_raw_rows_of_csv() -> None:
    data = b"id,name\n1,a\n2,b\n3,c,d\n4,e\n5"
    (source,) = open_sources(data, format="csv", type_name="Part")
    assert list(raw_records(source, {3, 4, 5, 6})) == [
        (3, '{"id": "2", "name": "b"}'),
        (4, "3,c,d"),
        (5, '{"id": "4", "name": "e"}'),
        (6, "5"),
    ]
