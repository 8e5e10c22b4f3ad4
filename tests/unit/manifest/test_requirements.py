"""What must hold when a commit lands."""

from __future__ import annotations

import pytest

from omnigraph_core.errors import ErrorKind, PreconditionFailed, VersionConflict
from omnigraph_core.manifest.requirements import (
    BranchIs,
    HeadIs,
    KeyIsNew,
    PublishState,
    Requirement,
    SchemaIs,
    StagedWithin,
    TableAt,
    TableUnchanged,
    check_all,
    requirements_of,
)
from tests.support.cases import each
from tests.unit.manifest.samples import commit, entry, image, snapshot

BASE = snapshot(image(entry("node:Part", table_version=3), tombstones={"node:Old": 7}))
STATE = PublishState(BASE, now=1000.0)

HOLD: list[Requirement] = [
    HeadIs("c1"),
    SchemaIs("h1"),
    BranchIs("main"),
    TableAt("node:Part", 3),
    TableAt("node:Old", 7),
    TableAt("node:New", 0),
    TableUnchanged("node:Part", 3),
    StagedWithin(since=1000.0, lease=60.0),
    StagedWithin(since=940.0, lease=60.0),
    StagedWithin(since=1060.0, lease=60.0),
]


@each("requirement", HOLD)
def test_what_holds(requirement: Requirement) -> None:
    requirement.check(STATE)


def test_all_that_holds() -> None:
    check_all(HOLD, STATE)
    check_all((), STATE)


@each("kind", [TableAt, TableUnchanged])
@each(
    ("table_key", "expected", "actual"),
    [("node:Part", 2, 3), ("node:Part", 4, 3), ("node:Old", 6, 7), ("node:New", 1, 0)],
)
def test_a_table_that_moved(
    kind: type[TableAt | TableUnchanged], table_key: str, expected: int, actual: int
) -> None:
    with pytest.raises(VersionConflict) as caught:
        kind(table_key, expected).check(STATE)
    assert caught.value.details() == {
        "table_key": table_key,
        "expected": expected,
        "actual": actual,
    }


@each(
    ("requirement", "member", "expected", "actual"),
    [
        (HeadIs("c0"), "head", "c0", "c1"),
        (SchemaIs("h0"), "schema", "h0", "h1"),
        (BranchIs("01J0"), "branch", "01J0", "main"),
        (StagedWithin(939.0, 60.0), "lease", "at most 60 s old", "61 s old"),
        (StagedWithin(1061.0, 60.0), "lease", "at most 60 s old", "-61 s old"),
        (StagedWithin(float("nan"), 60.0), "lease", "at most 60 s old", "nan s old"),
    ],
)
def test_what_moved(requirement: Requirement, member: str, expected: str, actual: str) -> None:
    with pytest.raises(PreconditionFailed) as caught:
        requirement.check(STATE)
    assert caught.value.details() == {"member": member, "expected": expected, "actual": actual}
    assert caught.value.kind is ErrorKind.CONFLICT
    assert caught.value.retryable


LATER = PublishState(
    snapshot(
        image(commits=(commit(10), commit(11, idempotency_key="b"), commit(12))),
        manifest_version=12,
    ),
    now=1000.0,
)


@each(
    ("key", "incarnation", "seen_version"),
    [("a", "main", 12), ("a", "main", 10), ("a", "main", 9), ("b", "01J0", 9), ("b", "01J0", 0)],
)
def test_a_new_key(key: str, incarnation: str, seen_version: int) -> None:
    KeyIsNew(key, incarnation, seen_version).check(LATER)


@pytest.mark.parametrize("seen_version", [8, 11, 12])
def test_a_key_that_was_used_meanwhile(seen_version: int) -> None:
    with pytest.raises(PreconditionFailed, match="idempotency key is that of commit c11") as caught:
        KeyIsNew("b", "main", seen_version).check(LATER)
    assert caught.value.member == "idempotency key"


def test_a_key_looked_for_too_long_ago() -> None:
    with pytest.raises(PreconditionFailed, match="up to 8, expected looked for up to version 9"):
        KeyIsNew("a", "main", 8).check(LATER)


def test_the_first_failure_is_raised_and_names_the_others() -> None:
    failing = [HeadIs("c1"), TableAt("node:Part", 2), SchemaIs("h0"), TableUnchanged("node:Old", 1)]
    with pytest.raises(VersionConflict) as caught:
        check_all(failing, STATE)
    assert caught.value.table_key == "node:Part"
    assert caught.value.hint == (
        "read again and retry; also, the schema was changed meanwhile; "
        "node:Old is at version 7, expected 1; retry"
    )


def test_a_single_failure_keeps_its_hint() -> None:
    with pytest.raises(PreconditionFailed) as caught:
        check_all([SchemaIs("h0"), HeadIs("c1")], STATE)
    assert caught.value.hint == "read again, prepare again and retry"


def test_requirements_of_a_commit() -> None:
    made = requirements_of(
        BASE, touched=["node:Part", "node:New"], read=["node:Part", "node:Old", "node:Old"]
    )
    assert made == (
        BranchIs("main"),
        SchemaIs("h1"),
        StagedWithin(BASE.read_at, 21_600.0),
        TableAt("node:New", 0),
        TableAt("node:Part", 3),
        TableUnchanged("node:Old", 7),
    )


def test_requirements_of_a_schema_change_only() -> None:
    assert requirements_of(BASE, touched=()) == (
        BranchIs("main"),
        SchemaIs("h1"),
        StagedWithin(BASE.read_at, 21_600.0),
    )
