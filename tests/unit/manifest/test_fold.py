"""Which tables rows make visible."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import StorageError
from omnigraph_core.manifest.fold import (
    Folded,
    PublishedVersion,
    Registration,
    Tombstone,
    fold_tables,
)
from omnigraph_core.manifest.image import TableOperation
from tests.support.cases import each
from tests.unit.manifest.samples import entry


def version(table_key: str, number: int, branch: str | None = None) -> PublishedVersion:
    return PublishedVersion(table_key, number, 100 + number, branch, 10, 2, TableOperation.UPSERT)


def fold(
    registered: list[str], versions: list[PublishedVersion], tombstones: list[Tombstone]
) -> Folded:
    registrations = [Registration(key, f"at/{key}") for key in registered]
    return fold_tables(registrations, versions, tombstones, where="here")


def test_nothing() -> None:
    assert fold([], [], []) == Folded({}, {})


def test_the_newest_version_wins_whatever_its_branch() -> None:
    versions = [version("node:A", n, branch) for n, branch in ((2, None), (11, "b"), (9, None))]
    assert fold(["node:A"], versions, []).tables == {
        "node:A": entry(
            "node:A",
            location="at/node:A",
            table_version=11,
            physical_version=111,
            branch="b",
            operation=TableOperation.UPSERT,
        )
    }


@each(("tombstone", "is_visible"), [(2, True), (3, False), (4, False), (10, False)])
def test_a_tombstone_hides_versions_up_to_its_own(tombstone: int, is_visible: bool) -> None:
    folded = fold(["node:A"], [version("node:A", 3)], [Tombstone("node:A", tombstone)])
    assert ("node:A" in folded.tables) is is_visible
    assert folded.tombstones == {"node:A": tombstone}


def test_the_highest_tombstone_counts() -> None:
    stones = [Tombstone("node:A", n) for n in (9, 10, 2)]
    assert fold(["node:A"], [version("node:A", 10)], stones) == Folded({}, {"node:A": 10})


def test_a_tombstone_stands_alone() -> None:
    assert fold([], [], [Tombstone("node:A", 4)]) == Folded({}, {"node:A": 4})


def test_a_tombstone_does_not_excuse_a_lost_version() -> None:
    with pytest.raises(StorageError, match="`node:A` is registered but has no version"):
        fold(["node:A"], [], [Tombstone("node:A", 4)])


def test_sorted_by_key() -> None:
    keys = ["node:B", "edge:Z", "node:A"]
    stones = [Tombstone(key, 1) for key in keys]
    folded = fold(keys, [version(key, 2) for key in keys], stones)
    assert list(folded.tables) == list(folded.tombstones) == ["edge:Z", "node:A", "node:B"]


@each(
    ("registered", "versions", "problem"),
    [
        ([], [version("node:A", 1)], "`node:A` has a version but is not registered"),
        (["node:A"], [], "`node:A` is registered but has no version"),
        (["node:A", "node:A"], [version("node:A", 1)], "`node:A` is registered twice"),
        (
            ["node:A"],
            [version("node:A", 1), version("node:A", 1, "b")],
            "`node:A` has two versions 1",
        ),
    ],
)
def test_damage(registered: list[str], versions: list[PublishedVersion], problem: str) -> None:
    with pytest.raises(StorageError, match=f"the catalog at here is damaged: {problem}"):
        fold(registered, versions, [])
