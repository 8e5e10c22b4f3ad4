"""Rows of a match: what happens to their variables and weights."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph_core.errors import DataError
from omnigraph_core.exec.frame import START, Frame, concat

PAIRS = Frame(3, {"a": np.array([1, 2, 3], np.int32), "b": np.array([4, 5, -1], np.int32)})


def shown(frame: Frame) -> tuple[int, dict[str, list[int]], list[int] | None]:
    numbers = {name: array.tolist() for name, array in frame.numbers.items()}
    return frame.length, numbers, None if frame.weights is None else frame.weights.tolist()


def test_rows_are_chosen() -> None:
    weighted = PAIRS.weighted(np.array([1, 2, 3]))
    assert shown(weighted.take(np.array([2, 2, 0]))) == (
        3,
        {"a": [3, 3, 1], "b": [-1, -1, 4]},
        [3, 3, 1],
    )
    mask = np.array([True, False, True])
    assert shown(weighted.where(mask)) == (2, {"a": [1, 3], "b": [4, -1]}, [1, 3])
    assert weighted.where(np.ones(3, np.bool_)) is weighted
    assert shown(weighted.slice(1, 9)) == (2, {"a": [2, 3], "b": [5, -1]}, [2, 3])


def test_variables_come_and_go() -> None:
    assert shown(PAIRS.binding("c", np.array([7, 8, 9], np.int32)).keeping({"c", "a"})) == (
        3,
        {"a": [1, 2, 3], "c": [7, 8, 9]},
        None,
    )
    assert PAIRS.keeping({"a", "b", "c"}) is PAIRS
    assert shown(START) == (1, {}, None)


def test_frames_one_after_another() -> None:
    weighted = PAIRS.slice(0, 1).weighted(np.array([5]))
    assert shown(concat([weighted, PAIRS.slice(1, 2)])) == (2, {"a": [1, 2], "b": [4, 5]}, [5, 1])
    assert concat([PAIRS]) is PAIRS


def test_weights_multiply() -> None:
    twice = PAIRS.weighted(np.array([1, 2, 3])).weighted(np.array([10, 20, 30], np.int32))
    assert (shown(twice)[2], twice.weights is not None and twice.weights.dtype) == (
        [10, 40, 90],
        np.int64,
    )


def test_the_largest_weight_fits_and_one_more_does_not() -> None:
    row = Frame(2).weighted(np.array([2**31, 7]))
    assert shown(row.weighted(np.array([2**32 - 1, 2**40])))[2] == [2**63 - 2**31, 7 * 2**40]
    with pytest.raises(DataError, match="more matches than 64 bits"):
        row.weighted(np.array([2**32, 1]))
