"""Runs of places, against plain dictionaries of places."""

from __future__ import annotations

import random

import numpy as np

from omnigraph_core.storage.runs import Runs, compose, cut, packed, whole
from tests.support.cases import each


def as_dict(runs: Runs) -> dict[int, int]:
    here, there = runs.here_places().tolist(), runs.there_places().tolist()
    assert len(set(here)) == len(here)
    assert len(set(there)) == len(there)
    assert runs.count == len(here)
    return dict(zip(here, there, strict=True))


def some(chance: random.Random, count: int, most: int) -> Runs:
    """Rows that are left of a file, written one after another."""
    live = sorted(chance.sample(range(most), count))
    return packed(np.array(live, np.int64), chance.randrange(5))


def test_rows_that_are_left_are_packed() -> None:
    runs = packed(np.array([2, 3, 4, 9, 11, 12]), 100)
    assert runs.here.tolist() == [100, 103, 104]
    assert runs.there.tolist() == [2, 9, 11]
    assert runs.length.tolist() == [3, 1, 2]
    assert as_dict(packed(np.zeros(0, np.int64), 3)) == {}
    assert as_dict(whole(3)) == {0: 0, 1: 1, 2: 2}


@each("seed", range(60))
def test_runs_are_composed(seed: int) -> None:
    chance = random.Random(seed)
    most = chance.choice([1, 5, 40])
    a, b = (some(chance, chance.randrange(most + 1), most) for _ in range(2))
    if chance.random() < 0.5:
        b = b.turned()
    first, second = as_dict(a), as_dict(b)
    expected = {here: second[there] for here, there in first.items() if there in second}
    found = compose(a, b)
    assert as_dict(found) == expected
    assert np.all(np.diff(found.here) > 0)
    assert as_dict(found.turned()) == {there: here for here, there in expected.items()}


@each("seed", range(20))
def test_runs_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    runs = some(chance, chance.randrange(30), 40)
    first = chance.randrange(30)
    last = first + chance.randrange(20)
    expected = {h - first: t for h, t in as_dict(runs).items() if first <= h < last}
    assert as_dict(cut(runs, first, last)) == expected


def test_runs_that_continue_each_other_are_one() -> None:
    apart = Runs(np.array([0, 2]), np.array([5, 7]), np.array([2, 3]))
    found = compose(apart, whole(20))
    assert (found.here.tolist(), found.there.tolist(), found.length.tolist()) == ([0], [5], [5])
