"""Neighbours against dicts and loops, built at once and out of older ones."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.topology.adjacency import (
    Entries,
    Renumbering,
    arrange,
    build_neighbours,
    entries_of,
    merge,
    renumber,
    without_parallels,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.topology.neighbours import Neighbours

Triple = tuple[int, int, int]

NODES = 6
ends = st.lists(st.tuples(st.integers(-1, NODES - 1), st.integers(-1, NODES - 1)), max_size=30)


def ints(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int32)


def built(pairs: Sequence[tuple[int, int]], node_count: int = NODES) -> Neighbours:
    return build_neighbours(ints([s for s, _ in pairs]), ints([t for _, t in pairs]), node_count)


def entries(triples: Sequence[Triple]) -> Entries:
    return Entries(*(ints([triple[at] for triple in triples]) for at in range(3)))


def listed(neighbours: Neighbours) -> list[list[tuple[int, int]]]:
    """Target and edge of every entry, by source."""
    targets, edges = neighbours.targets.tolist(), neighbours.edges.tolist()
    offsets = neighbours.offsets.tolist()
    assert offsets[-1] == len(targets) == len(edges)
    return [
        list(zip(targets[start:end], edges[start:end], strict=True))
        for start, end in pairwise(offsets)
    ]


def looped(triples: Sequence[Triple], node_count: int) -> list[list[tuple[int, int]]]:
    """The same from plain loops."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(node_count)]
    for source, target, edge in triples:
        found[source].append((target, edge))
    return [sorted(items) for items in found]


def whole(pairs: Sequence[tuple[int, int]]) -> list[Triple]:
    return [(s, t, edge) for edge, (s, t) in enumerate(pairs) if s >= 0 and t >= 0]


def is_simple(lists: list[list[tuple[int, int]]]) -> bool:
    return all(len({target for target, _ in items}) == len(items) for items in lists)


def check(neighbours: Neighbours, expected: list[list[tuple[int, int]]]) -> None:
    assert listed(neighbours) == expected
    assert neighbours.is_simple == is_simple(expected)
    assert neighbours.node_count == len(expected)
    types = (neighbours.offsets.dtype, neighbours.targets.dtype, neighbours.edges.dtype)
    assert types == (np.int64, np.int32, np.int32)
    assert neighbours.degrees().tolist() == [len(items) for items in expected]


@given(ends)
def test_every_edge_with_two_ends_is_an_entry(pairs: list[tuple[int, int]]) -> None:
    check(built(pairs), looped(whole(pairs), NODES))


def test_edges_without_an_end_are_left_out() -> None:
    assert listed(built([(0, -1), (-1, 0), (-1, -1), (1, 0)], 2)) == [[], [(0, 3)]]


def test_nothing() -> None:
    check(built([], 0), [])
    check(built([], 3), [[], [], []])


@given(ends)
def test_parallels_are_told_and_left_out(pairs: list[tuple[int, int]]) -> None:
    neighbours = built(pairs)
    lists = looped(whole(pairs), NODES)
    distinct = without_parallels(neighbours)
    assert (distinct is neighbours) == is_simple(lists)
    assert distinct.is_simple
    found = listed(distinct)
    assert [[t for t, _ in items] for items in found] == [
        sorted({t for t, _ in items}) for items in lists
    ]
    assert all(item in items for mine, items in zip(found, lists, strict=True) for item in mine)


@given(ends)
def test_both_ways_a_loop_is_there_once(pairs: list[tuple[int, int]]) -> None:
    triples = whole(pairs)
    back = [(t, s, edge) for s, t, edge in triples if s != t]
    numbers = ints([s for s, _ in pairs]), ints([t for _, t in pairs])
    check(arrange(entries_of(*numbers).both_ways(), NODES), looped([*triples, *back], NODES))


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_numbers_too_large_for_one_key_are_ordered_too(raw: list[Triple]) -> None:
    largest = np.iinfo(np.int32).max
    triples = [(s, largest - t, largest - e) for s, t, e in raw]
    assert listed(arrange(entries(triples), 16)) == looped(triples, 16)


@given(ends, ends, st.integers(0, 3))
def test_added_edges_are_where_they_would_be_built(
    old: list[tuple[int, int]], new: list[tuple[int, int]], more_nodes: int
) -> None:
    count = NODES + more_nodes
    same = Renumbering(None, count)
    shifted = [(s, t, edge + len(old)) for s, t, edge in whole(new)]
    extended = merge(renumber(built(old), same, same, same), entries(shifted))
    check(extended, looped([*whole(old), *shifted], count))


def test_nothing_added_is_the_same_object() -> None:
    neighbours = built([(0, 1), (1, 0)])
    same = Renumbering(None, NODES)
    assert renumber(neighbours, same, same, same) is neighbours
    assert merge(neighbours, entries([])) is neighbours


@pytest.mark.parametrize("count", [3, 3_000])
def test_few_or_many_are_put_in(count: int) -> None:
    rng = np.random.default_rng(count)
    old = [(int(s), int(t)) for s, t in rng.integers(0, 40, (2_000, 2))]
    new = [(int(s), int(t)) for s, t in rng.integers(0, 40, (count, 2))]
    shifted = [(s, t, edge + len(old)) for s, t, edge in whole(new)]
    check(merge(built(old, 40), entries(shifted)), looped([*whole(old), *shifted], 40))


def renumbering(is_left: Sequence[bool], added: int) -> Renumbering:
    places = np.cumsum(is_left) - 1
    return Renumbering(ints(np.where(is_left, places, -1).tolist()), int(np.sum(is_left)) + added)


@given(st.data(), ends)
def test_what_is_left_is_renumbered(data: st.DataObject, old: list[tuple[int, int]]) -> None:
    """Nodes and edges go; some come. One side may be untouched."""

    def moves(length: int) -> Renumbering:
        if data.draw(st.booleans()):
            return Renumbering(None, length)
        left = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
        return renumbering(left, data.draw(st.integers(0, 2)))

    sources, targets, edges = moves(NODES), moves(NODES), moves(len(old))
    moved = [
        (sources.applied(ints([s]))[0], targets.applied(ints([t]))[0], edges.applied(ints([e]))[0])
        for s, t, e in whole(old)
    ]
    left = [(int(s), int(t), int(e)) for s, t, e in moved if min(s, t, e) >= 0]
    check(renumber(built(old), sources, targets, edges), looped(left, sources.count))


def test_ends_nobody_has_stay_so() -> None:
    moved = renumbering([True, False, True], 1)
    assert moved.applied(ints([-1, 0, 1, 2])).tolist() == [-1, 0, -1, 1]
    assert moved.spread(ints([7, 8, 9]), otherwise=-1).tolist() == [7, 9, -1]
    assert Renumbering(None, 4).spread(ints([7, 8]), otherwise=-1).tolist() == [7, 8, -1, -1]
