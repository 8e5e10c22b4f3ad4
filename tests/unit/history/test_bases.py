"""What two heads are compared with, where they have merged each other crosswise."""

from __future__ import annotations

from omnigraph_core.history.bases import MOST_LEVELS, Join, commits_of, find_base, nearest
from tests.unit.history.commits import CountingLookup, make_commit

# root ← p ← s     s and t have merged both p and q
#     ↖ q ↙ ↖ t
CROSSED = (
    make_commit("root", at=1),
    make_commit("p", "root", version=2, at=2),
    make_commit("q", "root", version=1, at=3),
    make_commit("s", "p", "q", at=4),
    make_commit("t", "q", "p", at=5),
)


def test_one_base_is_a_commit() -> None:
    assert find_base("p", "q", CountingLookup(CROSSED)) == "root"


def test_no_base() -> None:
    lookup = CountingLookup((make_commit("a"), make_commit("z")))
    assert find_base("a", "z", lookup) is None
    assert commits_of(None) == frozenset()


def test_two_are_joined_on_what_they_have_in_common() -> None:
    found = find_base("s", "t", CountingLookup(CROSSED))
    assert found == Join("p", "q", "root")
    assert nearest(found) == "p"
    assert commits_of(found) == {"p", "q", "root"}


def test_three_are_joined_one_after_the_other() -> None:
    """The third is compared with what it shares with either of the others: `m`, not the root."""
    commits = (
        make_commit("root", at=1),
        make_commit("p", "root", version=3, at=2),
        make_commit("m", "root", at=2),
        make_commit("q", "m", version=2, at=3),
        make_commit("r", "m", version=1, at=3),
        make_commit("s1", "p", "q", at=4),
        make_commit("s", "s1", "r", at=5),
        make_commit("t1", "q", "p", at=4),
        make_commit("t", "t1", "r", at=5),
    )
    found = find_base("s", "t", CountingLookup(commits))
    assert found == Join(Join("r", "p", "root"), "q", "m")


def test_joins_of_joins_end_somewhere() -> None:
    """Two branches that merge each other crosswise all the time: the oldest rounds are let go."""
    commits = [
        make_commit("root"),
        make_commit("a0", "root", at=1),
        make_commit("b0", "root", at=1),
    ]
    for at in range(1, 2 * MOST_LEVELS):
        older = (f"a{at - 1}", f"b{at - 1}")
        commits += [
            make_commit(f"a{at}", *older, version=at, at=at + 1),
            make_commit(f"b{at}", *reversed(older), version=at, at=at + 1),
        ]
    found = find_base(f"a{at}", f"b{at}", CountingLookup(commits))
    levels = 0
    while isinstance(found, Join):
        found, levels = found.root, levels + 1
    assert found is None, "not known"
    assert levels == MOST_LEVELS
