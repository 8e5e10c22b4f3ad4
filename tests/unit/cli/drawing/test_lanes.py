"""Which lane each commit gets, and in which order they stand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from omnigraph_core.cli.drawing.lanes import arrange, children_first
from tests.unit.cli.drawing.histories import history


def test_a_line_has_one_lane() -> None:
    places = arrange(history("a b:a c:b"))
    assert [(item.commit.graph_commit_id, item.lane) for item in places] == [
        ("c", 0),
        ("b", 0),
        ("a", 0),
    ]
    assert places[-1].below == ()


def test_a_merge_opens_a_lane_and_the_fork_closes_it() -> None:
    merge, theirs, ours, base = arrange(history("a b:a c:a d:b+c"))
    assert (merge.lane, merge.leaving, merge.is_leaving_begun) == (0, 1, True)
    assert (theirs.lane, ours.lane) == (1, 0)
    assert (base.lane, base.joining, base.below) == (0, (1,), ())


def test_a_lane_that_leads_there_already_is_used() -> None:
    _, merge, *_ = arrange(history("a b:a c:a d:b+c e:c"))
    assert (merge.commit.graph_commit_id, merge.leaving, merge.is_leaving_begun) == ("d", 0, False)


def test_a_free_lane_is_taken_again() -> None:
    places = arrange(history("a b:a c:a+b d:c e:c+d"))
    assert max(item.lane for item in places) == 1


def test_a_commit_merged_with_its_own_parent_has_one_line() -> None:
    merge, _ = arrange(history("a b:a+a"))
    assert (merge.leaving, merge.below) == (None, (0,))


def test_clocks_do_not_put_a_parent_above_its_child() -> None:
    old, new = history("a b:a")
    late = replace(old, created_at=99)
    assert [item.graph_commit_id for item in children_first([late, new])] == ["b", "a"]


def test_parents_that_are_not_there_leave_lanes_open() -> None:
    (place,) = arrange(history("d:b+c"))
    assert place.below == (0, 1)
    assert arrange([]) == ()


@st.composite
def histories(draw: st.DrawFn) -> str:
    names = [f"c{number}" for number in range(draw(st.integers(1, 12)))]
    words = [names[0]]
    for number, name in enumerate(names[1:], start=1):
        parents = draw(st.lists(st.sampled_from(names[:number]), min_size=1, max_size=2))
        words.append(f"{name}:{'+'.join(parents)}")
    return " ".join(words)


@given(histories())
def test_every_commit_stands_once_above_its_parents(text: str) -> None:
    commits = history(text)
    places = arrange(commits)
    row = {item.commit.graph_commit_id: number for number, item in enumerate(places)}
    assert sorted(row) == sorted(item.graph_commit_id for item in commits)
    for commit in commits:
        assert all(row[commit.graph_commit_id] < row[parent] for parent in commit.parents)
    assert places[-1].below == ()


@given(histories())
def test_lanes_go_on_from_row_to_row(text: str) -> None:
    places = arrange(history(text))
    for upper, lower in pairwise(places):
        assert upper.below == lower.above
        assert set(lower.joining) <= set(lower.above)
        assert lower.lane in lower.above or lower.lane not in upper.below
