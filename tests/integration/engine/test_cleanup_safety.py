"""Cleanup in time and beside others: slow writers, slow creators, interruptions, clocks."""

from __future__ import annotations

import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    ConflictError,
    OmnigraphError,
    PreconditionFailed,
    SnapshotNotFound,
    StorageError,
)
from omnigraph_core.failpoints import arm
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.changes import TombstoneTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from tests.support.ageing import GRACE, Clock, clean_up, grow_old
from tests.support.graphs import (
    HOLDS,
    PART,
    append_pair,
    append_parts,
    content,
    ids,
    new_graph,
    parts,
    publish,
)
from tests.support.meanwhile import meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from omnigraph_core.manifest.image import GraphCommit

HOUR = timedelta(hours=1)


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    return new_graph(str(tmp_path))


@pytest.fixture
def clock(og: Omnigraph, tmp_path: Path) -> Iterator[Clock]:
    with pytest.MonkeyPatch.context() as patch:
        yield Clock(patch, tmp_path)


def replace_parts(og: Omnigraph, ids: list[str], branch: str = "main") -> GraphCommit:
    """A commit after which nothing of the versions before is used any more."""
    snapshot = og.snapshot(branch)
    staged = stage_overwrite(og.table(snapshot, PART), parts(ids))
    assert staged is not None
    return publish(og, snapshot, {PART: staged}, TableOperation.OVERWRITE)


def readable(og: Omnigraph, branch: str = "main") -> dict[int, list[str]]:
    """The parts of every version that exists; each of them is read in full."""
    found = {}
    for version in range(1, og.snapshot(branch).manifest_version + 1):
        with contextlib.suppress(SnapshotNotFound):
            snapshot = og.snapshot_at_version(version, branch=branch)
            content(og, snapshot)
            found[version] = ids(og, snapshot)
    return found


def data_files(og: Omnigraph, root: Path, key: str = PART) -> int:
    return len(list((root / og.snapshot().table(key).location / "data").glob("*.lance")))


def test_hours_of_history(og: Omnigraph, clock: Clock) -> None:
    """Versions 2 to 6 are five to one hours old."""
    for name in "abcde":
        replace_parts(og, [name])
        clock.advance(HOUR)
    for arguments, expected in (
        ({"older_than": 10 * HOUR}, [1, 2, 3, 4, 5, 6]),
        ({"older_than": 4.5 * HOUR}, [3, 4, 5, 6]),
        ({"keep": 3, "older_than": 2.5 * HOUR}, [4, 5, 6]),
        ({"keep": 1, "older_than": 2.5 * HOUR}, [5, 6]),
        ({"older_than": timedelta(0)}, [6]),
    ):
        clean_up(og, **arguments, is_aged=False)
        assert list(readable(og)) == expected


def test_grace_begins_when_a_version_is_superseded(og: Omnigraph, clock: Clock) -> None:
    replace_parts(og, ["a"])
    clock.advance(100 * HOUR)
    replace_parts(og, ["b"])
    clock.stamp()
    clean_up(og, keep=1, grace=HOUR, is_aged=False)
    assert readable(og) == {2: ["a"], 3: ["b"]}, "2 was the newest until a moment ago"
    clock.advance(1.1 * HOUR)
    clean_up(og, keep=1, grace=HOUR, is_aged=False)
    assert readable(og) == {3: ["b"]}


def test_the_default_grace_is_a_day(og: Omnigraph, clock: Clock, tmp_path: Path) -> None:
    for name in "abc":
        replace_parts(og, [name])
    clock.advance(23 * HOUR)
    og.cleanup(keep=1)
    assert list(readable(og)) == [1, 2, 3, 4]
    clock.advance(2 * HOUR)
    og.cleanup(keep=1)
    assert list(readable(og)) == [4]
    assert data_files(og, tmp_path) == 1


def test_moments_that_were_cleaned_up(og: Omnigraph) -> None:
    made = replace_parts(og, ["a"])
    replace_parts(og, ["b"])
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=made.created_at)
    assert ids(og, og.snapshot_at_time(at)) == ["a"]
    clean_up(og, keep=1)
    with pytest.raises(SnapshotNotFound):
        og.snapshot_at_time(at)
    with pytest.raises(SnapshotNotFound):
        og.entity_at(PART, "a", version=2)


def test_files_of_the_future_stay(og: Omnigraph, tmp_path: Path) -> None:
    """A store whose clock is ahead tells no age."""
    for name in "ab":
        replace_parts(og, [name])
    for path in tmp_path.rglob("*.lance"):
        os.utime(path, (time.time() + 3600, time.time() + 3600))
    clean_up(og, keep=1)
    assert data_files(og, tmp_path) == 2
    assert readable(og) == {3: ["b"]}


def test_a_writer_slower_than_its_lease_must_prepare_again(
    og: Omnigraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_parts(og, ["a"])
    monkeypatch.setenv(PUBLISH_LEASE.name, str(GRACE.total_seconds() / 2))
    snapshot = og.snapshot()
    staged = stage_append(og.table(snapshot, PART), parts(["slow"]))
    assert staged is not None
    grow_old()
    og.cleanup(keep=1, grace=GRACE)
    assert data_files(og, tmp_path) == 1, "its files are gone"
    with pytest.raises(PreconditionFailed, match="lease"):
        publish(og, snapshot, {PART: staged}, TableOperation.APPEND)
    monkeypatch.delenv(PUBLISH_LEASE.name)
    append_parts(og, ["again"])
    assert ids(og, og.snapshot()) == ["a", "again"]


def test_a_branch_is_never_made_of_what_is_gone(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its creator stops between copying the catalog and naming it; meanwhile the source goes."""
    replace_parts(og, ["a"])
    cleaner = Omnigraph.open(og.uri)

    def overtake() -> None:
        replace_parts(cleaner, ["b"])
        clean_up(cleaner, keep=1)
        monkeypatch.setenv(PUBLISH_LEASE.name, str(GRACE.total_seconds() / 2))

    with (
        meanwhile(overtake, at="branch.after_catalog"),
        pytest.raises(PreconditionFailed),
    ):
        og.branch_create("review")
    monkeypatch.delenv(PUBLISH_LEASE.name)
    assert og.branch_list() == ("main",)
    clean_up(og, keep=1)
    assert ids(og, og.snapshot()) == ["b"]


@pytest.mark.parametrize("point", ["cleanup.after_intent", "cleanup.after_trim"])
def test_a_tag_is_kept_or_refused_while_cleanup_runs(og: Omnigraph, point: str) -> None:
    made = replace_parts(og, ["a"])
    replace_parts(og, ["b"])
    other = Omnigraph.open(og.uri)
    old = ReadTarget(snapshot_id=made.graph_commit_id)

    def tag() -> None:
        with contextlib.suppress(PreconditionFailed, SnapshotNotFound):
            other.tag_create("old", old)
        other.tag_create("head")

    with meanwhile(tag, at=point):
        clean_up(og, keep=1)
    for tag in og.tag_list():
        assert content(og, og.snapshot_of(ReadTarget(tag=tag.tag)))
    assert "head" in [tag.tag for tag in og.tag_list()]


@pytest.mark.parametrize(
    "point",
    ["cleanup.after_intent", "cleanup.after_trim", "cleanup.after_table", "sweep.after_some"],
)
def test_an_interrupted_cleanup_leaves_whole_versions(
    og: Omnigraph, tmp_path: Path, point: str
) -> None:
    for name in "abc":
        append_pair(og, [name])
        replace_parts(og, [name])
    og.branch_create("review")
    replace_parts(og, ["r"], "review")
    og.branch_delete("review")
    before = readable(og)
    with arm(point, "error*1"), pytest.raises(StorageError, match=point):
        clean_up(og, keep=1)
    after = readable(og)
    assert after.items() <= before.items()
    assert before[7] == after[7]
    append_pair(og, ["more"])
    clean_up(og, keep=1)
    assert readable(og) == {8: ["c", "more"]}
    assert data_files(og, tmp_path) == 2
    assert not list(tmp_path.glob("_refs/manifests/*/_versions/*"))


def test_two_cleanups_at_once(og: Omnigraph, tmp_path: Path) -> None:
    for name in "abcdef":
        replace_parts(og, [name])
    grow_old()
    others = [Omnigraph.open(og.uri) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setenv(PUBLISH_LEASE.name, str(GRACE.total_seconds() / 2))
        done = [pool.submit(other.cleanup, keep=2, grace=GRACE) for other in others]
        errors = [item.exception() for item in done]
    assert all(error is None or isinstance(error, OmnigraphError) for error in errors)
    clean_up(og, keep=2)
    assert readable(og) == {6: ["e"], 7: ["f"]}
    assert data_files(og, tmp_path) == 2


def test_writers_beside_a_cleanup(og: Omnigraph) -> None:
    """Cleanup after cleanup while two handles write: nothing that was acknowledged is lost."""
    made: list[str] = []

    def write() -> None:
        writer = Omnigraph.open(og.uri)
        for number in range(20):
            append_pair(writer, [f"p{number:02d}"])
            made.append(f"p{number:02d}")

    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setenv(PUBLISH_LEASE.name, "0.5")
        writing = pool.submit(write)
        while not writing.done():
            og.cleanup(keep=1, grace=timedelta(seconds=1))
            snapshot = og.snapshot()
            assert ids(og, snapshot) == ids(og, snapshot, HOLDS)
    if (problem := writing.exception()) is not None:
        assert isinstance(problem, ConflictError), "slower than the short lease of this test"
    assert set(made) <= set(ids(og, og.snapshot()))
    assert readable(og)


def test_a_removed_table_goes_with_its_last_version(og: Omnigraph, tmp_path: Path) -> None:
    append_pair(og, ["a"])
    location = og.snapshot().table(HOLDS).location
    og.commit([TombstoneTable(HOLDS)], requirements_of(og.snapshot(), touched=[HOLDS]))
    clean_up(og, keep=2)
    assert ids(og, og.snapshot_at_version(2), HOLDS) == ["a"]
    report = clean_up(og, keep=1)
    (row,) = [row for row in report.tables if row.location == location]
    assert row.table_key is None
    assert row.files_removed > 0
    assert not list((tmp_path / location / "data").glob("*"))
    assert ids(og, og.snapshot()) == ["a"]


def test_a_branch_of_a_deleted_branch(og: Omnigraph) -> None:
    og.branch_create("one")
    made = replace_parts(og, ["a"], "one")
    replace_parts(og, ["b"], "one")
    og.branch_delete("one")
    og.branch_create("two", source=ReadTarget(snapshot_id=made.graph_commit_id))
    for _ in range(2):
        clean_up(og, keep=1)
        assert ids(og, og.snapshot("two")) == ["a"]
        assert made in og.list_commits("two")
    replace_parts(og, ["c"], "two")
    clean_up(og, keep=1)
    assert ids(og, og.snapshot("two")) == ["c"]


def test_runs_keep_their_branches(og: Omnigraph, tmp_path: Path) -> None:
    running, aborted = og.begin_run(), og.begin_run()
    for run in (running, aborted):
        replace_parts(og, [run.run_id], run.run_branch)
    og.abort_run(aborted.run_id)
    clean_up(og, keep=1)
    assert ids(og, og.snapshot(running.run_branch)) == [running.run_id]
    assert data_files(og, tmp_path) == 1
    assert og.get_run(aborted.run_id).status == "aborted"


def test_a_root_that_cannot_be_read_stops_the_sweep(og: Omnigraph, tmp_path: Path) -> None:
    for name in "ab":
        replace_parts(og, [name])
    og.branch_create("review")
    entry = og.snapshot("review").table(PART)
    (tmp_path / entry.location / f"_versions/d{entry.physical_version}.manifest").write_bytes(b"")
    before = {path for kind in ("nodes", "edges") for path in (tmp_path / kind).rglob("*")}
    with pytest.raises(StorageError, match=entry.location):
        clean_up(Omnigraph.open(og.uri), keep=1)
    assert all(path.exists() for path in before)


def test_many_cleanups_leave_nothing_behind(og: Omnigraph, tmp_path: Path) -> None:
    """Control objects too: a graph that is written and cleaned for years does not fill up."""
    for number in range(3):
        og.branch_create("review")
        replace_parts(og, [f"r{number}"], "review")
        og.tag_create("t", "review")
        og.tag_delete("t")
        with og.hold(og.snapshot("review"), purpose="x", lasting=HOUR):
            replace_parts(og, [f"m{number}"])
        og.branch_delete("review")
        og.abort_run(og.begin_run().run_id)
        clean_up(og, keep=1)
    clean_up(og, keep=1)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    control = {path for path in left if path.startswith(("_refs", "_preflight"))}
    assert control == set()
    assert len([path for path in left if path.startswith("__manifest/_versions")]) <= 2
    assert len([path for path in left if path.startswith("__manifest/data")]) == 1
    assert data_files(og, tmp_path) == 1
