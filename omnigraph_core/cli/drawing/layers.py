"""Nodes of a directed graph in columns, so that its links lead from left to right.

Links that would close a circle are turned; links over several columns get a bend in each of them,
so that nothing is drawn across a node. The order in the columns keeps crossings few.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SWEEPS: Final = 12


@dataclass(frozen=True, slots=True)
class Bend:
    """Where a link passes a column."""

    link: int
    column: int


Item: TypeAlias = str | Bend
Link: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Layers:
    """Items of each column from top to bottom, and the way of each link from left to right."""

    columns: tuple[tuple[Item, ...], ...]
    ways: Mapping[int, tuple[Item, ...]]
    """By the place of a link in the given ones; links of a node to itself have none."""
    turned: frozenset[int]
    """Links whose way begins at their target."""


def layered(nodes: Sequence[str], links: Sequence[Link]) -> Layers:
    """
    >>> layered(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")]).columns
    (('a',), ('b', Bend(link=2, column=1)), ('c',))
    """
    proper = {place: link for place, link in enumerate(links) if link[0] != link[1]}
    turned = _turned(nodes, proper)
    forward = {
        place: (link[1], link[0]) if place in turned else link for place, link in proper.items()
    }
    column_of = _columns(nodes, forward)
    ways = {place: _way(place, link, column_of) for place, link in forward.items()}
    return Layers(_ordered(_filled(nodes, column_of, ways), ways), ways, frozenset(turned))


def _turned(nodes: Sequence[str], links: Mapping[int, Link]) -> set[int]:
    """Links back to a node that is being walked from: without them there is no circle."""
    leaving: dict[str, list[int]] = {node: [] for node in nodes}
    for place, (source, _) in links.items():
        leaving[source].append(place)
    is_done: dict[str, bool] = {}
    turned: set[int] = set()
    for root in nodes:
        if root in is_done:
            continue
        is_done[root] = False
        walk = [(root, iter(leaving[root]))]
        while walk:
            node, rest = walk[-1]
            following = next(rest, None)
            if following is None:
                is_done[node] = True
                walk.pop()
                continue
            target = links[following][1]
            if target not in is_done:
                is_done[target] = False
                walk.append((target, iter(leaving[target])))
            elif not is_done[target]:
                turned.add(following)
    return turned


def _columns(nodes: Sequence[str], links: Mapping[int, Link]) -> dict[str, int]:
    """As far left as links allow; nodes without links fill the shortest columns."""
    linked = {end for link in links.values() for end in link}
    found = {node: 0 for node in nodes if node in linked}
    # Nodes only move to the right, and no circle is left: this ends.
    while moved := {
        target: found[source] + 1
        for source, target in links.values()
        if found[target] <= found[source]
    }:
        found.update(moved)
    heights = [0] * (max(found.values(), default=0) + 1)
    for column in found.values():
        heights[column] += 1
    for node in nodes:
        if node not in linked:
            found[node] = heights.index(min(heights))
            heights[found[node]] += 1
    return found


def _way(place: int, link: Link, column_of: Mapping[str, int]) -> tuple[Item, ...]:
    source, target = link
    between = range(column_of[source] + 1, column_of[target])
    return (source, *(Bend(place, column) for column in between), target)


def _filled(
    nodes: Sequence[str], column_of: Mapping[str, int], ways: Mapping[int, tuple[Item, ...]]
) -> list[list[Item]]:
    columns: list[list[Item]] = [[] for _ in range(max(column_of.values(), default=0) + 1)]
    for node in nodes:
        columns[column_of[node]].append(node)
    for way in ways.values():
        for item in way:
            if isinstance(item, Bend):
                columns[item.column].append(item)
    return columns


def _ordered(
    columns: list[list[Item]], ways: Mapping[int, tuple[Item, ...]]
) -> tuple[tuple[Item, ...], ...]:
    """Every item near the middle of those it is linked with, seen from left and right in turn."""
    before: dict[Item, list[Item]] = {item: [] for column in columns for item in column}
    after: dict[Item, list[Item]] = {item: [] for column in columns for item in column}
    for way in ways.values():
        for left, right in pairwise(way):
            before[right].append(left)
            after[left].append(right)
    best, fewest = [list(column) for column in columns], _crossings(columns, after)
    for sweep in range(_SWEEPS):
        neighbours = after if sweep % 2 else before
        for column in reversed(columns) if sweep % 2 else columns:
            _sort(column, columns, neighbours)
        crossings = _crossings(columns, after)
        if crossings < fewest:
            best, fewest = [list(column) for column in columns], crossings
    return tuple(tuple(column) for column in best)


def _sort(
    column: list[Item], columns: list[list[Item]], neighbours: Mapping[Item, list[Item]]
) -> None:
    height = {item: place for items in columns for place, item in enumerate(items)}

    def middle(item: Item) -> float:
        around = [height[other] for other in neighbours[item]]
        return sum(around) / len(around) if around else height[item]

    column.sort(key=middle)


def _crossings(columns: list[list[Item]], after: Mapping[Item, list[Item]]) -> int:
    height = {item: place for items in columns for place, item in enumerate(items)}
    found = 0
    for column in columns:
        passed: list[int] = []
        for _, end in sorted((height[item], height[to]) for item in column for to in after[item]):
            found += len(passed) - bisect_right(passed, end)
            insort(passed, end)
    return found
