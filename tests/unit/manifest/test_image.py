"""Images and their commits."""

from __future__ import annotations

import pytest

from tests.unit.manifest.samples import commit, entry, image


def test_the_head_is_the_last_commit() -> None:
    assert image(commits=(commit(1), commit(2))).head == commit(2)


@pytest.mark.parametrize(
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
