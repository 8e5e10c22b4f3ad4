"""Commits: what they record, when they are refused, how they are found again."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.constants import PUBLISHER_RETRY_BUDGET
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    AlreadyExists,
    BranchNotFound,
    CommitNotFound,
    InvariantBroken,
    PreconditionFailed,
    PublishContention,
    TableNotFound,
    VersionConflict,
)
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.changes import AdoptTable, RegisterTable, TombstoneTable, UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import (
    BranchIs,
    HeadIs,
    SchemaIs,
    StagedWithin,
    TableAt,
    TableUnchanged,
    requirements_of,
)
from omnigraph_core.storage.staged import stage_append
from tests.support.graphs import (
    BIN,
    HOLDS,
    PART,
    Meanwhile,
    append,
    append_pair,
    append_parts,
    content,
    ids,
    rows_of,
    touch,
    update,
)

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.requirements import Requirement


def staged(og: Omnigraph, key: str, id: str) -> UpdateTable:
    """A change that adds one row to a table as it is now."""
    table = stage_append(og.table(og.snapshot(), key), rows_of(key, [id]))
    assert table is not None
    return update(key, table, TableOperation.APPEND)


def needs(og: Omnigraph, *keys: str) -> tuple[Requirement, ...]:
    """What a commit on these tables relies on, as they are now."""
    return requirements_of(og.snapshot(), touched=keys or [PART])


def test_the_first_commit(og: Omnigraph) -> None:
    (genesis,) = og.list_commits()
    assert (genesis.parents, genesis.operation, genesis.actor_id) == ((), "init", "tester")
    assert (genesis.manifest_branch, genesis.manifest_version) == (None, 1)
    assert og.get_commit(genesis.graph_commit_id) == genesis


def test_what_a_commit_records(og: Omnigraph) -> None:
    (genesis,) = og.list_commits()
    chosen = new_ulid()
    made = og.commit(
        [staged(og, PART, "a")], needs(og), operation="load", commit_id=chosen, actor="ann"
    )
    assert made.graph_commit_id == chosen
    assert (made.operation, made.actor_id) == ("load", "ann")
    assert made.parents == (genesis.graph_commit_id,)
    assert (made.manifest_branch, made.manifest_version) == (None, 2)
    assert made.created_at > genesis.created_at > 1_600_000_000_000_000, "microseconds"
    assert og.commit([staged(og, PART, "b")], needs(og)).actor_id is None
    entry = og.snapshot().table(PART)
    assert (entry.table_version, entry.row_count, entry.fragment_count) == (3, 2, 2)
    assert og.snapshot().table(BIN).table_version == 1


def test_commits_are_listed_newest_first(og: Omnigraph) -> None:
    made = [append(og, PART, [str(number)]) for number in range(5)]
    listed = og.list_commits()
    assert listed[:-1] == tuple(reversed(made))
    assert og.list_commits(limit=2) == listed[:2]
    assert og.list_commits(limit=0) == ()
    assert [commit.parents for commit in listed] == [
        *((older.graph_commit_id,) for older in listed[1:]),
        (),
    ]
    assert Omnigraph.open(og.uri).list_commits() == listed


def test_a_branch_lists_what_it_inherits(og: Omnigraph) -> None:
    shared = append_pair(og, ["a"])
    og.branch_create("review")
    ours = append_pair(og, ["b"], "review")
    theirs = append_pair(og, ["c"])
    og.branch_create("nested", source="review")
    deep = append_pair(og, ["d"], "nested")
    genesis = og.list_commits()[-1]
    assert og.list_commits("review") == (ours, shared, genesis)
    assert og.list_commits() == (theirs, shared, genesis)
    assert og.list_commits("nested") == (deep, ours, shared, genesis)
    assert (ours.manifest_branch, ours.manifest_version) == ("review", 2)
    assert ours.parents == theirs.parents == (shared.graph_commit_id,)


def test_commits_are_found_by_id(og: Omnigraph) -> None:
    """Whether or not the log of commits knows them yet, and from any handle."""
    og.branch_create("review")
    made = [append_pair(og, ["a"]), append_pair(og, ["b"], "review")]
    other = Omnigraph.open(og.uri)
    assert [other.get_commit(commit.graph_commit_id) for commit in made] == made
    og.list_commits("review")  # records what it has found
    made.append(append_pair(og, ["c"], "review"))
    assert [other.get_commit(commit.graph_commit_id) for commit in made] == made
    with pytest.raises(CommitNotFound, match="no commit `nope`"):
        og.get_commit("nope")
    with pytest.raises(CommitNotFound):
        og.get_commit("")


def test_several_tables_at_once(og: Omnigraph) -> None:
    changes = [staged(og, key, "x") for key in (PART, BIN, HOLDS)]
    made = og.commit(changes, needs(og, PART, BIN, HOLDS))
    assert len(og.list_commits()) == 2
    assert [ids(og, og.snapshot(), key) for key in (PART, BIN, HOLDS)] == [["x"], ["x"], ["x"]]
    assert og.snapshot().commit == made


def test_without_changes_only_requirements_are_checked(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    before = og.snapshot()
    assert og.commit([], requirements_of(before, touched=[PART])) == before.commit
    assert og.commit([], []) == before.commit
    with pytest.raises(VersionConflict):
        og.commit([], [TableAt(PART, 1)])
    assert og.snapshot() == before
    assert len(og.list_commits()) == 2


def test_a_moved_table_is_a_conflict(og: Omnigraph) -> None:
    base = og.snapshot()
    late = staged(og, PART, "late")
    append_parts(og, ["first"])
    with pytest.raises(VersionConflict) as caught:
        og.commit([late], requirements_of(base, touched=[PART]))
    assert caught.value.retryable
    assert caught.value.details() == {"table_key": PART, "expected": 1, "actual": 2}
    assert ids(og, og.snapshot()) == ["first"]
    assert og.snapshot().manifest_version == 2


def test_a_read_table_that_moved_is_a_conflict(og: Omnigraph) -> None:
    """An edge was checked against nodes that are no longer the same."""
    base = og.snapshot()
    edge = staged(og, HOLDS, "a")
    append_parts(og, ["b"])
    with pytest.raises(VersionConflict) as caught:
        og.commit([edge], requirements_of(base, touched=[HOLDS], read=[PART, HOLDS]))
    assert caught.value.details() == {"table_key": PART, "expected": 1, "actual": 2}
    assert ids(og, og.snapshot(), HOLDS) == []


def test_other_tables_do_not_conflict(og: Omnigraph) -> None:
    """Two handles prepared on one base, on disjoint tables: both are kept, one after the other."""
    other = Omnigraph.open(og.uri)
    base, change = og.snapshot(), staged(og, PART, "p")
    first = append(other, BIN, ["b"])
    second = og.commit([change], requirements_of(base, touched=[PART]))
    assert second.parents == (first.graph_commit_id,)
    assert (first.manifest_version, second.manifest_version) == (2, 3)
    assert (ids(og, og.snapshot()), ids(og, og.snapshot(), BIN)) == (["p"], ["b"])


def test_a_commit_that_loses_the_race_is_based_on_the_winner(og: Omnigraph) -> None:
    other = Omnigraph.open(og.uri)
    rivals = iter(["r1", "r2", "r3"])

    def win() -> None:
        for id in rivals:
            append(other, BIN, [id])
            return

    base = og.snapshot()
    wanted = [*requirements_of(base, touched=[PART], read=[HOLDS]), Meanwhile(win)]
    made = og.commit([staged(og, PART, "p")], wanted)
    assert made.manifest_version == 5
    assert made.parents == (other.list_commits()[1].graph_commit_id,)
    assert ids(og, og.snapshot(), BIN) == ["r1", "r2", "r3"]
    assert ids(og, og.snapshot()) == ["p"]


def test_a_conflict_found_in_the_race(og: Omnigraph) -> None:
    other = Omnigraph.open(og.uri)
    rivals = iter(["first"])

    def win() -> None:
        for id in rivals:
            append_parts(other, [id])

    wanted = [*needs(og), Meanwhile(win)]
    with pytest.raises(VersionConflict) as caught:
        og.commit([staged(og, PART, "late")], wanted)
    assert caught.value.details() == {"table_key": PART, "expected": 1, "actual": 2}
    assert ids(og, og.snapshot()) == ["first"]


def test_others_first_every_time(og: Omnigraph) -> None:
    other = Omnigraph.open(og.uri)
    won: list[GraphCommit] = []
    wanted = [*needs(og), Meanwhile(lambda: won.append(touch(other)))]
    with pytest.raises(PublishContention) as caught:
        og.commit([staged(og, PART, "never")], wanted)
    assert caught.value.retryable
    assert ids(og, og.snapshot()) == []
    assert len(won) > PUBLISHER_RETRY_BUDGET.value
    assert og.list_commits()[:-1] == tuple(reversed(won))


def test_preconditions(og: Omnigraph) -> None:
    og.branch_create("review")
    base = og.snapshot()
    append(og, BIN, ["b"])
    head = og.head_commit_id_for_branch()
    change = staged(og, PART, "x")
    cases = {
        "head": (HeadIs(base.commit.graph_commit_id), base.commit.graph_commit_id, head),
        "schema": (SchemaIs("other"), "other", base.schema.hash),
        "branch": (BranchIs("gone"), "gone", "main"),
        "lease": (StagedWithin(base.read_at - 100, 10), "at most 10 s old", "100 s old"),
    }
    for member, (requirement, expected, actual) in cases.items():
        with pytest.raises(PreconditionFailed) as caught:
            og.commit([change], [requirement, *needs(og)])
        assert caught.value.details() == {"member": member, "expected": expected, "actual": actual}
        assert caught.value.retryable
    assert og.head_commit_id_for_branch() == head
    assert og.commit([change], [*needs(og), HeadIs(head)]).parents == (head,)


def test_a_lease_that_runs_out_before_publishing(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = og.snapshot()
    slow = dataclasses.replace(snapshot, read_at=snapshot.read_at - 7)
    change = staged(og, PART, "x")
    monkeypatch.setenv("OMNIGRAPH_PUBLISH_LEASE", "6")
    with pytest.raises(PreconditionFailed, match="lease"):
        og.commit([change], requirements_of(slow, touched=[PART]))
    monkeypatch.setenv("OMNIGRAPH_PUBLISH_LEASE", "60")
    og.commit([change], requirements_of(slow, touched=[PART]))


def test_every_failing_requirement_is_told(og: Omnigraph) -> None:
    wanted = [TableUnchanged(BIN, 5), TableUnchanged(HOLDS, 4), HeadIs("x"), *needs(og)]
    with pytest.raises(VersionConflict) as caught:
        og.commit([staged(og, PART, "x")], wanted)
    assert caught.value.table_key == BIN
    assert HOLDS in str(caught.value.hint)
    assert "head" in str(caught.value.hint)


def test_a_commit_says_what_it_replaces(og: Omnigraph) -> None:
    """Without, it could undo what others have done."""
    change = staged(og, PART, "x")
    for wanted in ([], [TableAt(BIN, 1)], [TableUnchanged(PART, 1)]):
        with pytest.raises(InvariantBroken, match="a commit requires a version"):
            og.commit([change], wanted)
    for field in ("base_physical_version", "staged_since"):
        with pytest.raises(InvariantBroken, match="a change says"):
            og.commit([dataclasses.replace(change, **{field: None})], needs(og))
    assert og.snapshot().manifest_version == 1
    assert og.commit([change], [TableAt(PART, 1)]).manifest_version == 2


def test_what_was_staged_on_another_version_is_refused(og: Omnigraph) -> None:
    """The requirements are of the current version, the work is not: it would undo a commit."""
    late = staged(og, PART, "late")
    append_parts(og, ["first"])
    with pytest.raises(PreconditionFailed, match=f"the base of {PART}"):
        og.commit([late], needs(og))
    assert ids(og, og.snapshot()) == ["first"]


def test_work_older_than_the_lease_is_refused(og: Omnigraph) -> None:
    """Whatever the requirements say: its files may be swept."""
    change = staged(og, PART, "slow")
    assert change.staged_since is not None
    for since in (change.staged_since - 21_601, change.staged_since + 21_700):
        with pytest.raises(PreconditionFailed, match=f"the age of {PART}"):
            og.commit([dataclasses.replace(change, staged_since=since)], needs(og))
    assert og.snapshot().manifest_version == 1


def test_changes_that_cannot_be(og: Omnigraph) -> None:
    before = og.snapshot()
    again = RegisterTable.of(PART, og.table(before, PART))
    unknown = dataclasses.replace(staged(og, PART, "x"), table_key="node:Nope")
    with pytest.raises(AlreadyExists, match=f"`{PART}`"):
        og.commit([again], needs(og))
    for change in (unknown, TombstoneTable("node:Nope")):
        with pytest.raises(TableNotFound, match="`node:Nope`") as caught:
            og.commit([change], needs(og, "node:Nope"))
        assert PART in str(caught.value.hint)
    with pytest.raises(InvariantBroken):
        og.commit([staged(og, PART, "x"), TombstoneTable(PART)], needs(og))
    with pytest.raises(BranchNotFound):
        og.commit([staged(og, PART, "x")], needs(og), branch="nope")
    assert og.snapshot() == before


def test_a_removed_table_comes_back_with_higher_numbers(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    with_holds = og.snapshot()
    og.commit([TombstoneTable(HOLDS)], needs(og, HOLDS))
    assert HOLDS not in og.snapshot().tables
    with pytest.raises(TableNotFound, match="edge:Holds"):
        og.table(og.snapshot(), HOLDS)
    assert ids(og, with_holds, HOLDS) == ["a"]
    back = RegisterTable.of(HOLDS, og.table(with_holds, HOLDS))
    og.commit([back], needs(og, HOLDS))
    assert og.snapshot().table(HOLDS).table_version == 4
    assert content(og, og.snapshot()) == content(og, with_holds)


def test_two_writers_of_one_table_one_after_the_other(og: Omnigraph) -> None:
    other = Omnigraph.open(og.uri)
    for number in range(4):
        append_parts((og, other)[number % 2], [str(number)])
    assert ids(og, og.snapshot()) == ids(other, other.snapshot()) == ["0", "1", "2", "3"]


def test_a_published_version_may_be_published_again(og: Omnigraph) -> None:
    """A commit that puts an old version back, as an undo would."""
    append_parts(og, ["a"])
    old = og.snapshot()
    append_parts(og, ["b"])
    now = og.snapshot()
    change = AdoptTable(old.table(PART), staged_since=old.read_at)
    og.commit([change], requirements_of(now, touched=[PART]))
    assert ids(og, og.snapshot()) == ["a"]
    assert og.snapshot().table(PART).table_version == 4
    assert ids(og, now) == ["a", "b"]
