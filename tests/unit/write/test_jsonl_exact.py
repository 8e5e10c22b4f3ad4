"""What a JSONL record means, rule by rule."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from tests.support.cases import each
from tests.support.reading import read


def part(**data: Any) -> bytes:
    return json.dumps({"type": "Part", "data": data}).encode()


def raw(property: str, literal: str) -> bytes:
    return f'{{"type":"Part","data":{{"{property}":{literal}}}}}'.encode()


@each(
    ("property", "literal", "expected"),
    [
        ("name", '"a\\u00e9\\ud83d\\ude00"', "aé😀"),
        ("kind", '"none of these"', "none of these"),  # the row rules judge enums
        ("is_open", "false", False),
        ("small", "-2147483648", -(2**31)),
        ("stock", "9007199254740993", 2**53 + 1),
        ("stock", "9007199254740993.0", 2**53 + 1),
        ("stock", "1e3", 1000),
        ("stock", "-0", 0),
        ("big", "18446744073709551615", 2**64 - 1),
        ("price", "1", 1.0),
        ("price", "1e-400", 0.0),
        ("price", "1e-99999999999999999999", 0.0),
        ("price", "1" + "0" * 300, 1e300),
        ("weight", "0.1", 0.10000000149011612),
        ("weight", "1.00000005960464477540", 1.0000001192092896),  # just above half way
        ("weight", "3.4028235e38", 3.4028234663852886e38),
        ("weight", "-3.4028235677973365e38", -3.4028234663852886e38),  # rounds up in 64 bits
        ("stock", "0e-99999999999999999999", 0),
        ("made", '"2020-02-29"', dt.date(2020, 2, 29)),
        ("made", "-719162", dt.date.min),
        ("made", "2932896", dt.date.max),
        ("seen", '"2020-01-01"', 1577836800000),
        ("seen", '"2020-01-01T01:00:00.1239+01:00"', 1577836800123),
        ("seen", "253402300799999", 253402300799999),
        ("shape", "[1, 2.5, -3e0]", [1.0, 2.5, -3.0]),
        ("drawing", '"base64:AQI="', b"\x01\x02"),
        ("tags", '["a", ""]', ["a", ""]),
        ("tags", "[]", []),
        ("counts", "[1, 2.0]", [1, 2]),
        ("days", '["2020-01-01", 0]', [dt.date(2020, 1, 1), dt.date(1970, 1, 1)]),
        ("times", '["1970-01-01T00:00:01Z", 5]', [1000, 5]),
        ("flags", "[true, false]", [True, False]),
    ],
)
def test_values(property: str, literal: str, expected: object) -> None:
    outcome = read(raw(property, literal))
    assert outcome.problems == []
    assert outcome.row()[property] == expected


@each(
    ("property", "literal", "message"),
    [
        ("name", "1", "expected String, found number 1"),
        ("name", '"\\ud800"', "half of a surrogate pair"),
        ("is_open", "1", "expected Bool, found number 1"),
        ("small", "2147483648", "out of range for I32"),
        ("few", "-1", "out of range for U32"),
        ("stock", '"1"', "expected I64, found text '1'"),
        ("stock", "1.5", "expected I64, found number 1.5"),
        ("stock", "true", "expected I64, found boolean true"),
        ("stock", "1e999999999", "out of range for I64"),
        ("stock", "1e-99999999999999999999", "expected I64, found number"),
        ("stock", "1e99999999999999999999", "out of range for I64"),
        ("stock", "9" * 5000, "out of range for I64"),
        ("price", "1e999", "out of range for F64"),
        ("price", "9" * 400, "out of range for F64"),
        ("price", '"1"', "expected F64, found text '1'"),
        ("weight", "1e39", "out of range for F32"),
        ("weight", "3.4028235677973367e38", "out of range for F32"),
        ("made", '"2020-02-30"', "no such date"),
        ("made", '"01.02.2020"', "expected a date like"),
        ("made", "2932897", "out of range for Date"),
        ("made", "1.5", "expected Date text or days"),
        ("seen", '"2020-01-01T25:00:00Z"', "no such datetime"),
        ("seen", '"9999-12-31T23:59:59-01:00"', "no such datetime"),
        ("seen", "253402300800000", "out of range for DateTime"),
        ("seen", '"2020-01-01T00:00:00+24:00"', "offsets go up to 23:59"),
        ("seen", '"2020-01-01T00:00:00+00:60"', "offsets go up to 23:59"),
        ("shape", "[1, 2]", "expected 3 numbers, found 2"),
        ("shape", '[1, 2, "3"]', "element 2: expected a number, found text '3'"),
        ("shape", "[1, 2, null]", "element 2: expected a number, found null"),
        ("shape", "1", "expected Vector(3) as an array, found number 1"),
        ("drawing", '"drawing.png"', "expected a blob as base64:<data> or a URI"),
        ("drawing", "[1]", "expected Blob, found an array"),
        ("tags", '"a"', "expected [String] as an array"),
        ("tags", '["a", null]', "element 1: expected String, found null"),
        ("tags", "[{}]", "element 0: expected String, found an object"),
    ],
)
def test_refused_values(property: str, literal: str, message: str) -> None:
    outcome = read(raw(property, literal))
    (found,) = outcome.listed
    assert (found.rule, found.type_name, found.property) == ("value", "Part", property)
    assert found.message.startswith(f"Part.{property}: ")
    assert message in found.message
    assert found.line == 1
    assert found.value is not None
    assert len(str(found.value)) <= 100
    json.dumps(found.to_json())
    assert outcome.rows() == []


def test_a_uri_is_kept_beside_the_blob() -> None:
    assert read(part(drawing="s3://b/x")).row()["drawing#uri"] == "s3://b/x"
    assert "drawing" not in read(part(drawing="s3://b/x")).row()


def test_left_out_takes_the_default_and_null_stays() -> None:
    defaults = {"colour": "grey", "rank": 3, "type": "plain"}
    assert read(b'{"type":"Part"}').row() == defaults
    assert read(b'{"type":"Part","data":null}').row() == defaults
    assert read(part(colour=None, rank=None)).row() == {"type": "plain"}


def test_edges() -> None:
    outcome = read(b'{"edge":"hOLDS","from":"b","to":"p","data":{"id":"e","since":"2020-01-01"}}')
    assert outcome.batches[0].type.name == "Holds"
    expected = {"id": "e", "src": "b", "dst": "p", "since": dt.date(2020, 1, 1), "note": "none"}
    assert outcome.row() == expected


@each(
    ("line", "problems"),
    [
        ("[]", []),  # an array of records, without any
        ("7", [("record", "expected a record as an object")]),
        ("{}", [("record", "neither `type` nor `edge`")]),
        ('{"type":"Part","edge":"Holds"}', [("record", "both `type` and `edge`")]),
        ('{"type":7}', [("record", "expected `type` as text")]),
        ('{"type":"part"}', [("unknown_type", "`part`; did you mean `Part`?")]),
        ('{"type":"\\ud800"}', [("unknown_type", "unknown node type")]),
        ('{"edge":"Hold"}', [("unknown_type", "`Hold`; did you mean `Holds`?")]),
        ('{"type":"Part","data":[]}', [("record", "expected `data` as an object")]),
        ('{"type":"Part","dta":{}}', [("unknown_field", "`dta` of a record; did you mean `data`")]),
        ('{"type":"Part","from":"x"}', [("unknown_field", "`from` of a record")]),
        ('{"type":"Part","data":{"nmae":1}}', [("unknown_field", "`nmae` of Part; did you mean")]),
        ('{"type":"Part","data":{"id":1}}', [("value", "Part.id: expected String")]),
        ('{"type":"Part","data":{"drawing#uri":"s3://a"}}', [("unknown_field", "drawing#uri")]),
        ('{"type":"Part","type":"Part"}', [("record", "`type` is given twice")]),
        ('{"type":"Part","data":{"name":"a","name":"a"}}', [("record", "`name` is given twice")]),
        (
            '{"edge":"Holds","data":{"src":"a"}}',
            [("record", "without `from`"), ("record", "without `to`"), ("unknown_field", "`src`")],
        ),
        ('{"edge":"Holds","from":1,"to":"p"}', [("value", "`from` of edge Holds: expected")]),
        ('{"edge":"Holds","from":null,"to":"p"}', [("record", "edge Holds without `from`")]),
        (
            '{"type":"Part","data":{"small":"x","stock":"y","z":1}}',
            [("value", "small"), ("value", "stock"), ("unknown_field", "`z`")],
        ),
        ('{"type":"Part"', [("json", "not valid JSON")]),
        ('{"type":"Part"} {"type":"Part"}', [("json", "unexpected text after the value")]),
        ('{"type":"Part","data":{"price":NaN}}', [("json", "NaN is no JSON number")]),
        ('{"type":"Part","data":{"name":"\t"}}', [("json", "control character")]),
        ('{"type":"Part","data":' + '{"a":' * 100_000, [("json", "nested too deeply")]),
    ],
)
def test_records(line: str, problems: list[tuple[str, str]]) -> None:
    outcome = read(line.encode())
    assert [found.rule for found in outcome.listed] == [rule for rule, _ in problems]
    for found, (_, text) in zip(outcome.listed, problems, strict=True):
        assert text in found.message
        assert found.line == 1
    assert outcome.rows() == []


def test_problems_that_are_not_listed_are_counted() -> None:
    outcome = read((raw("stock", '"x"') + b"\n") * 500, limit=3)
    assert len(outcome.listed) == 3
    assert outcome.violations.counts == {"value": 500}


def test_a_record_of_very_many_members() -> None:
    """Takes minutes if each is compared to all others."""
    members = ",".join(f'"k{n % 60_000}":1' for n in range(120_000))
    outcome = read(f'{{"type":"Part","data":{{{members}}}}}'.encode(), limit=2)
    assert outcome.violations.counts == {"record": 60_000, "unknown_field": 60_000}
