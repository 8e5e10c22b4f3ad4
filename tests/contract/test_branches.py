"""Branches: where they come from, what they are called, how they go."""

from __future__ import annotations

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    AlreadyExists,
    BranchInUse,
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    ConflictError,
    PreconditionFailed,
    TagNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.staged import stage_append
from tests.support.graphs import (
    PART,
    Meanwhile,
    append_pair,
    append_parts,
    content,
    ids,
    parts,
    publish,
    update,
)

WRONG_NAMES = {
    "": "must not be empty",
    "  ": "must not be empty",
    "main": "`main` is reserved",
    " main ": "`main` is reserved",
    "__run__1": "reserved for internal use",
    "/__run__1": "reserved for internal use",
    "__schema_apply_lock__": "reserved for internal use",
    "/a": "starts with a slash",
    "a/": "ends with a slash",
    "a//b": "two slashes in a row",
    ".": "`.` or `..`",
    "a/../b": "`.` or `..`",
    "a/.": "`.` or `..`",
    "a\nb": "control characters",
    "a\x1b[2J": "control characters",
    "a\u2028b": "control characters",
    "a" * 241: "too long",
    "ü" * 41: "too long",
    "\ud800": "not Unicode",
}
RIGHT_NAMES = ["a", "a/b", "a%2Fb", "a b", "A", "ü/é", "#1", "a?b", "x" * 240, ".hidden", "%", "'"]


def test_a_branch_begins_as_its_source(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    ref = og.branch_create("review", actor="ann")
    assert og.branch_get("review") == ref
    assert (ref.branch, ref.actor) == ("review", "ann")
    assert ref.forked_from is not None
    assert ref.forked_from.commit_id == og.head_commit_id_for_branch()
    assert ref.forked_from.manifest_version == 2
    snapshot = og.snapshot("review")
    assert (snapshot.branch, snapshot.manifest_version) == ("review", 1)
    assert snapshot.incarnation == ref.incarnation
    assert og.head_commit_id_for_branch("review") == og.head_commit_id_for_branch()
    assert content(og, snapshot) == content(og, og.snapshot())


def test_branches_do_not_see_each_other(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    og.branch_create("left")
    og.branch_create("right")
    append_pair(og, ["l"], "left")
    append_pair(og, ["r"], "right")
    append_pair(og, ["m"])
    assert ids(og, og.snapshot()) == ["a", "m"]
    assert ids(og, og.snapshot("left")) == ["a", "l"]
    assert ids(og, og.snapshot("right")) == ["a", "r"]
    entry = og.snapshot("left").table(PART)
    assert (entry.branch, og.snapshot().table(PART).branch) == ("left", None)


def test_from_a_branch_a_commit_and_a_tag(og: Omnigraph) -> None:
    first = append_pair(og, ["a"])
    og.tag_create("v1")
    append_pair(og, ["b"])
    og.branch_create("one")
    on_one = append_pair(og, ["c"], "one")
    og.branch_create("two", source="one")
    append_pair(og, ["d"], "one")
    og.branch_create("of-commit", source=ReadTarget(snapshot_id=first.graph_commit_id))
    og.branch_create("of-other", source=ReadTarget(snapshot_id=on_one.graph_commit_id))
    og.branch_create("of-tag", source=ReadTarget(tag="v1"))
    found = {name: ids(og, og.snapshot(name)) for name in og.branch_list()}
    assert found == {
        "main": ["a", "b"],
        "of-commit": ["a"],
        "of-other": ["a", "b", "c"],
        "of-tag": ["a"],
        "one": ["a", "b", "c", "d"],
        "two": ["a", "b", "c"],
    }
    fork = og.branch_get("of-other").forked_from
    assert fork is not None
    assert (fork.branch, fork.commit_id) == ("one", on_one.graph_commit_id)
    append_pair(og, ["e"], "of-commit")
    assert ids(og, og.snapshot("of-commit")) == ["a", "e"]


def test_names_that_look_alike_are_different_branches(og: Omnigraph) -> None:
    for name in RIGHT_NAMES:
        assert og.branch_create(f"  {name} ").branch == name
    assert og.branch_list() == ("main", *sorted(RIGHT_NAMES))
    for name in ("a", "a/b", "a%2Fb", "A"):
        append_parts(og, [name], name)
    for name in ("a", "a/b", "a%2Fb", "A"):
        assert ids(og, og.snapshot(name)) == [name]
    og.branch_delete("a")
    assert ids(og, og.snapshot("a/b")) == ["a/b"]
    assert set(RIGHT_NAMES) - set(og.branch_list()) == {"a"}


def test_wrong_names(og: Omnigraph) -> None:
    for name, told in WRONG_NAMES.items():
        with pytest.raises(ConfigError) as caught:
            og.branch_create(name)
        assert told in caught.value.message, name
    assert og.branch_list() == ("main",)


def test_a_name_is_taken_once(og: Omnigraph) -> None:
    og.branch_create("review")
    append_pair(og, ["a"], "review")
    with pytest.raises(AlreadyExists, match="`review`"):
        og.branch_create("review")
    assert ids(og, og.snapshot("review")) == ["a"]


def test_unknown_sources(og: Omnigraph) -> None:
    og.branch_create("model")
    with pytest.raises(BranchNotFound, match="no branch `modle`") as caught:
        og.branch_create("x", source="modle")
    assert "model" in str(caught.value.hint)
    with pytest.raises(CommitNotFound):
        og.branch_create("x", source=ReadTarget(snapshot_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    with pytest.raises(TagNotFound):
        og.branch_create("x", source=ReadTarget(tag="v1"))
    assert og.branch_list() == ("main", "model")


def test_what_cannot_be_deleted(og: Omnigraph) -> None:
    og.branch_create("one")
    og.branch_create("two", source="one")
    run = og.begin_run("two")
    with pytest.raises(ConfigError, match="cannot delete branch 'main'"):
        og.branch_delete("main")
    with pytest.raises(BranchNotFound, match="no branch `nope`"):
        og.branch_delete("nope")
    with pytest.raises(BranchInUse, match="`one` is the source of `two`"):
        og.branch_delete("one")
    with pytest.raises(BranchInUse, match=run.run_id):
        og.branch_delete("two")
    with pytest.raises(ConfigError, match="reserved for internal use"):
        og.branch_delete(run.run_branch)
    assert og.branch_list() == ("main", "one", "two")
    og.abort_run(run.run_id)
    og.branch_delete("two")
    og.branch_delete(" one ")
    assert og.branch_list() == ("main",)


def test_commits_of_a_deleted_branch_stay_readable(og: Omnigraph) -> None:
    og.branch_create("review")
    made = [append_pair(og, [name], "review") for name in "ab"]
    og.branch_delete("review")
    with pytest.raises(BranchNotFound):
        og.snapshot("review")
    for handle in (og, Omnigraph.open(og.uri)):
        for commit in made:
            assert handle.get_commit(commit.graph_commit_id) == commit
        found = handle.snapshot_of(ReadTarget(snapshot_id=made[0].graph_commit_id))
        assert ids(handle, found) == ["a"]
    og.branch_create("again", source=ReadTarget(snapshot_id=made[1].graph_commit_id))
    assert ids(og, og.snapshot("again")) == ["a", "b"]


def test_a_branch_made_again_is_another_one(og: Omnigraph) -> None:
    old = og.branch_create("review")
    append_pair(og, ["old"], "review")
    stale = og.snapshot("review")
    staged = stage_append(og.table(stale, PART), parts(["stale"]))
    assert staged is not None
    other = Omnigraph.open(og.uri)
    other.branch_delete("review")
    with pytest.raises(BranchNotFound):
        publish(og, stale, {PART: staged}, TableOperation.APPEND)
    new = other.branch_create("review")
    assert new.incarnation != old.incarnation
    with pytest.raises((BranchNotFound, ConflictError)):
        publish(og, stale, {PART: staged}, TableOperation.APPEND)
    with pytest.raises(PreconditionFailed) as caught:
        publish(other, stale, {PART: staged}, TableOperation.APPEND)
    assert caught.value.details() == {
        "member": "branch",
        "expected": old.incarnation,
        "actual": new.incarnation,
    }
    assert ids(og, og.snapshot("review")) == ids(other, other.snapshot("review")) == []
    append_pair(og, ["new"], "review")
    assert ids(other, other.snapshot("review")) == ["new"]


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_branch_that_goes_during_a_commit(og: Omnigraph, is_made_again: bool) -> None:
    old = og.branch_create("review")
    other = Omnigraph.open(og.uri)

    def replace() -> None:
        if other.branch_get("review").incarnation == old.incarnation:
            other.branch_delete("review")
            other.branch_create("review")

    def delete() -> None:
        if "review" in other.branch_list():
            other.branch_delete("review")

    snapshot = og.snapshot("review")
    staged = stage_append(og.table(snapshot, PART), parts(["x"]))
    assert staged is not None
    change = update(PART, staged, TableOperation.APPEND)
    wanted = requirements_of(snapshot, touched=[PART])
    with pytest.raises(BranchNotFound, match="deleted meanwhile"):
        og.commit(
            [change], [*wanted, Meanwhile(replace if is_made_again else delete)], branch="review"
        )
    if is_made_again:
        assert ids(og, og.snapshot("review")) == []


def test_internal_branches_are_hidden(og: Omnigraph) -> None:
    run = og.begin_run()
    assert og.branch_list() == ("main",)
    assert og.snapshot(run.run_branch).manifest_version == 1
    with pytest.raises(BranchNotFound) as caught:
        og.snapshot(run.run_branch[:-1])
    assert caught.value.hint is None, "what is hidden is not suggested either"
