"""Walks over small graphs of commits, and how much of a long history they look at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pytest

from omnigraph_core.history.ancestry import (
    ancestors,
    first_parents,
    is_ancestor,
    merge_base,
    merge_bases,
)
from tests.support.cases import each
from tests.unit.history.commits import CountingLookup, make_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from omnigraph_core.manifest.image import GraphCommit

    Walk: TypeAlias = Callable[[str, CountingLookup], Iterator[GraphCommit]]

# a ← b ← c ← m        m merges y into the first line
#      ↖ x ← y ↙
DIAMOND = (
    make_commit("a"),
    make_commit("b", "a"),
    make_commit("c", "b"),
    make_commit("x", "b"),
    make_commit("y", "x"),
    make_commit("m", "c", "y"),
)


def ids(commits: Iterable[GraphCommit]) -> list[str]:
    return [commit.graph_commit_id for commit in commits]


def test_ancestors_are_breadth_first_and_once() -> None:
    lookup = CountingLookup(DIAMOND)
    assert ids(ancestors("m", lookup)) == ["m", "c", "y", "b", "x", "a"]
    assert set(lookup.visits.values()) == {1}


def test_ancestors_are_lazy() -> None:
    lookup = CountingLookup(DIAMOND)
    assert next(ancestors("m", lookup)).graph_commit_id == "m"
    assert lookup.visits == {"m": 1}


def test_first_parents_leave_out_what_was_merged() -> None:
    assert ids(first_parents("m", CountingLookup(DIAMOND))) == ["m", "c", "b", "a"]


@pytest.mark.parametrize("walk", [ancestors, first_parents])
def test_an_unknown_head_has_no_ancestors(walk: Walk) -> None:
    assert ids(walk("gone", CountingLookup(DIAMOND))) == []


@pytest.mark.parametrize("walk", [ancestors, first_parents])
def test_a_reclaimed_parent_ends_the_walk(walk: Walk) -> None:
    lookup = CountingLookup((make_commit("b", "reclaimed"), make_commit("c", "b")))
    assert ids(walk("c", lookup)) == ["c", "b"]


@each(
    ("older", "newer", "expected"),
    [
        ("m", "m", True),
        ("a", "m", True),
        ("y", "m", True),
        ("m", "a", False),
        ("c", "y", False),
        ("elsewhere", "m", False),
    ],
)
def test_is_ancestor(older: str, newer: str, expected: bool) -> None:
    assert is_ancestor(older, newer, CountingLookup(DIAMOND)) is expected


def test_a_reclaimed_commit_is_still_the_ancestor_of_its_children() -> None:
    assert is_ancestor("reclaimed", "b", CountingLookup([make_commit("b", "reclaimed")]))


@each(
    ("source", "target", "base"),
    [
        ("c", "y", "b"),
        ("y", "c", "b"),
        ("m", "m", "m"),
        ("y", "m", "y"),
        ("m", "a", "a"),
        ("gone", "m", None),
        ("m", "gone", None),
    ],
)
def test_merge_base(source: str, target: str, base: str | None) -> None:
    assert merge_base(source, target, CountingLookup(DIAMOND)) == base


def test_heads_without_common_history() -> None:
    assert merge_base("a", "z", CountingLookup((make_commit("a"), make_commit("z")))) is None


def test_a_reclaimed_commit_is_no_base() -> None:
    commits = (make_commit("s", "reclaimed"), make_commit("t", "reclaimed"))
    assert merge_base("s", "t", CountingLookup(commits)) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (make_commit("p", version=3), make_commit("q", version=2, at=9)),
        (make_commit("p", version=3, at=7), make_commit("q", version=3, at=6)),
        (make_commit("p", version=3, at=7), make_commit("o", version=3, at=7)),
    ],
)
def test_of_equally_near_bases_the_largest_wins(left: GraphCommit, right: GraphCommit) -> None:
    """A criss-cross: both heads merged both, so both are at distance one from each."""
    for first, second in ((left, right), (right, left)):
        parents = (first.graph_commit_id, second.graph_commit_id)
        heads = (make_commit("s", *parents), make_commit("t", *parents))
        lookup = CountingLookup((first, second, *heads))
        assert merge_base("s", "t", lookup) == "p"


def test_a_shorter_way_around_does_not_make_an_older_commit_the_base() -> None:
    """`old` is closer to both heads together, but `new` is built on it and common as well.

    With `old` as the base, whatever came with `new` and was taken back later would come again.
    """
    commits = (
        make_commit("old", version=9, at=1),
        make_commit("new", "old", version=1, at=2),
        make_commit("s1", "new", at=3),
        make_commit("s2", "s1", at=4),
        make_commit("s", "s2", "old", at=5),
        make_commit("t1", "new", at=3),
        make_commit("t2", "t1", at=4),
        make_commit("t", "t2", "old", at=5),
    )
    assert merge_base("s", "t", CountingLookup(commits)) == "new"
    assert (
        merge_base("s", "t", CountingLookup([replace(c, created_at=0) for c in commits])) == "new"
    )


def test_of_several_newest_bases_the_nearest_wins() -> None:
    """`p` and `q` are both common, and neither is built on the other."""
    commits = (
        make_commit("root", at=1),
        make_commit("p", "root", version=9, at=2),
        make_commit("q", "root", version=1, at=2),
        make_commit("s1", "p", at=3),
        make_commit("s", "s1", "q", at=4),
        make_commit("t1", "p", at=3),
        make_commit("t", "t1", "q", at=4),
    )
    assert merge_base("s", "t", CountingLookup(commits)) == "q"
    assert merge_bases("s", "t", CountingLookup(commits)) == ("q", "p")
    assert merge_bases("t", "s", CountingLookup(commits)) == ("q", "p")


def test_a_head_that_the_other_contains_is_the_base() -> None:
    """However near what it is built on may be: `t` has merged `c` once more."""
    commits = (
        make_commit("c", version=1),
        make_commit("s", "c", version=2),
        make_commit("p", "s", version=3),
        make_commit("t", "p", "c", version=4),
    )
    assert merge_base("s", "t", CountingLookup(commits)) == "s"
    assert merge_base("t", "s", CountingLookup(commits)) == "s"


def line(prefix: str, length: int, root: str | None = None) -> list[GraphCommit]:
    """Commits `<prefix>0`, `<prefix>1` … each on the one before, the first on the root."""
    parents = [root, *(f"{prefix}{at}" for at in range(length))]
    return [
        make_commit(
            f"{prefix}{at}",
            *([parents[at]] if parents[at] else []),
            version=at + 1,
            at=at + 1 + (20_000 if root else 0),
        )
        for at in range(length)
    ]


@pytest.mark.parametrize("history", [100, 20_000])
def test_a_near_base_costs_the_same_in_any_history(history: int) -> None:
    trunk = line("m", history)
    fork = trunk[-1].graph_commit_id
    lookup = CountingLookup([*trunk, *line("s", 5, fork), *line("t", 7, fork)])
    assert merge_base("s4", "t6", lookup) == fork
    assert set(lookup.visits.values()) == {1}
    assert len(lookup.visits) <= 2 * (5 + 7) + 2


@pytest.mark.parametrize("history", [100, 20_000])
def test_several_bases_cost_the_same_in_any_history(history: int) -> None:
    """What is walked is newer than what the bases have in common."""
    trunk = line("m", history)
    fork = trunk[-1].graph_commit_id
    sides = [*line("s", 5, fork), *line("t", 7, fork)]
    crossed = [make_commit("x", "s4", "t6", at=30_000), make_commit("y", "t6", "s4", at=30_001)]
    lookup = CountingLookup([*trunk, *sides, *crossed, *line("a", 6, "x"), *line("b", 3, "y")])
    assert merge_bases("a5", "b2", lookup) == ("t6", "s4")
    assert set(lookup.visits.values()) == {1}
    assert len(lookup.visits) <= 2 * (5 + 7) + 6 + 3 + 4


def test_an_old_base_is_far_from_a_new_one() -> None:
    """One base is the newest commit of a long line, the other is old: only what is between them."""
    trunk = line("m", 300)
    commits = [
        *trunk,
        make_commit("old", "m9", at=10),
        make_commit("s", "m299", "old", at=30_000),
        make_commit("t", "old", "m299", at=30_001),
    ]
    lookup = CountingLookup(commits)
    assert merge_bases("s", "t", lookup) == ("m299", "old")
    assert "m5" not in lookup.visits


def test_wrong_clocks_give_no_base_that_another_contains() -> None:
    """`old` says to be newer than what is built on it."""
    commits = (
        make_commit("old", at=90),
        make_commit("mid", "old", at=3),
        make_commit("new", "mid", at=2),
        make_commit("s", "new", "old", at=95),
        make_commit("t", "new", "old", at=96),
    )
    assert merge_bases("s", "t", CountingLookup(commits)) == ("new",)


def test_a_base_at_one_head_is_found_without_the_rest() -> None:
    lookup = CountingLookup(line("m", 5_000))
    assert merge_base("m4990", "m4999", lookup) == "m4990"
    assert len(lookup.visits) <= 2 * 9 + 2
