"""Cleanup: what goes, what stays, and that what stays is whole."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    ConfigError,
    PreconditionFailed,
    SnapshotNotFound,
)
from omnigraph_core.history import refs
from omnigraph_core.history.refs import CleanupIntent
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.objects import delete_all, list_objects
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append, stage_overwrite
from tests.support.ageing import GRACE, clean_up
from tests.support.damage import damages
from tests.support.graphs import (
    BIN,
    HOLDS,
    PART,
    append_pair,
    append_parts,
    content,
    ids,
    parts,
    publish,
)

if TYPE_CHECKING:
    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.manifest.image import GraphCommit

AN_HOUR = timedelta(hours=1)


def replace_parts(og: Omnigraph, ids: list[str], branch: str = "main") -> GraphCommit:
    """A commit after which nothing of the versions before is used any more."""
    snapshot = og.snapshot(branch)
    staged = stage_overwrite(og.table(snapshot, PART), parts(ids))
    assert staged is not None
    return publish(og, snapshot, {PART: staged}, TableOperation.OVERWRITE)


def files(og: Omnigraph, below: str) -> set[str]:
    return {item.path for item in list_objects(open_store(og.uri), below)}


def part_files(og: Omnigraph) -> set[str]:
    return files(og, og.snapshot().table(PART).location)


def versions(og: Omnigraph, branch: str = "main") -> list[int]:
    """Those that can be read in full."""
    found = []
    for version in range(1, og.snapshot(branch).manifest_version + 1):
        try:
            snapshot = og.snapshot_at_version(version, branch=branch)
        except SnapshotNotFound:
            continue
        content(og, snapshot)
        found.append(version)
    return found


def removed(report: CleanupReport, branch: str = "main") -> tuple[int, int]:
    (row,) = [row for row in report.branches if row.branch == branch]
    return row.old_versions_removed, row.versions_kept


def test_old_versions_and_their_files_go(og: Omnigraph) -> None:
    made = [replace_parts(og, [name]) for name in "abcd"]
    assert versions(og) == [1, 2, 3, 4, 5]
    before = part_files(og)
    report = clean_up(og, keep=2)
    assert versions(og) == [4, 5]
    assert removed(report) == (3, 2)
    gone = before - part_files(og)
    (table,) = [row for row in report.tables if row.table_key == PART]
    assert (table.old_versions_removed, table.files_removed) == (2, len(gone))
    assert table.bytes_removed > 0
    assert report.bytes_removed == sum(row.bytes_removed for row in report.tables)
    assert len([path for path in part_files(og) if "/data/" in path]) == 2
    with pytest.raises(SnapshotNotFound, match="no version 2 on main"):
        og.snapshot_at_version(2)
    with pytest.raises(SnapshotNotFound):
        og.snapshot_of(ReadTarget(snapshot_id=made[0].graph_commit_id))
    assert og.get_commit(made[0].graph_commit_id) == made[0], "the commit is still known"
    assert og.list_commits()[:-1] == tuple(reversed(made))
    replace_parts(og, ["e"])
    assert ids(Omnigraph.open(og.uri), og.snapshot()) == ["e"]


def test_a_preview_removes_nothing_and_tells_all(og: Omnigraph) -> None:
    for name in "abc":
        replace_parts(og, [name])
    og.branch_create("review")
    append_pair(og, ["x"], "review")
    og.branch_delete("review")
    everything = files(og, "")
    preview = clean_up(og, keep=1, is_preview=True)
    assert preview.is_preview
    assert everything <= files(og, "")
    done = clean_up(og, keep=1)
    assert not done.is_preview
    assert (done.branches, done.tables) == (preview.branches, preview.tables)
    assert done.bytes_removed > 0


def test_a_preview_tells_what_a_worn_graph_loses(og: Omnigraph) -> None:
    """Tags, claims, forks, merge bases and what was never published, all at once."""
    for name in "abc":
        replace_parts(og, [name])
        append_pair(og, [f"pair {name}"])
    og.tag_create("v1")
    og.branch_create("review")
    for name in "de":
        replace_parts(og, [name])
        replace_parts(og, [name], "review")
        og.optimize()
    assert stage_append(og.table(og.snapshot(), PART), parts(["lost"])) is not None
    with og.hold(og.snapshot_at_version(3), purpose="export", lasting=AN_HOUR):
        for branches in (["review"], ["main", "review"], None):
            preview = clean_up(og, keep=1, branches=branches, is_preview=True)
            done = clean_up(og, keep=1, branches=branches)
            assert (done.branches, done.tables) == (preview.branches, preview.tables)
            assert done.to_json() == {**preview.to_json(), "is_preview": False}
        again = clean_up(og, keep=1)
    assert (again.old_versions_removed, again.bytes_removed) == (0, 0)
    assert damages(og) == []


def test_versions_of_chosen_branches_only(og: Omnigraph) -> None:
    og.branch_create("review")
    og.branch_create("other")
    for name in "abc":
        for branch in ("main", "review", "other"):
            replace_parts(og, [f"{branch} {name}"], branch)
    og.branch_delete("other")
    report = clean_up(og, keep=1, branches=[" review "])
    assert removed(report, "review") == (2, 2), "its head, and where it was forked"
    assert removed(report, "other") == (0, 4)
    assert versions(og) == [1, 2, 3, 4]
    assert versions(og, "review") == [1, 4]
    report = clean_up(og, keep=1, branches=["main"])
    assert removed(report) == (2, 2)
    assert removed(report, "other") == (0, 4)
    assert removed(clean_up(og, keep=1, branches=["other"]), "other") == (4, 0)
    for name in ("nope", "other"):
        with pytest.raises(BranchNotFound, match=f"no branch `{name}`"):
            clean_up(og, keep=1, branches=[name])
    assert damages(og) == []


def test_what_an_earlier_cleanup_has_left_of_a_branch_is_not_in_the_way(og: Omnigraph) -> None:
    og.branch_create("gone")
    replace_parts(og, ["a"], "gone")
    manifest = og.branch_get("gone").manifest
    og.branch_delete("gone")
    data = [path for path in files(og, manifest) if "/data/" in path]
    delete_all(open_store(og.uri), data)
    assert removed(clean_up(og, keep=1, branches=["main"]), "gone") == (0, 0)
    assert removed(clean_up(og, keep=1), "gone") == (2, 0)
    assert files(og, manifest) == set()


def test_cleaning_twice_is_cleaning_once(og: Omnigraph) -> None:
    for name in "abc":
        replace_parts(og, [name])
    clean_up(og, keep=1)
    settled = files(og, "")
    again = clean_up(og, keep=1)
    assert files(og, "") == settled
    assert again.bytes_removed == sum(row.files_removed for row in again.tables) == 0
    assert removed(again) == (0, 1)
    assert refs.list_cleanups(open_store(og.uri)) == ()


def test_age_and_number(og: Omnigraph) -> None:
    for name in "abc":
        replace_parts(og, [name])
    assert removed(clean_up(og, older_than=AN_HOUR)) == (0, 4)
    assert removed(clean_up(og, keep=1, older_than=AN_HOUR)) == (0, 4)
    assert removed(clean_up(og, keep=9, older_than=timedelta(0))) == (0, 4)
    assert removed(clean_up(og, keep=3, older_than=timedelta(0))) == (1, 3)
    assert removed(clean_up(og, older_than=timedelta(0))) == (2, 1)
    assert versions(og) == [4]


def test_what_is_young_stays(og: Omnigraph) -> None:
    for name in "abc":
        replace_parts(og, [name])
    before = files(og, "")
    report = clean_up(og, keep=1, grace=timedelta(minutes=5), is_aged=False)
    assert report.bytes_removed == 0
    assert before <= files(og, "")
    assert versions(og) == [1, 2, 3, 4]


def test_wrong_arguments_change_nothing(og: Omnigraph) -> None:
    replace_parts(og, ["a"])
    before = files(og, "")
    for arguments in ({}, {"keep": 0}, {"older_than": -GRACE}, {"keep": 1, "grace": GRACE}):
        with pytest.raises(ConfigError, match="cleanup"):
            og.cleanup(**arguments)
    assert files(og, "") == before


def test_tags_keep_versions(og: Omnigraph) -> None:
    made = replace_parts(og, ["a"])
    og.tag_create("v1")
    for name in "bc":
        replace_parts(og, [name])
    clean_up(og, keep=1)
    assert versions(og) == [2, 4]
    assert ids(og, og.snapshot_of(ReadTarget(tag="v1"))) == ["a"]
    assert ids(og, og.snapshot_of(ReadTarget(snapshot_id=made.graph_commit_id))) == ["a"]
    og.tag_delete("v1")
    clean_up(og, keep=1)
    assert versions(og) == [4]


def test_held_snapshots_are_kept(og: Omnigraph) -> None:
    replace_parts(og, ["a"])
    held = og.snapshot()
    for name in "bc":
        replace_parts(og, [name])
    with og.hold(held, purpose="export", lasting=AN_HOUR):
        clean_up(og, keep=1)
        assert versions(og) == [2, 4]
        assert ids(og, held) == ["a"]
    clean_up(og, keep=1)
    assert versions(og) == [4]
    with pytest.raises(SnapshotNotFound), og.hold(held, purpose="late", lasting=AN_HOUR):
        pass
    assert refs.list_leases(open_store(og.uri)) == ()


def test_a_claim_that_has_expired_protects_nothing(og: Omnigraph) -> None:
    held = og.snapshot()
    replace_parts(og, ["a"])
    with og.hold(held, purpose="slow", lasting=timedelta(milliseconds=1)):
        clean_up(og, keep=1)
    assert versions(og) == [2]


def test_nothing_is_promised_that_a_running_cleanup_takes(og: Omnigraph) -> None:
    replace_parts(og, ["a"])
    old = og.snapshot_at_version(1)
    far = 2**62
    intent = CleanupIntent("running", 0, far, {"main": (1,)})
    refs.put_cleanup(open_store(og.uri), intent)
    with pytest.raises(PreconditionFailed, match="being cleaned up"):
        og.tag_create("v0", ReadTarget(snapshot_id=old.commit.graph_commit_id))
    with pytest.raises(PreconditionFailed), og.hold(old, purpose="x", lasting=AN_HOUR):
        pass
    with pytest.raises(PreconditionFailed):
        og.branch_create("x", source=ReadTarget(snapshot_id=old.commit.graph_commit_id))
    assert (og.tag_list(), og.branch_list()) == ((), ("main",))
    assert og.tag_create("v1").manifest_version == 2, "the others can be"
    refs.delete_cleanup(open_store(og.uri), intent.id)
    assert og.tag_create("v0", ReadTarget(snapshot_id=old.commit.graph_commit_id))


def test_the_announcement_of_a_killed_cleanup_goes_when_it_is_old(og: Omnigraph) -> None:
    replace_parts(og, ["a"])
    refs.put_cleanup(open_store(og.uri), CleanupIntent("killed", 0, 1, {"main": (1,)}))
    clean_up(og, keep=9)
    assert refs.list_cleanups(open_store(og.uri)) == ()
    old = og.snapshot_at_version(1)
    assert og.tag_create("v0", ReadTarget(snapshot_id=old.commit.graph_commit_id))


def test_heads_and_fork_points_of_branches_are_kept(og: Omnigraph) -> None:
    replace_parts(og, ["a"])
    og.branch_create("review")
    for name in "bc":
        replace_parts(og, [name])
        replace_parts(og, [f"r{name}"], "review")
    clean_up(og, keep=1)
    assert versions(og) == [2, 4], "the fork point is what a merge compares with"
    assert versions(og, "review") == [1, 3]
    assert ids(og, og.snapshot("review")) == ["rc"]
    assert ids(og, og.snapshot_at_version(1, branch="review")) == ["a"]
    og.branch_delete("review")
    clean_up(og, keep=1)
    assert versions(og) == [4]


def test_a_branch_that_never_wrote_keeps_what_it_reads(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    og.branch_create("lazy")
    expected = content(og, og.snapshot("lazy"))
    replace_parts(og, ["b"])
    og.optimize()
    clean_up(og, keep=1)
    assert content(og, og.snapshot("lazy")) == expected
    append_pair(og, ["c"], "lazy")
    assert ids(og, og.snapshot("lazy")) == ["a", "c"]


def test_a_deleted_branch_goes_after_the_grace_period(og: Omnigraph) -> None:
    og.branch_create("review")
    made = replace_parts(og, ["only here"], "review")
    ref = og.branch_get("review")
    og.branch_delete("review")
    report = clean_up(og, keep=1, grace=timedelta(minutes=5), is_aged=False)
    assert removed(report, "review") == (0, 2)
    found = og.snapshot_of(ReadTarget(snapshot_id=made.graph_commit_id))
    assert ids(og, found) == ["only here"]
    report = clean_up(og, keep=9)
    assert removed(report, "review") == (2, 0)
    assert files(og, ref.manifest) == files(og, "_refs/deleted") == set()
    assert not [path for path in part_files(og) if "/data/" in path]
    with pytest.raises(SnapshotNotFound):
        og.snapshot_of(ReadTarget(snapshot_id=made.graph_commit_id))
    assert og.get_commit(made.graph_commit_id) == made
    assert [row.branch for row in clean_up(og, keep=9).branches] == ["main"]


@pytest.mark.parametrize("tagged", [2, 3])
def test_a_tag_on_a_deleted_branch_keeps_that_version(og: Omnigraph, tagged: int) -> None:
    og.branch_create("review")
    made = {2: replace_parts(og, ["2"], "review"), 3: replace_parts(og, ["3"], "review")}
    og.tag_create("kept", ReadTarget(snapshot_id=made[tagged].graph_commit_id))
    og.branch_delete("review")
    for _ in range(2):
        clean_up(og, keep=1)
        assert ids(og, og.snapshot_of(ReadTarget(tag="kept"))) == [str(tagged)]
        for number, commit in made.items():  # whole or gone
            with contextlib.suppress(SnapshotNotFound):
                found = og.snapshot_of(ReadTarget(snapshot_id=commit.graph_commit_id))
                assert ids(og, found) == [str(number)]
        og.branch_create("again", source=ReadTarget(tag="kept"))
        assert ids(og, og.snapshot("again")) == [str(tagged)]
        og.branch_delete("again")
    og.tag_delete("kept")
    clean_up(og, keep=1)
    assert not [path for path in part_files(og) if "/data/" in path]


def test_what_was_never_published_goes(og: Omnigraph) -> None:
    append_parts(og, ["a"])
    before = part_files(og)
    assert stage_append(og.table(og.snapshot(), PART), parts(["lost"])) is not None
    assert part_files(og) > before
    clean_up(og, keep=9)
    assert {path for path in part_files(og) if "/_transactions/" not in path} == {
        path for path in before if "/_transactions/" not in path
    }
    assert versions(og) == [1, 2]


def test_catalogs_of_branches_that_never_came_to_be_go(og: Omnigraph) -> None:
    ref = og.branch_create("review")
    refs.delete_branch_ref(open_store(og.uri), "review")  # as if its maker had been killed
    assert files(og, ref.manifest)
    clean_up(og, keep=1, grace=timedelta(minutes=5), is_aged=False)
    assert files(og, ref.manifest)
    clean_up(og, keep=1)
    assert files(og, ref.manifest) == set()


def test_indexes_in_use_are_kept_and_others_go(og: Omnigraph) -> None:
    for number in range(3):
        append_pair(og, [f"a{number}"])
        og.optimize()
    expected = content(og, og.snapshot())
    clean_up(og, keep=1)
    assert content(og, og.snapshot()) == expected
    location = og.snapshot().table(PART).location
    table = og.table(og.snapshot(), PART)
    in_use = {
        segment.uuid for index in table.dataset.describe_indices() for segment in index.segments
    }
    left = {path.split("/")[3] for path in files(og, f"{location}/_indices")}
    assert left == in_use
    assert og.entity_at(PART, "a1", version=og.snapshot().manifest_version) is not None
    append_pair(og, ["b"])
    og.optimize()
    assert ids(og, og.snapshot(), HOLDS) == ["a0", "a1", "a2", "b"]


def test_writing_goes_on_from_every_branch_after_cleanup(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    og.branch_create("review")
    append_pair(og, ["b"], "review")
    other = Omnigraph.open(og.uri)
    other.snapshot("review")
    clean_up(og, keep=1)
    for handle in (og, other):
        for branch in ("main", "review"):
            append_pair(handle, [f"{branch}-{id(handle)}"], branch)
    assert len(ids(og, og.snapshot())) == 3
    assert len(ids(og, og.snapshot("review"))) == 4
    assert ids(og, og.snapshot(), BIN) == []
