"""Counts, sums and extremes of groups, against loops over Python's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.exec.tally import count_rows, least_numbers, sum_floats, sum_whole

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

SPACE = 4
RANGES = {
    np.int32: (-(2**31), 2**31 - 1),
    np.uint32: (0, 2**32 - 1),
    np.int64: (-(2**63), 2**63 - 1),
    np.uint64: (0, 2**64 - 1),
}


@st.composite
def whole_columns(draw: DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(sorted(RANGES, key=str)))
    low, high = RANGES[dtype]
    numbers = st.integers(low, high) | st.sampled_from([low, high, 0, 1])
    return np.array(draw(st.lists(numbers, max_size=12)), dtype)


def sums(ids: list[int], terms: list[int]) -> list[int]:
    found = [0] * SPACE
    for id, term in zip(ids, terms, strict=True):
        found[id] += term
    return found


@given(whole_columns(), st.data())
def test_whole_sums_are_exact(values: np.ndarray, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, SPACE - 1), min_size=len(values), max_size=len(values)))
    sizes = st.integers(1, 3) | st.integers(1, 2**40) | st.just(2**62)
    weights = data.draw(st.lists(sizes, min_size=len(values), max_size=len(values)))
    plain, heavy = values.tolist(), [v * w for v, w in zip(values.tolist(), weights, strict=True)]
    groups, many = np.array(ids, np.int32), np.array(weights, np.int64)

    assert sum_whole(groups, SPACE, values).tolist() == sums(ids, plain)
    assert sum_whole(groups, SPACE, values, many).tolist() == sums(ids, heavy)
    assert sum_whole(None, 1, values).tolist() == [sum(plain)]
    assert sum_whole(None, 1, values, many).tolist() == [sum(heavy)]
    assert count_rows(groups, SPACE, len(values), many).tolist() == sums(ids, weights)
    assert count_rows(groups, SPACE, len(values), None).tolist() == sums(ids, [1] * len(ids))


def test_sums_of_sums_are_exact() -> None:
    parts = [sum_whole(None, 1, np.array([2**63 - 1, 5])), sum_whole(None, 1, np.array([-7]))]

    assert sum_whole(None, 1, np.concatenate(parts)).tolist() == [2**63 - 3]


def test_many_heavy_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph_core.exec.tally._PORTION", 3)
    values, weights = np.arange(-5, 5) * 2**58, np.full(10, 2**61)
    ids = np.arange(10) % SPACE

    terms = [v * 2**61 for v in values.tolist()]
    assert sum_whole(ids, SPACE, values, weights).tolist() == sums(ids.tolist(), terms)


def test_floats() -> None:
    ids, values = np.array([0, 2, 0]), np.array([0.5, 1.5, 2.0], np.float32)

    assert sum_floats(ids, 3, values).tolist() == [2.5, 0.0, 1.5]
    assert sum_floats(ids, 3, values, np.array([4, 1, 1])).tolist() == [4.0, 0.0, 1.5]
    assert sum_floats(None, 1, values).tolist() == [4.0]


@pytest.mark.parametrize("spread", [1, 2**31, 2**62])
@given(st.lists(st.tuples(st.integers(0, SPACE - 1), st.integers(-2, 1)), max_size=10))
def test_least(spread: int, rows: list[tuple[int, int]]) -> None:
    ids = np.array([id for id, _ in rows], np.int32)
    ordinals = np.array([ordinal for _, ordinal in rows], np.int64) * spread
    numbers = np.arange(len(rows), dtype=np.int32) + 7

    found = least_numbers(ids, SPACE, ordinals, numbers)
    for id, number in enumerate(found.tolist()):
        own = ordinals[ids == id]
        if len(own):
            assert ids[number - 7] == id
            assert ordinals[number - 7] == own.min()
        else:
            assert number == -1
    alone = least_numbers(None, 1, ordinals, numbers)
    assert alone[0] == (7 + ordinals.argmin() if rows else -1)
