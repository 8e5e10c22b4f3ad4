"""Looking up many pairs at once: found are those that are linked, and every parallel edge."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from omnigraph_core.exec.pairs import among, are_linked, pair_table, slices_between
from omnigraph_core.topology.adjacency import build_neighbours
from tests.support.examples import examples
from tests.unit.exec.test_expand import NODES, adjacency, nodes, pairs

ALL = [(source, target) for source in range(NODES) for target in range(NODES)]
SOURCES = np.array([source for source, _ in ALL], np.int32)
TARGETS = np.array([target for _, target in ALL], np.int32)


@settings(max_examples=examples(1200))
@given(pairs)
def test_linked_pairs_are_those_with_an_edge(edges: list[tuple[int, int]]) -> None:
    linked = are_linked(adjacency(edges), SOURCES, TARGETS)
    assert linked.tolist() == [pair in edges for pair in ALL]


@settings(max_examples=examples(600))
@given(pairs, nodes)
def test_one_source_is_looked_up_by_flags(edges: list[tuple[int, int]], source: int) -> None:
    everyone = np.arange(NODES, dtype=np.int32)
    expected = [(source, target) in edges for target in range(NODES)]
    assert among(adjacency(edges), source, everyone).tolist() == expected
    repeated = np.full(NODES, source, np.int32)
    assert are_linked(adjacency(edges), repeated, everyone).tolist() == expected


@settings(max_examples=examples(1200))
@given(pairs)
def test_a_pair_has_a_slice_of_its_edges(edges: list[tuple[int, int]]) -> None:
    neighbours = adjacency(edges)
    starts, counts = slices_between(neighbours, SOURCES, TARGETS)
    for pair, start, count in zip(ALL, starts.tolist(), counts.tolist(), strict=True):
        found = sorted(neighbours.edges[start : start + count].tolist())
        assert found == [number for number, edge in enumerate(edges) if edge == pair]


def test_no_pairs_are_linked_where_there_are_no_edges() -> None:
    nothing = adjacency([])
    assert not are_linked(nothing, SOURCES, TARGETS).any()
    assert not slices_between(nothing, SOURCES, TARGETS)[1].any()
    assert not pair_table(nothing).may_hold(SOURCES, TARGETS).any()


def test_the_table_never_misses_a_pair_and_rejects_nearly_all_others() -> None:
    rng = np.random.default_rng(1)
    count = 3000
    sources, targets = rng.integers(0, count, (2, 20_000)).astype(np.int32)
    neighbours = build_neighbours(sources, targets, count)
    table = pair_table(neighbours)
    assert table.may_hold(sources, targets).all()
    others = rng.integers(0, count, (2, 50_000)).astype(np.int32)
    likely = table.may_hold(*others)
    linked = are_linked(neighbours, *others)
    assert not (linked & ~likely).any()
    assert (likely & ~linked).mean() < 0.1
