"""Rows with equal codes are one group, however many codes there could be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.exec.codes import Codes
from omnigraph_core.exec.group import first_places, groups_of

SPACES = [5, 2**13, 2**40, 2**62]


@pytest.mark.parametrize("space", SPACES)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_groups(space: int, numbers: list[int]) -> None:
    values = np.array(numbers, np.int64) * ((space - 1) // 4)
    groups = groups_of(Codes(values, space), len(values))

    assert groups.ids is not None
    assert groups.ids.max() < groups.space
    assert sorted(groups.present.tolist()) == sorted(set(groups.ids.tolist()))
    assert groups.ids.take(groups.first).tolist() == groups.present.tolist()
    for number, id in zip(numbers, groups.ids, strict=True):
        assert [number == other for other in numbers] == (groups.ids == id).tolist()
    if groups.counts is not None:
        assert groups.counts.tolist() == [(groups.ids == id).sum() for id in groups.present]


@pytest.mark.parametrize("space", SPACES)
@given(st.lists(st.integers(0, 4), max_size=12))
def test_first_places(space: int, numbers: list[int]) -> None:
    values = np.array(numbers, np.int64) * ((space - 1) // 4)

    wanted = sorted(numbers.index(number) for number in set(numbers))
    assert first_places(Codes(values, space), len(values)).tolist() == wanted


def test_groups_whose_rows_come_late() -> None:
    values = np.zeros(5_000, np.int32)
    values[4_999], values[40] = 2, 1
    groups = groups_of(Codes(values, 3), len(values))

    assert groups.present.tolist() == [0, 1, 2]
    assert groups.first.tolist()[1:] == [40, 4_999]
    assert groups.counts is not None
    assert groups.counts.tolist() == [4_998, 1, 1]


def test_nothing_to_tell_rows_apart() -> None:
    assert groups_of(None, 9).ids is None
    assert first_places(None, 9).tolist() == [0]
    assert first_places(None, 0).tolist() == []
