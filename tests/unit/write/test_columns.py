"""Whole columns from the forms inputs give them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from omnigraph_core.types import PropType, Scalar
from omnigraph_core.write.arrow_columns import can_hold, convert
from omnigraph_core.write.arrow_shown import shown_scalar
from omnigraph_core.write.columns import Doubt, datetime_texts, from_json, to_whole
from omnigraph_core.write.csv_columns import convert_texts
from tests.support.cases import each

DATE, DATETIME = PropType(Scalar.DATE), PropType(Scalar.DATETIME)
STRINGS = PropType(Scalar.STRING, is_list=True)
VECTOR = PropType(Scalar.VECTOR, dimension=2)


def test_datetimes_keep_the_time_of_day() -> None:
    found = datetime_texts(pa.array(["1970-01-02T00:00:00.001Z", None]))
    assert found.type == pa.date64()
    assert found.view(pa.int64()).to_pylist() == [86_400_001, None]


def test_a_mixture_of_datetimes() -> None:
    texts = ["1970-01-01", "1970-01-01T00:00:01Z", "1970-01-01T01:00:02+01:00"]
    assert datetime_texts(pa.array(texts)).view(pa.int64()).to_pylist() == [0, 1000, 2000]


def test_floats_that_are_integers() -> None:
    assert to_whole(pa.array([1.0, None, -7.0]), pa.int32()).to_pylist() == [1, None, -7]
    for wrong in (1.5, 2.0**53, float("nan"), 2.0**40):
        with pytest.raises(Doubt):
            to_whole(pa.array([wrong]), pa.int32())


def test_vectors_with_nulls() -> None:
    values = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32()))
    found = from_json(values, VECTOR)
    assert found.type == pa.list_(pa.field("item", pa.float32()), 2)
    assert found.to_pylist() == [[1.0, 2.0], None, [3.0, 4.0]]
    assert from_json(values.slice(1), VECTOR).to_pylist() == [None, [3.0, 4.0]]


def test_slices_of_lists() -> None:
    type = PropType(Scalar.DATE, is_list=True)
    values = pa.array([["2020-01-01"], None, [], ["2020-01-02", "2020-01-03"]])
    expected = [None, [], [dt.date(2020, 1, 2), dt.date(2020, 1, 3)]]
    assert from_json(values.slice(1), type).to_pylist() == expected


@each(
    ("values", "type", "expected"),
    [
        (pa.array(["a", None]).dictionary_encode(), PropType(Scalar.STRING), ["a", None]),
        (pa.array(["a"], pa.large_string()), PropType(Scalar.STRING), ["a"]),
        (pa.array(["a"], pa.string_view()), PropType(Scalar.STRING), ["a"]),
        (pa.nulls(2), PropType(Scalar.I64), [None, None]),
        (pa.nulls(1), VECTOR, [None]),
        (pa.array([1, 2], pa.int8()), PropType(Scalar.U64), [1, 2]),
        (pa.array([1.0]), PropType(Scalar.I32), [1]),
        (pa.array([1], pa.uint64()), PropType(Scalar.F32), [1.0]),
        (pa.array([0.5], pa.float16()), PropType(Scalar.F64), [0.5]),
        (pa.array([dt.date(2020, 1, 1)]), DATE, [dt.date(2020, 1, 1)]),
        (pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("s")), DATE, [dt.date(2020, 1, 1)]),
        (pa.array([dt.date(2020, 1, 1)], pa.date64()), DATE, [dt.date(2020, 1, 1)]),
        (pa.array(["2020-01-01"]), DATE, [dt.date(2020, 1, 1)]),
        (pa.array([5], pa.int16()), DATE, [dt.date(1970, 1, 6)]),
        (pa.array([[1, 2]], pa.large_list(pa.int64())), VECTOR, [[1.0, 2.0]]),
        (pa.array([[1, 2], None], pa.list_(pa.float64(), 2)), VECTOR, [[1.0, 2.0], None]),
        (
            pa.array([["a"]], pa.list_view(pa.utf8())),
            PropType(Scalar.STRING, is_list=True),
            [["a"]],
        ),
        (pa.array([b"ab"], pa.binary(2)), PropType(Scalar.BLOB), [b"ab"]),
    ],
)
def test_arrow_columns(values: pa.Array, type: PropType, expected: list[object]) -> None:
    assert can_hold(values.type, type)
    found = convert(values, type)
    assert (found.values.to_pylist(), found.problems) == (expected, {})


@each(
    ("values", "milliseconds"),
    [
        (pa.array([1, -1], pa.timestamp("s", "Europe/Paris")), [1000, -1000]),
        (pa.array([1, -1], pa.timestamp("ms")), [1, -1]),
        (pa.array([1999, -1], pa.timestamp("us")), [1, -1]),
        (pa.array([1_999_999, -1, None], pa.timestamp("ns", "UTC")), [1, -1, None]),
        (pa.array([1, None], pa.date32()), [86_400_000, None]),
        (pa.array([86_400_001], pa.date64()), [86_400_001]),
        (pa.array(["1970-01-01T00:00:01Z"]), [1000]),
        (pa.array([7]), [7]),
    ],
)
def test_arrow_times(values: pa.Array, milliseconds: list[int | None]) -> None:
    assert convert(values, DATETIME).values.view(pa.int64()).to_pylist() == milliseconds


@each(
    ("kind", "type"),
    [
        (pa.decimal128(10, 2), PropType(Scalar.F64)),
        (pa.decimal128(10, 0), PropType(Scalar.I64)),
        (pa.utf8(), PropType(Scalar.I64)),
        (pa.int64(), PropType(Scalar.STRING)),
        (pa.int8(), PropType(Scalar.BOOL)),
        (pa.binary(), PropType(Scalar.STRING)),
        (pa.float64(), DATE),
        (pa.time64("us"), DATETIME),
        (pa.float32(), VECTOR),
        (pa.list_(pa.utf8()), VECTOR),
        (pa.struct([("a", pa.utf8())]), PropType(Scalar.STRING)),
        (pa.dictionary(pa.int8(), pa.int64()), PropType(Scalar.STRING)),
    ],
)
def test_columns_that_cannot_hold_a_type(kind: pa.DataType, type: PropType) -> None:
    assert not can_hold(kind, type)
    is_number = pa.types.is_decimal(kind) and type.scalar.is_numeric
    assert can_hold(kind, type, has_decimals=True) == is_number


@each(
    ("wrong", "type", "message"),
    [
        (pa.array([2**31]), PropType(Scalar.I32), "out of range for I32"),
        (pa.array([-1]), PropType(Scalar.U64), "out of range for U64"),
        (pa.array([0.5]), PropType(Scalar.I64), "expected I64"),
        (pa.array([2**53 + 1]), PropType(Scalar.F64), "cannot be kept exactly"),
        (pa.array([2**24 + 1]), PropType(Scalar.F32), "cannot be kept exactly"),
        (pa.array([float("nan")]), PropType(Scalar.F64), "expected a finite number"),
        (pa.array([1e39]), PropType(Scalar.F32), "out of range for F32"),
        (pa.array([1], pa.timestamp("s")), DATE, "expected Date"),
        (pa.array([2**62], pa.timestamp("s")), DATETIME, "out of range for DateTime"),
        (pa.array(["x"]), DATETIME, "expected a datetime"),
        (pa.array([[1.0]]), VECTOR, "expected 2 numbers, found 1"),
        (pa.array([[1.0, None]]), VECTOR, "element 1"),
        (pa.array([[1.0, float("inf")]]), VECTOR, "expected a finite number"),
        (pa.array([["a", None]]), STRINGS, "element 1"),
        (pa.array(["x"]), PropType(Scalar.BLOB), "expected a blob"),
    ],
)
def test_values_that_do_not_fit_are_named_by_row(
    wrong: pa.Array, type: PropType, message: str
) -> None:
    found = convert(pa.concat_arrays([pa.nulls(1, wrong.type), wrong]), type)
    assert list(found.problems) == [1]
    assert message in found.problems[1]
    assert found.values.to_pylist() == [None, None]


LATIN1 = pa.array([b"caf\xe9", b"tea", None], pa.binary()).view(pa.utf8())


@each("kind", [pa.utf8(), pa.large_utf8(), pa.string_view()])
@each("scalar", [Scalar.STRING, Scalar.BLOB, Scalar.DATE, Scalar.DATETIME])
def test_text_that_is_not_utf8(kind: pa.DataType, scalar: Scalar) -> None:
    found = convert(LATIN1.cast(kind), PropType(scalar))
    assert found.problems[0] == "not UTF-8"
    assert found.values[0].as_py() is None
    if scalar is Scalar.STRING:
        assert (found.values.to_pylist(), list(found.problems)) == ([None, "tea", None], [0])


def test_members_and_entries_that_are_not_utf8() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), LATIN1.slice(0, 2))
    found = convert(lists, STRINGS)
    assert (found.values.to_pylist(), found.problems) == ([None, ["tea"]], {0: "not UTF-8"})
    entries = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), LATIN1)
    found = convert(entries, PropType(Scalar.STRING))
    assert (found.values.to_pylist(), found.problems) == (["tea", None, "tea"], {1: "not UTF-8"})


@each(
    ("value", "shown"),
    [
        (LATIN1[0], "caf\ufffd"),
        (pa.scalar(b"\xff"), "base64:/w=="),
        (pa.scalar(b"a"), "a"),
        (pa.scalar(float("inf")), "Infinity"),
        (pa.array([2**31 - 1], pa.int32()).view(pa.date32())[0], 2**31 - 1),
        (pa.array([2**62]).view(pa.date64())[0], 2**62),
        (pa.scalar(1, pa.date64()), "1970-01-01 00:00:00.001000+00:00"),
        (pa.scalar(2**62, pa.timestamp("s")), 2**62),
        (pa.scalar(1, pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
        (pa.scalar(1, pa.timestamp("ns", "No/Where")), 1),
        (pa.scalar(1, pa.duration("ns")), 1),
        (pa.scalar(1, pa.timestamp("s", "No/Where")), 1),
        (pa.scalar(1, pa.timestamp("s")), "1970-01-01 00:00:01"),
        (pa.scalar([float("nan"), 1.0]), ["NaN", 1.0]),
        (pa.array(["a"]).dictionary_encode()[0], "a"),
        (pa.scalar(None, pa.utf8()), None),
    ],
)
def test_any_value_can_be_shown(value: pa.Scalar, shown: object) -> None:
    assert shown_scalar(value) == shown


@each(
    ("texts", "type", "expected"),
    [
        (["true", None, "false"], PropType(Scalar.BOOL), [True, None, False]),
        (["1", "-7"], PropType(Scalar.I64), [1, -7]),
        (["1.0", "1e3"], PropType(Scalar.I64), [1, 1000]),
        (["18446744073709551615"], PropType(Scalar.U64), [2**64 - 1]),
        (["1", "-2.5e-1"], PropType(Scalar.F64), [1.0, -0.25]),
        (["5", "2020-01-01"], DATE, [dt.date(1970, 1, 6), dt.date(2020, 1, 1)]),
        (["[1,2]", None], VECTOR, [[1.0, 2.0], None]),
        (['["a"]', "[]"], STRINGS, [["a"], []]),
        (["007", ""], PropType(Scalar.STRING), ["007", ""]),
    ],
)
def test_csv_columns(texts: list[str | None], type: PropType, expected: list[object]) -> None:
    found = convert_texts(pa.array(texts), type)
    assert (found.values.to_pylist(), found.problems) == (expected, {})


@each(
    ("text", "type"),
    [
        ("True", PropType(Scalar.BOOL)),
        ("1", PropType(Scalar.BOOL)),
        ("", PropType(Scalar.I64)),
        ("007", PropType(Scalar.I64)),
        ("0x10", PropType(Scalar.I64)),
        (" 1x", PropType(Scalar.I64)),
        ('"1"', PropType(Scalar.I64)),
        ("NaN", PropType(Scalar.F64)),
        ("inf", PropType(Scalar.F64)),
        ("1e999", PropType(Scalar.F64)),
        ("2020-13-01", DATE),
        ('[1,2]} {"v":[1,2]', VECTOR),
        ("[1,2", VECTOR),
        ("1,2", VECTOR),
        ("x", PropType(Scalar.BLOB)),
    ],
)
def test_csv_texts_that_do_not_fit(text: str, type: PropType) -> None:
    assert list(convert_texts(pa.array([None, text]), type).problems) == [1]
