"""Names and claims that keep versions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import AlreadyExists, BranchNotFound, ConfigError, TagNotFound
from omnigraph_core.history import refs
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.storage.session import open_store
from tests.support.graphs import append_pair, ids

AN_HOUR = timedelta(hours=1)


def test_a_tag_names_one_commit(og: Omnigraph) -> None:
    made = append_pair(og, ["a"])
    tag = og.tag_create("v1", actor="ann")
    append_pair(og, ["b"])
    assert (tag.tag, tag.commit_id, tag.actor) == ("v1", made.graph_commit_id, "ann")
    assert (tag.branch, tag.manifest_version) == ("main", 2)
    for handle in (og, Omnigraph.open(og.uri)):
        assert handle.tag_list() == (tag,)
        assert ids(handle, handle.snapshot_of(ReadTarget(tag="v1"))) == ["a"]


def test_anything_can_be_tagged(og: Omnigraph) -> None:
    made = append_pair(og, ["a"])
    og.branch_create("review")
    append_pair(og, ["b"], "review")
    og.tag_create("b/head", "review")
    og.tag_create("b/same", ReadTarget(tag="b/head"))
    og.tag_create("a", ReadTarget(snapshot_id=made.graph_commit_id))
    assert [tag.tag for tag in og.tag_list()] == ["a", "b/head", "b/same"]
    found = [ids(og, og.snapshot_of(ReadTarget(tag=tag.tag))) for tag in og.tag_list()]
    assert found == [["a"], ["a", "b"], ["a", "b"]]


def test_a_tag_outlives_its_branch(og: Omnigraph) -> None:
    og.branch_create("review")
    append_pair(og, ["a"], "review")
    og.tag_create("done", "review")
    og.branch_delete("review")
    assert ids(og, og.snapshot_of(ReadTarget(tag="done"))) == ["a"]
    og.branch_create("review", source=ReadTarget(tag="done"))
    append_pair(og, ["b"], "review")
    assert ids(og, og.snapshot_of(ReadTarget(tag="done"))) == ["a"]


def test_a_name_is_taken_once(og: Omnigraph) -> None:
    og.branch_create("v1")
    first = og.tag_create("v1")
    append_pair(og, ["a"])
    with pytest.raises(AlreadyExists, match="`v1`"):
        og.tag_create(" v1 ")
    assert og.tag_list() == (first,)


def test_deleting_a_tag(og: Omnigraph) -> None:
    og.tag_create("search")
    og.tag_create("search/a")
    with pytest.raises(TagNotFound, match="no tag `serach`") as caught:
        og.tag_delete("serach")
    assert "`search`" in str(caught.value.hint)
    og.tag_delete("search")
    assert [tag.tag for tag in og.tag_list()] == ["search/a"]
    with pytest.raises(TagNotFound):
        og.tag_delete("search")
    append_pair(og, ["a"])
    assert og.tag_create("search").manifest_version == 2


@pytest.mark.parametrize("name", ["", "main", "__run__1", "a//b", "..", "a\tb", "x" * 241])
def test_wrong_names(og: Omnigraph, name: str) -> None:
    with pytest.raises(ConfigError):
        og.tag_create(name)
    assert og.tag_list() == ()


def test_unknown_targets(og: Omnigraph) -> None:
    with pytest.raises(BranchNotFound):
        og.tag_create("v1", "nope")
    with pytest.raises(TagNotFound):
        og.tag_create("v1", ReadTarget(tag="v0"))
    assert og.tag_list() == ()


def test_a_held_snapshot(og: Omnigraph) -> None:
    append_pair(og, ["a"])
    snapshot = og.snapshot()
    store = open_store(og.uri)
    with og.hold(snapshot, purpose="export", lasting=AN_HOUR) as state:
        assert state.snapshot == snapshot
        (lease,) = refs.list_leases(store)
        assert (lease.purpose, lease.manifest_version) == ("export", 2)
        assert lease.incarnation == snapshot.incarnation
    assert refs.list_leases(store) == ()


def test_a_claim_ends_with_its_block(og: Omnigraph) -> None:
    with (
        pytest.raises(RuntimeError, match="mine"),
        og.hold(og.snapshot(), purpose="x", lasting=AN_HOUR),
    ):
        raise RuntimeError("mine")
    assert refs.list_leases(open_store(og.uri)) == ()


def test_several_claims_on_one_snapshot(og: Omnigraph) -> None:
    snapshot = og.snapshot()
    with og.hold(snapshot, purpose="one", lasting=AN_HOUR):
        with og.hold(snapshot, purpose="two", lasting=AN_HOUR):
            assert len(refs.list_leases(open_store(og.uri))) == 2
        assert [lease.purpose for lease in refs.list_leases(open_store(og.uri))] == ["one"]
