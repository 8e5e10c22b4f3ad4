"""Following neighbours for many rows at once equals following them one by one."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.exec.expand import (
    at,
    counts_of_all,
    cut,
    expand_rows,
    positions_of,
    slices_of,
    sums_by_row,
)
from omnigraph_core.topology.adjacency import build_neighbours
from tests.support.cases import each
from tests.support.examples import examples

if TYPE_CHECKING:
    from omnigraph_core.topology.neighbours import Neighbours

NODES = 6
nodes = st.integers(0, NODES - 1)
pairs = st.lists(st.tuples(nodes, nodes), max_size=20)


def adjacency(edges: list[tuple[int, int]], node_count: int = NODES) -> Neighbours:
    ends = np.array(edges, np.int32).reshape(-1, 2)
    return build_neighbours(ends[:, 0].copy(), ends[:, 1].copy(), node_count)


@settings(max_examples=examples(1200))
@given(pairs, st.lists(nodes, max_size=8), st.none() | st.sets(nodes))
def test_every_pair_of_place_and_target_is_found(
    edges: list[tuple[int, int]], numbers: list[int], allowed: set[int] | None
) -> None:
    mask = None if allowed is None else np.isin(np.arange(NODES), list(allowed))
    places, targets = expand_rows(adjacency(edges), np.array(numbers, np.int32), mask)
    assert sorted(zip(places.tolist(), targets.tolist(), strict=True)) == sorted(
        (place, end)
        for place, number in enumerate(numbers)
        for start, end in edges
        if start == number and (allowed is None or end in allowed)
    )


def test_a_run_of_sources_is_a_view_of_the_targets() -> None:
    neighbours = adjacency([(n, (n + 1) % 5000) for n in range(5000)], 5000)
    numbers = np.arange(1000, 4000, dtype=np.int32)
    starts, counts = slices_of(neighbours, numbers)
    positions = positions_of(starts, counts, int(counts.sum()))
    assert positions == slice(1000, 4000)
    assert np.shares_memory(at(neighbours.targets, positions), neighbours.targets)


def test_many_sources_in_any_order_are_spread() -> None:
    neighbours = adjacency([(n, (n + 1) % 5000) for n in range(5000)], 5000)
    numbers = np.arange(4999, 0, -1, dtype=np.int32)
    places, targets = expand_rows(neighbours, numbers)
    assert np.array_equal(places, np.arange(4999))
    assert np.array_equal(targets, (numbers + 1) % 5000)


@each(
    ("counts", "limit", "runs"),
    [
        ([], 3, []),
        ([0, 0], 3, [(0, 2)]),
        ([1, 1, 1], 3, [(0, 3)]),
        ([1, 1, 1, 1], 3, [(0, 3), (3, 4)]),
        ([9, 1], 3, [(0, 1), (1, 2)]),
        ([2, 9, 0, 1], 3, [(0, 1), (1, 2), (2, 4)]),
    ],
)
def test_rows_are_cut_where_matches_would_be_too_many(
    counts: list[int], limit: int, runs: list[tuple[int, int]]
) -> None:
    assert list(cut(np.array(counts, np.int64), repeat(limit))) == runs


def test_limits_may_grow_from_run_to_run() -> None:
    assert list(cut(np.ones(10, np.int64), iter([1, 2, 4, 8]))) == [(0, 1), (1, 3), (3, 7), (7, 10)]


@settings(max_examples=examples(1200))
@given(pairs, st.sets(nodes))
def test_counts_are_those_of_the_rows(edges: list[tuple[int, int]], allowed: set[int]) -> None:
    neighbours = adjacency(edges)
    mask = np.isin(np.arange(NODES), list(allowed))
    expected = [sum(s == node and e in allowed for s, e in edges) for node in range(NODES)]
    assert counts_of_all(neighbours, mask).tolist() == expected
    kept = mask.take(neighbours.targets)
    assert sums_by_row(kept, neighbours.degrees()).tolist() == expected
