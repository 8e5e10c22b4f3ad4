"""Ordinals have the order and the equality of the values they stand for; codes the equality."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.exec.codes import array_codes, combine
from omnigraph_core.exec.ordinals import array_ordinals, number_ordinals

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.just(-(2**63)),
    pa.uint64(): st.integers(0, 2**64 - 1) | st.just(0),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0]),
    pa.utf8(): st.text(max_size=3) | st.sampled_from(["a", "é", "\U0001f600", "\uffff"]),
    pa.large_utf8(): st.text(max_size=3),
    pa.date32(): st.dates(),
    pa.list_(pa.int64()): st.lists(st.integers(0, 2), max_size=2),
    pa.list_(pa.date32()): st.lists(st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 3)), max_size=2),
    pa.list_(pa.float32(), 2): st.lists(st.sampled_from([0.0, -0.0, 1.5]), min_size=2, max_size=2),
}


def rank(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)


@pytest.mark.parametrize("type", VALUES, ids=str)
@given(st.data())
def test_every_type(type: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[type], max_size=8))
    column = pa.array(values, type)
    ordinals, codes = array_ordinals(column), array_codes(column)

    assert ordinals.dtype == np.int64
    assert not values or 0 <= codes.values.min() <= codes.values.max() < codes.space
    for a, x, m in zip(values, ordinals, codes.values, strict=True):
        for b, y, n in zip(values, ordinals, codes.values, strict=True):
            assert (rank(a) < rank(b)) == (x < y)
            assert (a == b) == (x == y) == (m == n)


def test_moments_of_one_day_differ() -> None:
    moments = pa.array([5, None, 4], pa.int64()).cast(pa.date64())

    assert np.argsort(array_ordinals(moments)).tolist() == [1, 2, 0]


def test_null_is_below_the_least() -> None:
    least = np.iinfo(np.int64).min
    found = number_ordinals(np.array([least, 0, least + 1]), np.array([True, False, True]))

    assert np.argsort(found).tolist() == [1, 0, 2]


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), max_size=8))
def test_pairs_of_wide_codes(pairs: list[tuple[int, int]]) -> None:
    first, second = (pa.array([pair[n] for pair in pairs], pa.int64()) for n in (0, 1))
    codes = combine(array_codes(first), array_codes(second))

    assert all(0 <= code < codes.space for code in codes.values.tolist())
    assert len(set(codes.values.tolist())) == len(set(pairs))
