"""Values from JSON by declared type, and back."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph_core.types import BOOL, DATE, DATETIME, F64, I64, STRING, U64, PropType, Scalar
from omnigraph_core.values import (
    ScalarValue,
    ValueProblem,
    canonical_text,
    format_datetime,
    from_json,
    parse_date,
    parse_datetime,
    to_json,
)
from tests.support.cases import each

F64_LIST = PropType(Scalar.F64, is_list=True)
STRING_LIST = PropType(Scalar.STRING, is_list=True)

I32 = PropType(Scalar.I32)
STATUS = PropType(Scalar.STRING, enum_values=("open", "shut"))
PAIR = PropType(Scalar.VECTOR, dimension=2)
INTS = PropType(Scalar.I32, is_list=True)
MOMENT = dt.datetime(2026, 1, 31, 8, 0, tzinfo=dt.UTC)


@each(
    ("text", "value"),
    [
        ("2026-01-31", dt.datetime(2026, 1, 31, tzinfo=dt.UTC)),
        ("2026-01-31T08:00:00Z", MOMENT),
        ("2026-01-31 08:00", MOMENT),
        ("2026-01-31T08:00:00", MOMENT),
        ("2026-01-31T10:00:00+02:00", MOMENT),
        ("2026-01-31T06:30:00-0130", MOMENT),
        ("2026-02-01T07:59:00+23:59", MOMENT),
        ("2026-01-31T08:00:00.1239Z", MOMENT.replace(microsecond=123_000)),
        ("2026-01-31T08:00:00.5Z", MOMENT.replace(microsecond=500_000)),
    ],
)
def test_datetime_texts(text: str, value: dt.datetime) -> None:
    assert parse_datetime(text) == value


@each(
    "text",
    ["", "now", "2026-13-01", "2026-02-30T00:00:00Z", "2026-1-1", "20260131", "2026-01-31T25:00",
     "2026-01-31T08:00:00 UTC", "2026-01-31T08:00:00+24:00", "2026-01-31T08:00:00-00:60",
     "2026-01-31T08:00:00+99:99", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
     "٢٠٢٦-01-31"],
)  # fmt: skip
def test_datetime_texts_refused(text: str) -> None:
    with pytest.raises(ValueProblem):
        parse_datetime(text)


def test_dates() -> None:
    assert parse_date("2026-01-31") == dt.date(2026, 1, 31)
    for text in ("2026-01-31T00:00", "2026-02-29", "31.01.2026", ""):
        with pytest.raises(ValueProblem):
            parse_date(text)


@each(
    ("value", "text"),
    [
        ("Ünï", "Ünï"),
        (-5, "-5"),
        (False, "false"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (dt.date(1969, 12, 31), "-1"),
        (dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC), "1500"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC), "-1"),
    ],
)
def test_canonical_text(value: ScalarValue, text: str) -> None:
    assert canonical_text(value) == text


def test_what_equals_nothing_has_no_canonical_text() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueProblem, match="cannot be a key"):
            canonical_text(value)


@each(
    ("value", "type_", "read"),
    [
        ("x", STRING, "x"),
        ("open", STATUS, "open"),
        (True, BOOL, True),
        (7, I64, 7),
        (7.0, I64, 7),
        ("-7", I64, -7),
        (2**64 - 1, U64, 2**64 - 1),
        (str(2**64 - 1), U64, 2**64 - 1),
        (3, F64, 3.0),
        (1e39, F64, 1e39),
        (3.4028235e38, PropType(Scalar.F32), 3.4028235e38),
        ("2026-01-31", DATE, dt.date(2026, 1, 31)),
        ("2026-01-31T08:00:00Z", DATETIME, MOMENT),
        ([1, 2.5], PAIR, (1.0, 2.5)),
        ([1, "2"], INTS, (1, 2)),
        ([], INTS, ()),
        (None, I64.nullable(), None),
        ("base64:AA==", PropType(Scalar.BLOB), "base64:AA=="),
    ],
)
def test_json_by_type(value: object, type_: PropType, read: object) -> None:
    found = from_json(value, type_)
    assert found == read
    assert type(found) is type(read)


@each(
    ("value", "type_", "problem"),
    [
        (1, STRING, "expected String, found number 1"),
        ("ajar", STATUS, "invalid enum value 'ajar', expected open | shut"),
        (1, BOOL, "expected Bool, found number 1"),
        ("true", BOOL, "expected Bool, found text 'true'"),
        (True, I64, "expected I64, found boolean true"),
        (2.5, I64, "expected I64, found number 2.5"),
        ("7.0", I64, "expected I64, found text '7.0'"),
        ({}, I64, "expected I64, found an object"),
        ([], I64, "expected I64, found an array"),
        (2**31, I32, "out of range for I32"),
        ("9" * 5000, I64, "out of range for I64"),
        (-1, U64, "out of range for U64"),
        ("3", F64, "expected a number"),
        (10**400, F64, "out of range for F64"),
        (float("nan"), F64, "finite"),
        (1e39, PropType(Scalar.F32), "1e+39 is out of range for F32"),
        ([1e39, 0], PAIR, "element 0: 1e+39 is out of range"),
        (5, DATE, "expected Date text, found number 5"),
        (5, DATETIME, "expected DateTime text"),
        (None, I64, "expected I64, found null"),
        ([1], PAIR, "expected 2 numbers, found 1"),
        ([1, "x"], PAIR, "element 1: expected a number"),
        ([1, None], INTS, "element 1: expected I32, found null"),
        ("x", INTS, "as an array"),
    ],
)
def test_json_refused(value: object, type_: PropType, problem: str) -> None:
    with pytest.raises(ValueProblem) as refused:
        from_json(value, type_)
    assert problem in str(refused.value)


def test_to_json() -> None:
    assert to_json(MOMENT) == "2026-01-31T08:00:00.000Z" == format_datetime(MOMENT)
    assert to_json(dt.date(2026, 1, 31)) == "2026-01-31"
    assert to_json((1, float("inf"), float("-inf"))) == [1, "Infinity", "-Infinity"]
    assert to_json(2**53 - 1, is_js_safe=True) == 2**53 - 1
    assert to_json((-(2**53),), is_js_safe=True) == [str(-(2**53))]
    assert to_json(2**60) == 2**60
    assert to_json(True, is_js_safe=True) is True
    assert to_json(None) is None


@each(
    ("members", "type", "problem"),
    [
        ([0.5, float("nan")], PropType(Scalar.VECTOR, dimension=2), "element 1: expected a finite"),
        ([float("inf"), float("-inf")], F64_LIST, "element 0: expected a finite"),
        ([1.0, 3.5e38], PropType(Scalar.F32, is_list=True), "element 1: 3.5e[+]38 is out of range"),
        ([1.0, True], F64_LIST, "element 1: expected a number"),
        (["a", "\ud83d", "\ude00"], STRING_LIST, "element 1: text with half"),
        (["a", 1], STRING_LIST, "element 1: expected String"),
        (["a"], F64_LIST, "element 0: expected a number"),
        ([0.5], STRING_LIST, "element 0: expected String"),
    ],
)
def test_a_bad_member_is_named(members: list[object], type: PropType, problem: str) -> None:
    with pytest.raises(ValueProblem, match=problem):
        from_json(members, type)


def test_members_that_need_no_second_look() -> None:
    assert from_json([1.7e308, 1.7e308, -1.0], F64_LIST) == (1.7e308, 1.7e308, -1.0)
    assert from_json((1.0, 2.5), PropType(Scalar.VECTOR, dimension=2)) == (1.0, 2.5)
    assert from_json([1, 2.5], F64_LIST) == (1.0, 2.5)
    assert from_json(["x", "y"], STRING_LIST) == ("x", "y")
    assert from_json([], STRING_LIST) == ()
