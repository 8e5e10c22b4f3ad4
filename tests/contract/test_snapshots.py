"""Reading the graph as it is and as it was."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta, timezone

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    SnapshotNotFound,
    TableNotFound,
    TagNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.staged import stage_overwrite
from tests.support.graphs import (
    HOLDS,
    PART,
    append_pair,
    append_parts,
    content,
    ids,
    parts,
    publish,
    touch,
)
from tests.support.table_writes import stage_delete_keys, stage_delete_where, stage_upsert

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")


def moment(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def every_kind_of_write(og: Omnigraph, branch: str = "main") -> None:
    """One commit for each way a table can change."""
    append_parts(og, ["a", "b", "c"], branch)
    stages = {
        TableOperation.UPSERT: lambda table: stage_upsert(table, parts(["b", "d"], stock=5)),
        TableOperation.DELETE: lambda table: stage_delete_where(table, "`id` = 'a'"),
        TableOperation.OVERWRITE: lambda table: stage_overwrite(table, parts(["x", "y", "z"])),
        TableOperation.APPEND: lambda table: stage_upsert(table, parts(["z"], stock=9)),
    }
    for operation, stage in stages.items():
        snapshot = og.snapshot(branch)
        publish(og, snapshot, {PART: stage(og.table(snapshot, PART))}, operation)
    snapshot = og.snapshot(branch)
    gone = stage_delete_keys(og.table(snapshot, PART), parts(["x"])["id"])
    publish(og, snapshot, {PART: gone}, TableOperation.DELETE)
    og.optimize(branch=branch)


def test_every_version_is_what_it_was_when_written(og: Omnigraph) -> None:
    og.branch_create("review")
    recorded = {}
    for branch in ("main", "review"):
        seen: list[int] = []
        every_kind_of_write(og, branch)
        for version in range(1, og.snapshot(branch).manifest_version + 1):
            snapshot = og.snapshot_at_version(version, branch=branch)
            recorded[branch, version] = content(og, snapshot)
            seen.append(len(recorded[branch, version][PART]))
        assert seen == [0, 3, 4, 3, 3, 3, 2, 2]
    append_pair(og, ["later"])
    touch(og, branch="review")
    for (branch, version), expected in recorded.items():
        for handle in (og, Omnigraph.open(og.uri)):
            snapshot = handle.snapshot_at_version(version, branch=branch)
            assert snapshot.manifest_version == version
            assert content(handle, snapshot) == expected


def test_the_same_snapshot_by_all_its_names(og: Omnigraph) -> None:
    made = append_pair(og, ["a"])
    og.tag_create("v1")
    append_pair(og, ["b"])
    named = [
        og.snapshot_at_version(2),
        og.snapshot_of(ReadTarget(snapshot_id=made.graph_commit_id)),
        og.snapshot_of(ReadTarget(tag="v1")),
        og.snapshot_at_time(moment(made.created_at)),
    ]
    assert [snapshot.commit for snapshot in named] == [made] * 4
    assert all(snapshot == named[0] for snapshot in named)
    assert ids(og, named[0]) == ["a"]
    assert og.snapshot_of("main") == og.snapshot_of(ReadTarget(branch="main")) == og.snapshot()


def test_moments(og: Omnigraph) -> None:
    made = [*reversed(og.list_commits()), *(append_pair(og, [name]) for name in "ab")]
    for earlier, later in itertools.pairwise(made):
        assert og.snapshot_at_time(moment(earlier.created_at)).commit == earlier
        assert og.snapshot_at_time(moment(later.created_at - 1)).commit == earlier
    assert og.snapshot_at_time(datetime.max.replace(tzinfo=UTC)).commit == made[-1]
    at = moment(made[1].created_at)
    assert og.snapshot_at_time(at.replace(tzinfo=None)).commit == made[1], "no zone means UTC"
    elsewhere = at.astimezone(timezone(timedelta(hours=-7)))
    assert og.snapshot_at_time(elsewhere).commit == made[1]
    for early in (moment(made[0].created_at - 1), datetime(1970, 1, 1), datetime.min):
        with pytest.raises(SnapshotNotFound, match="no commit as old as"):
            og.snapshot_at_time(early)


def test_moments_before_a_branch_are_those_of_its_source(og: Omnigraph) -> None:
    before = append_pair(og, ["a"])
    og.branch_create("review")
    ours = append_pair(og, ["b"], "review")
    theirs = append_pair(og, ["c"])
    at = moment(theirs.created_at)
    assert og.snapshot_at_time(at, branch="review").commit == ours
    assert og.snapshot_at_time(at).commit == theirs
    assert og.snapshot_at_time(moment(ours.created_at - 1), branch="review").commit == before


def test_what_is_not_there(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    for version in (0, -1, 3, 2**63, 2**64):
        with pytest.raises(SnapshotNotFound, match=f"no version {version} on main"):
            og.snapshot_at_version(version)
    with pytest.raises(BranchNotFound):
        og.snapshot_at_version(1, branch="nope")
    with pytest.raises(BranchNotFound):
        og.snapshot_at_time(datetime.now(UTC), branch="nope")
    with pytest.raises(BranchNotFound):
        og.snapshot_of("nope")
    with pytest.raises(TagNotFound):
        og.snapshot_of(ReadTarget(tag="nope"))
    with pytest.raises(CommitNotFound):
        og.snapshot_of(ReadTarget(snapshot_id="nope"))
    with pytest.raises(TableNotFound, match="no table `node:Nope` on main at version 2") as caught:
        og.table(og.snapshot(), "node:Nope")
    assert str(caught.value.hint).endswith("edge:Holds, node:Bin, node:Part")
    for wrong in ({}, {"branch": "main", "tag": "v1"}):
        with pytest.raises(ConfigError, match="exactly one"):
            ReadTarget(**wrong)


def test_a_snapshot_does_not_move(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    held = og.snapshot()
    before = content(og, held)
    writer = Omnigraph.open(og.uri)
    for number in range(4):
        append_pair(writer, [f"n{number}"])
        assert content(og, held) == before
    writer.optimize()
    assert content(og, held) == before
    assert ids(og, og.snapshot(), HOLDS) == ["a", "n0", "n1", "n2", "n3"]


def test_one_row_at_a_version(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    snapshot = og.snapshot()
    changed = stage_upsert(og.table(snapshot, PART), parts(["a"], stock=7))
    assert changed is not None
    publish(og, snapshot, {PART: changed}, TableOperation.UPSERT)
    found = [og.entity_at(PART, "a", version=version) for version in (1, 2, 3)]
    row = {"id": "a", "sku": "a", "name": "part a"}
    assert found == [None, {**row, "stock": 0}, {**row, "stock": 7}]
    assert og.entity_at(PART, "b", version=3) is None
    assert og.entity_at(PART, "' OR true --", version=3) is None
    assert og.entity_at("node:Nope", "a", version=3) is None
    with pytest.raises(SnapshotNotFound):
        og.entity_at(PART, "a", version=4)
