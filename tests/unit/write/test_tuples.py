"""Codes of tuples: equal exactly where the tuples are, whatever they contain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph_core.write.tuples import (
    TupleCodes,
    chosen,
    comparable,
    distinct,
    earlier_rows,
    positions,
    without,
)
from tests.support.cases import each


def columns(*rows: tuple[Any, ...]) -> list[pa.ChunkedArray]:
    """Columns of the rows, in chunks of two."""
    whole = [pa.array(values) for values in zip(*rows, strict=True)]
    return [
        pa.chunked_array([a.slice(start, 2) for start in range(0, len(a), 2)], a.type)
        for a in whole
    ]


def test_no_text_can_imitate_a_tuple() -> None:
    known = TupleCodes(columns(("a,", "b"), ("a", ",b"), ("", "a,b"), ("a,b", ""), (None, "a")))
    assert len(set(known.codes.tolist())) == 5
    assert known.codes[4] == -1
    assert known.count == 4


def test_null_is_not_the_empty_text() -> None:
    assert TupleCodes(columns(("",), (None,), ("",))).codes.tolist() == [0, -1, 0]


@each("width", [1, 2, 3, 4])
def test_other_rows_get_the_same_codes(width: int) -> None:
    rows = [(n % 3, str(n % 2), n % 2 == 0, n % 5 or None)[:width] for n in range(30)]
    known = TupleCodes(columns(*rows))
    others = [*rows[::-1], (7, "7", True, 7)[:width], (0, "1", True, 1)[:width]]
    by_row = dict(zip(rows, known.codes.tolist(), strict=True))
    assert known.codes_of(columns(*others)).tolist() == [by_row.get(row, -1) for row in others]


def test_no_rows_have_no_codes() -> None:
    empty = [pa.chunked_array([], pa.utf8()), pa.chunked_array([], pa.int32())]
    known = TupleCodes(empty)
    assert (known.codes.tolist(), known.count) == ([], 0)
    assert earlier_rows(known.codes, 0).tolist() == []
    assert known.codes_of([pa.chunked_array([["a"]]), pa.chunked_array([[1]], pa.int32())]) == [-1]


def test_only_nulls_have_no_codes() -> None:
    nulls = [pa.chunked_array([pa.nulls(3, pa.utf8())])]
    known = TupleCodes(nulls)
    assert earlier_rows(known.codes, known.count).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()])
def test_numbers_as_the_language_compares_them(type: pa.DataType) -> None:
    column = pa.chunked_array([pa.array([0.0, -0.0, math.nan, math.inf, None], type)])
    assert TupleCodes([comparable(column)]).codes.tolist() == [0, 0, -1, -1, -1]
    assert comparable(column).type == type


def test_sets_of_values() -> None:
    values = pa.array(["a", "b", "c"])
    assert without(values, pa.chunked_array([["b"], ["x"]])).to_pylist() == ["a", "c"]
    assert without(values, values[:0]) is values
    assert distinct(pa.chunked_array([["b", None], ["a", "b"]])).to_pylist() == ["b", "a"]
    assert positions(pa.chunked_array([["c", None, "x"]]), values).tolist() == [2, -1, -1]


def test_choosing_all_copies_nothing() -> None:
    column = pa.chunked_array([["a"], ["b"]])
    every, second = (np.array(mask) for mask in ([True, True], [False, True]))
    assert chosen(column, every) is column
    assert chosen(column, second).to_pylist() == ["b"]
