"""Equal rows made one: every row stays, none twice, nulls included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.exec.dedupe import (
    SeenNumbers,
    distinct_of,
    distinct_rows,
    merged,
    pack,
    unpack,
)
from omnigraph_core.exec.frame import Frame
from tests.support.examples import examples

COUNT = 40
numbers = st.lists(st.integers(-1, COUNT - 1), max_size=30)


def int32(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


@settings(max_examples=examples(1800))
@given(st.lists(numbers, max_size=5))
def test_each_number_passes_once_over_all_portions(portions: list[list[int]]) -> None:
    seen = SeenNumbers(COUNT)
    passed: list[int] = []
    expected: set[int] = set()
    for portion in portions:
        fresh = seen.fresh(int32(portion))
        assert fresh.dtype == np.int32
        passed += fresh.tolist()
        expected |= set(portion)
        assert sorted(passed) == sorted(expected)


@settings(max_examples=examples(1200))
@given(st.lists(st.tuples(*[st.integers(-1, 6)] * 3), max_size=40), st.sampled_from([7, 2**40]))
def test_each_row_stays_once(rows: list[tuple[int, ...]], count: int) -> None:
    """Also where the numbers of a row have too many bits for one integer."""
    columns = int32([value for row in rows for value in row]).reshape(-1, 3).T
    frame = Frame(len(rows), dict(zip("abc", columns, strict=True)))
    found = distinct_rows(frame, dict.fromkeys("abc", count))
    assert found.length == len(set(rows))
    assert set(found.numbers) == set("abc")
    stacked = zip(*(found.numbers[name].tolist() for name in "abc"), strict=True)
    assert sorted(stacked) == sorted(set(rows))


def test_rows_without_variables_are_all_equal() -> None:
    assert distinct_rows(Frame(5), {}).length == 1
    assert distinct_rows(Frame(0), {}).length == 0


def test_repeats_are_dropped_with_their_weights() -> None:
    frame = Frame(2, {"a": int32([1, 1])}, np.array([2, 3]))
    assert distinct_rows(frame, {"a": 5}).weights is None


@pytest.mark.parametrize("counts", [(1, 1), (2**31 - 1, 2**31 - 1), (3, 2**31 - 1)])
def test_what_is_packed_comes_out_again(counts: tuple[int, int]) -> None:
    columns = (int32([-1, counts[0] - 1, 0]), int32([counts[1] - 1, -1, 0]))
    keys = pack(columns, counts)
    assert keys is not None
    assert len(set(keys.tolist())) == len({*zip(*(c.tolist() for c in columns), strict=True)})
    for column, found in zip(columns, unpack(keys, counts), strict=True):
        assert np.array_equal(column, found)


def test_too_many_bits_are_not_packed() -> None:
    assert pack([int32([0])] * 3, [2**31 - 1] * 3) is None


@given(st.lists(st.integers(-5, 5)))
def test_distinct_numbers_ascend(values: list[int]) -> None:
    assert distinct_of(np.array(values, np.int64)).tolist() == sorted(set(values))


@pytest.mark.parametrize("weights", [None, [2, 1, 5, 1]])
def test_equal_rows_are_added_up(weights: list[int] | None) -> None:
    given = None if weights is None else np.array(weights, np.int64)
    found = merged(Frame(4, {"a": int32([3, 1, 3, 0])}, given), "a", COUNT)
    assert found.numbers["a"].tolist() == [0, 1, 3]
    assert found.weights is not None
    assert found.weights.dtype == np.int64
    assert found.weights.tolist() == ([1, 1, 2] if weights is None else [1, 1, 7])


def test_weights_that_would_lose_digits_are_left_alone() -> None:
    frame = Frame(2, {"a": int32([1, 1])}, np.array([2**53, 1], np.int64))
    assert merged(frame, "a", COUNT) is frame
