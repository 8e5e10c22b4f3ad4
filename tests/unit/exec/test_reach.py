"""Several hops at once: shortest distances within bounds, as a search from each source has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.errors import BudgetExceeded, QueryCancelled
from omnigraph_core.exec import reach
from omnigraph_core.exec.guard import Cancellation, Guard
from omnigraph_core.exec.reach import Hops, Reach
from omnigraph_core.topology.adjacency import without_parallels
from tests.support.examples import examples
from tests.unit.exec.test_expand import NODES, adjacency, nodes, pairs

bounds = st.tuples(st.integers(1, 3), st.integers(0, 3)).map(lambda b: (b[0], b[0] + b[1]))


def walker(edges: list[tuple[int, int]], least: int, most: int, node_count: int = NODES) -> Reach:
    simple = without_parallels(adjacency(edges, node_count))
    return Reach(simple, Hops(least, most, "expand"), Guard(budget=2**24))


def searched(edges: list[tuple[int, int]], source: int, least: int, most: int) -> list[int]:
    """Breadth first from one source."""
    found = {source} if least == 1 and (source, source) in edges else set[int]()
    seen = frontier = {source}
    for distance in range(1, most + 1):
        frontier = {end for start, end in edges if start in frontier} - seen
        seen = seen | frontier
        if distance >= least:
            found |= frontier
    return sorted(found)


@settings(max_examples=examples(1800))
@given(pairs, st.lists(nodes, min_size=1, unique=True), bounds)
def test_each_source_reaches_what_a_search_finds(
    edges: list[tuple[int, int]], sources: list[int], hops: tuple[int, int]
) -> None:
    found = walker(edges, *hops).of(np.array(sources, np.int32))
    assert found.is_simple
    assert found.node_count == len(sources)
    for place, source in enumerate(sources):
        targets = found.targets[found.offsets[place] : found.offsets[place + 1]]
        assert targets.tolist() == searched(edges, source, *hops)


@settings(max_examples=examples(600))
@given(pairs, st.lists(st.lists(nodes, min_size=1, max_size=3, unique=True), min_size=2), bounds)
def test_one_batch_leaves_nothing_behind_for_the_next(
    edges: list[tuple[int, int]], batches: list[list[int]], hops: tuple[int, int]
) -> None:
    reused = walker(edges, *hops)
    for batch in batches:
        sources = np.array(batch, np.int32)
        expected = walker(edges, *hops).of(sources)
        found = reused.of(sources)
        assert np.array_equal(found.targets, expected.targets)
        assert np.array_equal(found.offsets, expected.offsets)


def random_edges(seed: int, node_count: int, edge_count: int) -> list[tuple[int, int]]:
    ends = np.random.default_rng(seed).integers(0, node_count, (edge_count, 2))
    return [(int(start), int(end)) for start, end in ends]


@pytest.mark.parametrize("step", [2**19, 50], ids=["at once", "in portions"])
def test_sparse_and_dense_steps_agree(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Few hops touch few of many nodes, many hops nearly all."""
    monkeypatch.setattr(reach, "_STEP_ROWS", step)
    edges = random_edges(3, 2000, 4000)
    for most in (1, 2, 3, 6, 12):
        sources = np.array([5, 17, 1999], np.int32)
        found = walker(edges, 1, most, 2000).of(sources)
        for place, source in enumerate(sources.tolist()):
            targets = found.targets[found.offsets[place] : found.offsets[place + 1]]
            assert targets.tolist() == searched(edges, source, 1, most)


def test_flags_beyond_the_budget_are_not_made() -> None:
    simple = without_parallels(adjacency([(0, 1)], 1000))
    walk = Reach(simple, Hops(1, 2, "expand $a -Knows{1,2}-> $b"), Guard(budget=1500))
    walk.of(np.array([0], np.int32))
    with pytest.raises(BudgetExceeded, match="Knows"):
        walk.of(np.array([0, 1], np.int32))


def test_a_cancelled_walk_stops_between_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "_STEP_ROWS", 10)
    cancellation = Cancellation()
    guard = Guard(budget=2**24, cancellation=cancellation)
    simple = without_parallels(adjacency(random_edges(4, 100, 2000), 100))
    cancellation.cancel()
    with pytest.raises(QueryCancelled):
        Reach(simple, Hops(1, 3, "expand"), guard).of(np.array([0], np.int32))


def test_batches_fit_the_flags() -> None:
    assert walker([], 1, 2, 1000).batch_size == reach.SEEN_CELLS // 1000
    assert walker([], 1, 2, reach.SEEN_CELLS * 2).batch_size == 1
