"""Columns, bends and turned links."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.cli.drawing.layers import Bend, layered

NAMES = [*"abcdefgh"]
LINKS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=20)


def test_links_lead_to_the_right() -> None:
    found = layered(["a", "b", "c"], [("b", "c"), ("a", "b")])
    assert found.columns == (("a",), ("b",), ("c",))
    assert (found.ways, found.turned) == ({0: ("b", "c"), 1: ("a", "b")}, frozenset())


def test_a_long_link_passes_the_columns_between() -> None:
    found = layered(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    assert found.ways[2] == ("a", Bend(2, 1), "c")
    assert set(found.columns[1]) == {"b", Bend(2, 1)}


def test_a_circle_is_opened() -> None:
    found = layered(["a", "b"], [("a", "b"), ("b", "a")])
    assert (found.columns, found.turned) == ((("a",), ("b",)), {1})
    assert found.ways[1] == ("a", "b")


def test_a_node_linked_with_itself() -> None:
    assert layered(["a"], [("a", "a")]).ways == {}
    assert layered([], []).columns == ((),)


def test_nodes_without_links_fill_short_columns() -> None:
    found = layered(["x", "y", "a", "b", "c"], [("a", "c"), ("b", "c")])
    assert [len(column) for column in found.columns] == [3, 2]


def test_links_do_not_cross_without_need() -> None:
    found = layered(["a", "b", "c", "d"], [("a", "d"), ("b", "c")])
    left, right = found.columns
    assert [left.index("a"), left.index("b")] == [right.index("d"), right.index("c")]


@given(LINKS)
def test_everything_is_somewhere_and_ways_go_from_column_to_column(
    links: list[tuple[str, str]],
) -> None:
    found = layered(NAMES, links)
    column_of = {item: number for number, items in enumerate(found.columns) for item in items}
    assert sorted(item for item in column_of if isinstance(item, str)) == NAMES
    assert sum(map(len, found.columns)) == len(column_of)
    for place, (source, target) in enumerate(links):
        if source == target:
            assert place not in found.ways
            continue
        way = found.ways[place]
        ends = (target, source) if place in found.turned else (source, target)
        assert (way[0], way[-1]) == ends
        assert all(column_of[right] == column_of[left] + 1 for left, right in pairwise(way))
