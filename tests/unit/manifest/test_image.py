"""Images and their commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.cases import each
from tests.unit.manifest.samples import commit, entry, image

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit


def test_the_head_is_the_last_commit() -> None:
    assert image(commits=(commit(1), commit(2))).head == commit(2)


@each(
    ("table_key", "version"),
    [("node:Part", 3), ("node:Again", 9), ("node:Old", 7), ("node:New", 0)],
)
def test_the_version_of_a_table(table_key: str, version: int) -> None:
    given = image(
        entry("node:Part", table_version=3),
        entry("node:Again", table_version=9),
        tombstones={"node:Old": 7, "node:Again": 8},
    )
    assert given.version_of(table_key) == version


@pytest.mark.parametrize(
    ("first", "merged", "parents"),
    [(None, None, ()), ("a", None, ("a",)), ("a", "b", ("a", "b"))],
)
def test_parents(first: str | None, merged: str | None, parents: tuple[str, ...]) -> None:
    made = commit(1, parent_commit_id=first, merged_parent_commit_id=merged)
    assert made.parents == parents


def own(number: int, key: str | None = None, incarnation: str = "01J0") -> GraphCommit:
    return commit(number, incarnation=incarnation, idempotency_key=key)


def test_a_key_belongs_to_the_branch_that_used_it() -> None:
    given = image(commits=(own(1, "a", "main"), own(2, "b"), own(3), own(4, "c")))
    assert given.find_keyed("01J0", "b") == own(2, "b")
    assert given.find_keyed("01J0", "c") == own(4, "c")
    assert given.find_keyed("01J0", "a") is None, "inherited"
    assert given.find_keyed("main", "a") == own(1, "a", "main")
    assert given.find_keyed("01J0", "d") is None


@each(
    ("commits", "since"),
    [
        ((own(1, incarnation="main"),), 1),
        ((own(8, incarnation="main"), own(2), own(3)), 1),
        ((own(1), own(2)), 1),
        ((own(5), own(6)), 5),
    ],
)
def test_how_far_back_an_image_knows_its_branch(
    commits: tuple[GraphCommit, ...], since: int
) -> None:
    assert image(commits=commits).complete_since("01J0") == since
