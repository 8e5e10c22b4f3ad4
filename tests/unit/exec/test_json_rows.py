"""Rows as JSON: every type, every odd value, and the same text as the standard library's."""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.errors import DataError
from omnigraph_core.exec.json_rows import is_printable, plain_objects, row_lines, row_objects
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each

CATALOG = compile_schema("""
node Part {
  maker: String
  sku: String
  weight: F64?
  tags: [String]?
  drawing: Blob?
  shape: Vector(2)? @embed("maker")
  @key(maker, sku)
}

edge Needs: Part -> Part {
  count: I32?
}
""")
PART = CATALOG.nodes["Part"]
NEEDS = CATALOG.edges["Needs"]
NAN, INFINITY = float("nan"), float("inf")
ODD_F32 = float(np.array([0x15AE43FD], np.uint32).view(np.float32)[0])
"""Its shortest text, 7.038531e-26, reads as the next number up by way of 64 bits."""


def texts(column: pa.Array) -> list[str]:
    """The JSON of each value."""
    rows = plain_objects(pa.table({"value": column})).to_pylist()
    assert all(row.startswith('{"value":') and row.endswith("}") for row in rows)
    return [row[len('{"value":') : -1] for row in rows]


def moments(milliseconds: list[int | None]) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).view(pa.date64())


CASES: dict[str, tuple[pa.Array, list[str]]] = {
    "text": (pa.array(["", "ü😀", None]), ['""', '"ü😀"', "null"]),
    "escapes": (
        pa.array(['"\\"', "a\nb\r\t\b\f", "\x00\x1f\x7f", "\u2028\u2029\ufeff\U0010ffff", "\\n"]),
        [
            r'"\"\\\""',
            r'"a\nb\r\t\b\f"',
            '"\\u0000\\u001f\x7f"',
            '"\u2028\u2029\ufeff\U0010ffff"',
            r'"\\n"',
        ],
    ),
    "bool": (pa.array([True, False, None]), ["true", "false", "null"]),
    "int32": (pa.array([-(2**31), 2**31 - 1], pa.int32()), ["-2147483648", "2147483647"]),
    "int64": (
        pa.array([-(2**63), 2**63 - 1, 0], pa.int64()),
        ["-9223372036854775808", "9223372036854775807", "0"],
    ),
    "uint32": (pa.array([0, 2**32 - 1], pa.uint32()), ["0", "4294967295"]),
    "uint64": (pa.array([2**64 - 1, None], pa.uint64()), ["18446744073709551615", "null"]),
    "float64": (
        pa.array([0.1, 1.0, 0.0, -0.0, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, None]),
        ["0.1", "1.0", "0.0", "-0.0", "1e+16", "1e-7", "5e-324", "1.7976931348623157e+308", "null"],
    ),
    "float32": (
        pa.array([0.1, 1.0, -0.0, 1e-45, 3.4028234663852886e38, 16777216.0, None], pa.float32()),
        ["0.1", "1.0", "-0.0", "1e-45", "3.4028235e+38", "16777216.0", "null"],
    ),
    "odd float32": (pa.array([ODD_F32], pa.float32()), ["7.038530691851209e-26"]),
    "odd float32 beside nan": (
        pa.array([ODD_F32, NAN], pa.float32()),
        ["7.038530691851209e-26", '"NaN"'],
    ),
    "not finite": (
        pa.array([NAN, INFINITY, -INFINITY, 2.0, None]),
        ['"NaN"', '"Infinity"', '"-Infinity"', "2.0", "null"],
    ),
    "date": (
        pa.array([dt.date.min, dt.date.max, dt.date(1969, 12, 31), None]),
        ['"0001-01-01"', '"9999-12-31"', '"1969-12-31"', "null"],
    ),
    "moment": (
        moments([0, -1, -62135596800000, 253402300799999, 1769854272345, None]),
        [
            '"1970-01-01T00:00:00.000Z"',
            '"1969-12-31T23:59:59.999Z"',
            '"0001-01-01T00:00:00.000Z"',
            '"9999-12-31T23:59:59.999Z"',
            '"2026-01-31T10:11:12.345Z"',
            "null",
        ],
    ),
    "vector": (
        pa.array([[1, -0.0], None, [0.1, 2.5]], pa.list_(pa.float32(), 2)),
        ["[1.0,-0.0]", "null", "[0.1,2.5]"],
    ),
    "texts": (
        pa.array([["a", '"'], [], None, [""], ["null", None]]),
        [r'["a","\""]', "[]", "null", '[""]', '["null",null]'],
    ),
    "numbers": (
        pa.array([[2**64 - 1, 0], []], pa.list_(pa.uint64())),
        ["[18446744073709551615,0]", "[]"],
    ),
    "flags": (pa.array([[True, False], None]), ["[true,false]", "null"]),
    "days": (pa.array([[dt.date(2026, 2, 1)]]), ['["2026-02-01"]']),
    "moments": (
        pa.ListArray.from_arrays([0, 1, 1], moments([1])),
        ['["1970-01-01T00:00:00.001Z"]', "[]"],
    ),
    "bytes": (
        pa.array([b"\x00\xff", b"", None], pa.large_binary()),
        ['"base64:AP8="', '"base64:"', "null"],
    ),
}


@each("name", CASES)
def test_a_value_of_every_type(name: str) -> None:
    column, expected = CASES[name]
    assert texts(column) == expected
    for text in expected:
        json.loads(text)


@each("name", CASES)
def test_a_slice_is_written_as_its_rows_alone(name: str) -> None:
    column, expected = CASES[name]
    for start in range(len(expected)):
        assert texts(column.slice(start, 1)) == expected[start : start + 1]
    assert texts(column.slice(0, 0)) == []


def test_a_node_is_the_record_that_loads_it() -> None:
    rows = pa.table(
        {
            "shape#origin": pa.array([None, 7], pa.int64()),
            "shape": pa.array([None, [0.5, 1]], pa.list_(pa.float32(), 2)),
            "sku": ["7", "8"],
            "maker": ["Acme", "Acme"],
            "id": ['["Acme","7"]', '["Acme","8"]'],
            "weight": pa.array([None, 1.5]),
            "tags": pa.array([[], ["a", "b"]], pa.list_(pa.utf8())),
            "drawing": pa.array([b"x", None], pa.large_binary()),
            "drawing#uri": pa.array([None, 's3://bucket/"8"']),
            "#line": [1, 2],
        }
    )
    assert row_objects(PART, rows).to_pylist() == [
        r'{"type":"Part","data":{"id":"[\"Acme\",\"7\"]","maker":"Acme","sku":"7","weight":null,'
        r'"tags":[],"drawing":"base64:eA==","shape":null}}',
        r'{"type":"Part","data":{"id":"[\"Acme\",\"8\"]","maker":"Acme","sku":"8","weight":1.5,'
        r'"tags":["a","b"],"drawing":"s3://bucket/\"8\"","shape":[0.5,1.0]}}',
    ]
    assert [list(json.loads(text)) for text in plain_objects(rows).to_pylist()] == [
        ["shape", "sku", "maker", "id", "weight", "tags", "drawing"]
    ] * 2


def edges(ids: list[str | None]) -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.utf8()),
            "src": pa.array(["a"] * count, pa.utf8()),
            "dst": pa.array(["b"] * count, pa.utf8()),
            "count": pa.array([3] * count, pa.int32()),
        }
    )


def test_an_edge_has_its_ends_outside_its_data() -> None:
    expected = '{"edge":"Needs","from":"a","to":"b","data":{"id":"e","count":3}}'
    assert row_objects(NEEDS, edges(["e"])).to_pylist() == [expected]


def test_an_id_still_to_be_made_is_null() -> None:
    assert '"data":{"id":null,' in row_objects(NEEDS, edges([None]))[0].as_py()


def test_lines_are_the_objects_with_their_ends() -> None:
    rows = pa.concat_tables([edges(["e", "ü\n"]), edges([]), edges(["g"])])
    lines = row_lines(NEEDS, rows)
    assert lines.endswith(b"\n")
    assert lines.decode().split("\n")[:-1] == row_objects(NEEDS, rows).to_pylist()


def test_no_rows_are_no_lines() -> None:
    assert row_lines(NEEDS, edges([])) == b""
    assert row_objects(NEEDS, edges([])).to_pylist() == []


OUTSIDE = {
    "day before": pa.array([-719163], pa.date32()),
    "day after": pa.array([0, 2932897], pa.date32()),
    "moment before": moments([-62135596800001]),
    "moment after": moments([None, 253402300800000]),
    "in a list": pa.ListArray.from_arrays([0, 1], moments([253402300800000])),
}


@each("name", OUTSIDE)
def test_a_date_without_a_four_digit_year_is_refused(name: str) -> None:
    assert not is_printable(OUTSIDE[name])
    with pytest.raises(DataError, match="`value` holds a date outside the years 1 to 9999"):
        texts(OUTSIDE[name])


@each("name", CASES)
def test_only_what_is_not_finite_is_unprintable(name: str) -> None:
    column = CASES[name][0]
    assert is_printable(column) == ("nan" not in name and name != "not finite")


def test_numbers_in_lists_and_vectors_are_looked_at() -> None:
    assert not is_printable(pa.array([[1.0], None, [NAN]]))
    assert not is_printable(pa.array([None, [1, INFINITY]], pa.list_(pa.float32(), 2)))
    assert is_printable(pa.array([None, None], pa.list_(pa.float32(), 2)))


# The same as the standard library writes, for random values.

strings = st.text(st.characters(exclude_categories=["Cs"]))
plain_kinds: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.utf8(): strings | st.text(st.sampled_from('"\\\n\x00\x1fa/ü')),
    pa.bool_(): st.booleans(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.date32(): st.dates(),
    pa.large_binary(): st.binary(max_size=20),
}


def expected(value: Any) -> str:
    if isinstance(value, bytes):
        value = "base64:" + base64.b64encode(value).decode()
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dt.date.isoformat)


@given(st.data())
def test_values_are_written_as_the_standard_library_does(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(plain_kinds)))
    values = data.draw(st.lists(st.none() | plain_kinds[kind], min_size=1, max_size=8))
    assert texts(pa.array(values, kind)) == [expected(value) for value in values]


@given(st.data())
def test_lists_are_written_as_the_standard_library_does(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([kind for kind in plain_kinds if kind != pa.large_binary()]))
    members = st.lists(st.none() | plain_kinds[kind], max_size=4)
    values = data.draw(st.lists(st.none() | members, min_size=1, max_size=6))
    start = data.draw(st.integers(0, len(values) - 1))
    column = pa.array(values, pa.list_(kind)).slice(start)
    assert texts(column) == [expected(value) for value in values[start:]]


@given(st.lists(strings, min_size=1, max_size=6))
def test_any_text_stays_on_its_line(ids: list[str]) -> None:
    lines = row_lines(NEEDS, edges(list(ids))).split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["data"]["id"] for line in lines] == ids


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_a_float_reads_back_bit_by_bit(values: list[float]) -> None:
    for value, text in zip(values, texts(pa.array(values, pa.float64())), strict=True):
        again = json.loads(text)
        assert isinstance(again, float)
        assert struct.pack("d", again) == struct.pack("d", value)
        assert significant(text) == significant(repr(value)), "no digit more than is needed"


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8))
def test_a_short_float_reads_back_bit_by_bit(patterns: list[int]) -> None:
    values = np.array(patterns, np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    for value, text in zip(values, texts(pa.array(values)), strict=True):
        again = json.loads(text)
        assert isinstance(again, float)
        assert np.float32(again).tobytes() == value.tobytes()
        assert significant(text) == significant(str(value)), "no digit more than is needed"


def significant(text: str) -> str:
    digits = text.lower().lstrip("-").split("e")[0].replace(".", "")
    return digits.strip("0")
