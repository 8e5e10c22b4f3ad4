"""What changes make of an image."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph_core.constants import RECENT_COMMITS
from omnigraph_core.errors import AlreadyExists, InvariantBroken, TableNotFound
from omnigraph_core.manifest.changes import (
    AcceptSchema,
    AdoptTable,
    Change,
    RegisterTable,
    RenameTable,
    TombstoneTable,
    UpdateTable,
    add_commit,
    apply_changes,
    touched,
)
from omnigraph_core.manifest.image import AcceptedSchema, TableOperation
from tests.support.cases import each
from tests.unit.manifest.samples import commit, entry, image

PART = entry("node:Part", table_version=3)
FITS = entry("edge:Fits", table_version=5, branch="b")
BASE = image(PART, FITS, tombstones={"node:Old": 7})

REGISTER = RegisterTable("node:Tool", "nodes/t", 9, 4, 1)
UPDATE = UpdateTable("node:Part", 77, 11, 3, TableOperation.UPSERT)
SCHEMA = AcceptedSchema("node Tool {}", "{}", "h2")


def test_no_change() -> None:
    assert apply_changes(BASE, (), branch=None) == BASE


def test_register() -> None:
    after = apply_changes(BASE, [REGISTER], branch="x")
    assert after.tables["node:Tool"] == entry(
        "node:Tool",
        location="nodes/t",
        table_version=1,
        physical_version=9,
        branch="x",
        row_count=4,
        fragment_count=1,
        operation=TableOperation.CREATE,
    )
    assert list(after.tables) == ["edge:Fits", "node:Part", "node:Tool"]


def test_registering_a_removed_table_counts_on() -> None:
    after = apply_changes(BASE, [replace(REGISTER, table_key="node:Old")], branch=None)
    assert after.version_of("node:Old") == 8
    assert after.tombstones == {"node:Old": 7}


def test_update() -> None:
    after = apply_changes(BASE, [UPDATE], branch="x")
    assert after.tables["node:Part"] == replace(
        PART,
        table_version=4,
        physical_version=77,
        branch="x",
        row_count=11,
        fragment_count=3,
        operation=TableOperation.UPSERT,
    )
    assert after.tables["edge:Fits"] is FITS


def test_an_update_on_main_names_no_branch() -> None:
    update = replace(UPDATE, table_key="edge:Fits")
    assert apply_changes(BASE, [update], branch=None).tables["edge:Fits"].branch is None


@pytest.mark.parametrize(
    ("table_key", "version"), [("node:Part", 4), ("node:Old", 8), ("node:New", 1)]
)
def test_adopt(table_key: str, version: int) -> None:
    theirs = entry(table_key, location="nodes/other", table_version=40, branch="theirs")
    after = apply_changes(BASE, [AdoptTable(theirs)], branch="x")
    assert after.tables[table_key] == replace(
        theirs, table_version=version, operation=TableOperation.ADOPT
    )


def test_tombstone() -> None:
    after = apply_changes(BASE, [TombstoneTable("node:Part")], branch=None)
    assert list(after.tables) == ["edge:Fits"]
    assert after.tombstones == {"node:Old": 7, "node:Part": 4}


def test_rename() -> None:
    after = apply_changes(BASE, [RenameTable("edge:Fits", "node:Old")], branch="x")
    assert after.tables == {
        "node:Old": replace(
            FITS, table_key="node:Old", table_version=8, operation=TableOperation.SCHEMA
        ),
        "node:Part": PART,
    }
    assert after.tombstones == {"edge:Fits": 6, "node:Old": 7}


def test_rename_with_a_new_version() -> None:
    update = replace(UPDATE, table_key="node:Item")
    after = apply_changes(BASE, [RenameTable("node:Part", "node:Item", update)], branch="x")
    assert after.tables["node:Item"] == replace(
        PART,
        table_key="node:Item",
        table_version=1,
        physical_version=77,
        branch="x",
        row_count=11,
        fragment_count=3,
        operation=TableOperation.UPSERT,
    )


def test_accept_schema() -> None:
    after = apply_changes(BASE, [AcceptSchema(SCHEMA)], branch=None)
    assert after == replace(BASE, schema=SCHEMA)


def test_all_at_once() -> None:
    changes = [AcceptSchema(SCHEMA), REGISTER, UPDATE, TombstoneTable("edge:Fits")]
    after = apply_changes(BASE, changes, branch=None)
    assert apply_changes(BASE, reversed(changes), branch=None) == after
    assert {key: item.table_version for key, item in after.tables.items()} == {
        "node:Part": 4,
        "node:Tool": 1,
    }
    assert after.commits is BASE.commits


def test_the_image_given_stays_as_it_is() -> None:
    before = image(PART, FITS, tombstones={"node:Old": 7})
    apply_changes(BASE, [REGISTER, UPDATE, TombstoneTable("edge:Fits")], branch=None)
    assert before == BASE


@each(
    ("change", "problem"),
    [
        (replace(UPDATE, table_key="node:New"), "no table `node:New` to change"),
        (replace(UPDATE, table_key="node:Old"), "no table `node:Old` to change"),
        (TombstoneTable("node:Old"), "no table `node:Old` to change"),
        (RenameTable("node:New", "node:Newer"), "no table `node:New` to change"),
    ],
)
def test_unknown_tables(change: Change, problem: str) -> None:
    with pytest.raises(TableNotFound) as caught:
        apply_changes(BASE, [change], branch=None)
    assert caught.value.message == problem
    assert caught.value.hint == "tables there: edge:Fits, node:Part"


def test_an_unknown_table_in_an_empty_image() -> None:
    with pytest.raises(TableNotFound, match="tables there: none"):
        apply_changes(image(), [UPDATE], branch=None)


@pytest.mark.parametrize(
    "change", [replace(REGISTER, table_key="node:Part"), RenameTable("edge:Fits", "node:Part")]
)
def test_taken_keys(change: Change) -> None:
    with pytest.raises(AlreadyExists, match="a table `node:Part` exists"):
        apply_changes(BASE, [change], branch=None)


@each(
    "second",
    [
        UPDATE,
        TombstoneTable("node:Part"),
        AdoptTable(PART),
        RenameTable("node:Part", "node:Item"),
        RenameTable("edge:Fits", "node:Part"),
        replace(REGISTER, table_key="node:Part"),
    ],
)
def test_a_table_is_changed_once(second: Change) -> None:
    with pytest.raises(InvariantBroken, match="a commit changes a table once, unlike node:Part"):
        apply_changes(BASE, [UPDATE, second], branch=None)


def test_a_rename_needs_two_names() -> None:
    with pytest.raises(InvariantBroken, match="a commit changes a table once"):
        apply_changes(BASE, [RenameTable("node:Part", "node:Part")], branch=None)


def test_a_rename_updates_its_own_table() -> None:
    with pytest.raises(InvariantBroken, match="a rename to node:Item updates that table only"):
        apply_changes(BASE, [RenameTable("node:Part", "node:Item", UPDATE)], branch=None)


def test_one_schema_is_accepted() -> None:
    with pytest.raises(InvariantBroken, match="a commit accepts one schema"):
        apply_changes(BASE, [AcceptSchema(SCHEMA), AcceptSchema(SCHEMA)], branch=None)


def test_touched() -> None:
    changes = [
        AcceptSchema(SCHEMA),
        REGISTER,
        UPDATE,
        AdoptTable(entry("node:A")),
        TombstoneTable("node:T"),
        RenameTable("node:R", "node:S"),
    ]
    assert touched(changes) == {
        "node:Tool", "node:Part", "node:A", "node:T", "node:R", "node:S"
    }  # fmt: skip
    assert touched(()) == frozenset()


def test_a_commit_becomes_the_head() -> None:
    after = add_commit(BASE, commit(2))
    assert after == replace(BASE, commits=(commit(1), commit(2)))


def test_the_first_commit() -> None:
    assert add_commit(image(commits=()), commit(1)).commits == (commit(1),)


def test_only_the_newest_commits_are_kept() -> None:
    grown = image()
    for number in range(2, RECENT_COMMITS.value + 5):
        grown = add_commit(grown, commit(number))
    assert len(grown.commits) == RECENT_COMMITS.value
    assert grown.head == commit(RECENT_COMMITS.value + 4)
    assert add_commit(BASE, commit(2), keep=1).commits == (commit(2),)


def test_a_commit_continues_the_head() -> None:
    with pytest.raises(InvariantBroken, match="the first parent of a commit is the head c1"):
        add_commit(BASE, commit(3))
    with pytest.raises(InvariantBroken, match="the first parent of a commit is the head None"):
        add_commit(image(commits=()), commit(2))


def test_the_head_is_always_kept() -> None:
    with pytest.raises(InvariantBroken, match="an image keeps its head commit"):
        add_commit(BASE, commit(2), keep=0)
