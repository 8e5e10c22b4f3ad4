"""Arrays and columns that grow: views stay as they are, and are what was put in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.errors import BudgetExceeded, InvariantBroken
from omnigraph_core.topology import growing_column
from omnigraph_core.topology.growing import GrowingArray, GrowingBits
from omnigraph_core.topology.growing_column import GrowingColumn
from tests.support.cases import each

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.utf8(): st.text(max_size=5),
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.date32(): st.dates(),
    pa.list_(pa.utf8()): st.lists(st.none() | st.text(max_size=3), max_size=3),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=3),
    pa.list_(pa.float32(), 3): st.lists(st.integers(0, 9).map(float), min_size=3, max_size=3),
}


@given(st.lists(st.lists(st.integers(-9, 9), max_size=2_000), max_size=6))
def test_arrays_grow_and_views_stay(parts: list[list[int]]) -> None:
    array = GrowingArray(np.zeros(0, np.int64))
    seen: list[tuple[np.ndarray, list[int]]] = []
    whole: list[int] = []
    for part in parts:
        assert array.append(np.array(part, np.int64)) == len(whole)
        whole = [*whole, *part]
        seen.append((array.view(), whole))
        assert len(array) == len(whole)
        assert array.nbytes == 8 * len(whole)
    assert all(view.tolist() == expected for view, expected in seen)
    assert all(array.view(len(expected)).tolist() == expected for _, expected in seen)
    assert not array.view().flags.writeable


def test_a_little_more_copies_nothing() -> None:
    array = GrowingArray(np.arange(10_000))
    before = array.view()
    array.append(np.arange(5))
    assert np.shares_memory(before, array.view())


@given(st.lists(st.lists(st.booleans(), max_size=40), max_size=8))
def test_bits_are_packed_as_they_come(parts: list[list[bool]]) -> None:
    bits, whole = GrowingBits(), list[bool]()
    for part in parts:
        bits.append(np.array(part, np.bool_))
        whole += part
        found = np.unpackbits(bits.view(), count=len(whole), bitorder="little")
        assert found.astype(bool).tolist() == whole


def test_many_bits() -> None:
    bits, expected = GrowingBits(), np.random.default_rng(1).random(100_003) < 0.5
    for part in np.array_split(expected, 7):
        bits.append(part)
    found = np.unpackbits(bits.view(), count=len(expected), bitorder="little")
    assert (found.astype(bool) == expected).all()


@given(
    st.sampled_from(list(VALUES)).flatmap(
        lambda kind: st.tuples(
            st.just(kind), st.lists(st.lists(st.none() | VALUES[kind], max_size=9), max_size=6)
        )
    ),
    st.integers(0, 3),
)
def test_columns_grow_and_views_stay(given_: tuple[pa.DataType, list[list[Any]]], cut: int) -> None:
    """Of every type, with and without nulls, also out of the middle of other arrays."""
    kind, parts = given_
    column, whole = GrowingColumn(kind), list[Any]()
    seen: list[tuple[pa.Array, pa.Array]] = []
    for part in parts:
        array = pa.array([*([None] * cut), *part, *([None] * cut)], kind)
        column.append(array.slice(cut, len(part)))
        whole = [*whole, *part]
        seen.append((column.view(len(whole)), pa.array(whole, kind)))
        assert len(column) == len(whole)
    for view, expected in seen:
        view.validate(full=True)
        assert view.equals(expected)
        assert view.null_count == expected.null_count
        assert column.view(len(expected)).equals(expected)


@each("kind", VALUES, ids=str)
def test_nulls_alone(kind: pa.DataType) -> None:
    column = GrowingColumn(kind)
    column.append(pa.nulls(3, kind))
    column.append(pa.nulls(0, kind))
    assert column.view(3).equals(pa.nulls(3, kind))
    assert column.view(0).equals(pa.nulls(0, kind))
    assert column.nbytes > 0


def test_other_values_are_refused() -> None:
    with pytest.raises(InvariantBroken, match="grows by such values"):
        GrowingColumn(pa.int32()).append(pa.array([1], pa.int64()))
    with pytest.raises(InvariantBroken, match="not kept in memory"):
        GrowingColumn(pa.large_binary())


def test_more_than_an_array_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_column, "_MOST_COUNTED", 10)
    column = GrowingColumn(pa.utf8())
    column.append(pa.array(["12345", "6789"]))
    with pytest.raises(BudgetExceeded):
        column.append(pa.array(["ab"]))
    assert column.view(2).to_pylist() == ["12345", "6789"]
