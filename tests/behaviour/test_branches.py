"""Branches, commits, snapshots, single rows and tags."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.errors import (
    AlreadyExists,
    BranchInUse,
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    OmnigraphError,
    SnapshotNotFound,
    TableNotFound,
    TagNotFound,
)
from omnigraph_core.history.refs import BranchRef, ForkPoint, Tag
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import GraphCommit, TableEntry, TableOperation
from tests.behaviour.stock import BOLT, amounts, bin_, part, put
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from tests.support.ways import Place

NO_COMMIT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def test_a_branch_is_made_and_deleted(place: Place) -> None:
    graph = place.graph
    head = graph.snapshot()
    made = graph.branch_create("review/2026 ü")
    point = ForkPoint("main", "main", 2, head.commit.graph_commit_id)
    expected = BranchRef(
        "review/2026 ü", made.incarnation, made.manifest, point, made.created_at, None
    )
    assert made == expected
    assert place.both(lambda graph: graph.branch_get("review/2026 ü")) == made
    assert place.both(lambda graph: graph.branch_get("main")).forked_from is None
    assert place.both(lambda graph: graph.branch_list()) == ("main", "review/2026 ü")
    graph.branch_create("again", source="review/2026 ü")
    assert isinstance(place.raised(lambda graph: graph.branch_delete("review/2026 ü")), BranchInUse)
    graph.branch_delete("again")
    graph.branch_delete("review/2026 ü")
    assert place.both(lambda graph: graph.branch_list()) == ("main",)
    problem = place.raised(lambda graph: graph.branch_get("review/2026 ü"))
    assert isinstance(problem, BranchNotFound)


@NOT_ON_S3
def test_branches_of_everything_that_can_be_read(place: Place) -> None:
    graph = place.graph
    first = graph.list_commits()[1].graph_commit_id
    graph.tag_create("v1", ReadTarget(snapshot_id=first))
    put(graph, part("late"))
    sources = {
        "of-main": "main",
        "of-branch": ReadTarget(branch="main"),
        "of-commit": ReadTarget(snapshot_id=first),
        "of-tag": ReadTarget(tag="v1"),
    }
    for name, source in sources.items():
        made = graph.branch_create(name, source=source)
        assert made.forked_from is not None
        assert made == place.at_hand.branch_get(name)
    assert len(amounts(graph, "of-branch")) == 4
    assert amounts(graph, "of-tag") == amounts(graph, "of-commit") == {}
    listed = place.both(lambda graph: graph.branch_list())
    assert listed == ("main", "of-branch", "of-commit", "of-main", "of-tag")


@NOT_ON_S3
@pytest.mark.parametrize(
    "name", ["", " ", "a//b", "../x", "a\0b", "__run__x", "main", "x" * 400, NO_COMMIT, "tag:a"]
)
def test_names_that_cannot_be(shared: Place, name: str) -> None:
    found = [_outcome(graph, name) for graph in (shared.graph, shared.at_hand)]
    assert found[0] == found[1]


def _outcome(graph: object, name: str) -> object:
    try:
        made = graph.branch_create(name)  # type: ignore[attr-defined]
    except OmnigraphError as problem:
        return type(problem), problem.message, problem.hint
    graph.branch_delete(made.branch)  # type: ignore[attr-defined]
    return made.branch


def test_commits(place: Place) -> None:
    graph = place.graph
    graph.branch_create("side")
    made = [put(graph, part("late", stock=number), branch="side") for number in range(3)]
    commits = place.both(lambda graph: graph.list_commits("side"))
    assert [commit.graph_commit_id for commit in commits[:3]] == made[::-1]
    assert [commit.operation for commit in commits] == ["load"] * 4 + ["init"]
    assert [commit.actor_id for commit in commits] == [None] * 3 + ["tester"] * 2
    assert commits[0].parents == (made[1],)
    for limit in (0, 1, 2, 99):
        some = place.both(lambda graph, limit=limit: graph.list_commits("side", limit=limit))  # type: ignore[misc]
        assert told(some) == told(commits[:limit])
    assert len(place.both(lambda graph: graph.list_commits())) == 2
    found = place.both(lambda graph: graph.get_commit(made[0]))
    assert isinstance(found, GraphCommit)
    assert (found.manifest_branch, found.manifest_version) == ("side", 2)
    assert place.both(lambda graph: graph.head_commit_id_for_branch("side")) == made[2]
    problem = place.raised(lambda graph: graph.get_commit(NO_COMMIT))
    assert isinstance(problem, CommitNotFound)
    place.raised(lambda graph: graph.list_commits("none"))
    place.raised(lambda graph: graph.list_commits(limit=-1))
    place.raised(lambda graph: graph.head_commit_id_for_branch("none"))


def test_a_snapshot_tells_its_tables(shared: Place) -> None:
    snapshot = shared.both(lambda graph: graph.snapshot())
    assert (snapshot.branch, snapshot.manifest_version) == ("main", 2)
    assert list(snapshot.tables) == ["edge:Holds", "node:Bin", "node:Part"]
    entry = snapshot.table("node:Part")
    expected = TableEntry(
        "node:Part", entry.location, 2, entry.physical_version, None, 3, 1, TableOperation.APPEND
    )
    assert entry == expected
    assert snapshot.schema == shared.at_hand.schema_show()
    with pytest.raises(TableNotFound) as caught:
        snapshot.table("node:Prt")
    with pytest.raises(TableNotFound) as expected_error:
        shared.at_hand.snapshot().table("node:Prt")
    assert str(caught.value) == str(expected_error.value)


def test_snapshots_of_any_time(shared: Place) -> None:
    first, second = shared.at_hand.list_commits()[::-1]
    at_first = dt.datetime.fromtimestamp((second.created_at - 1) / 1e6, dt.UTC)
    for call in (
        lambda graph: graph.snapshot_at_version(1),
        lambda graph: graph.snapshot_of(ReadTarget(snapshot_id=first.graph_commit_id)),
        lambda graph: graph.snapshot_at_time(at_first),
        lambda graph: graph.snapshot_at_time(at_first.replace(tzinfo=None)),
        lambda graph: graph.snapshot_at_time(
            at_first.astimezone(dt.timezone(dt.timedelta(hours=-7)))
        ),
    ):
        assert shared.both(call).commit.graph_commit_id == first.graph_commit_id
    now = dt.datetime.now(dt.UTC)
    assert shared.both(lambda graph: graph.snapshot_at_time(now)).manifest_version == 2
    for call in (
        lambda graph: graph.snapshot_at_version(3),
        lambda graph: graph.snapshot_at_version(0),
        lambda graph: graph.snapshot_at_time(dt.datetime(2001, 1, 1)),
        lambda graph: graph.snapshot_at_version(1, branch="none"),
        lambda graph: graph.snapshot_of(ReadTarget(tag="none")),
        lambda graph: graph.snapshot_of(ReadTarget(snapshot_id=NO_COMMIT)),
    ):
        problem = shared.raised(call)
        kinds = (SnapshotNotFound, BranchNotFound, TagNotFound, CommitNotFound)
        assert isinstance(problem, kinds)
    for at in (-1, 2**70):
        shared.raised(lambda graph, at=at: graph.snapshot_at_version(at))  # type: ignore[misc]


def test_single_rows(shared: Place) -> None:
    row = shared.both(lambda graph: graph.entity_at("node:Part", "bolt", version=2))
    assert row is not None
    names = ("sku", "stock", "serial", "ratio", "made", "seen", "tags", "visits")
    assert {name: row[name] for name in names} == {name: BOLT[name] for name in names}
    edge = shared.both(lambda graph: graph.entity_at("edge:Holds", "h1", version=2))
    assert edge == {
        "id": "h1", "src": "b1", "dst": "bolt", "count": 40, "since": "2026-02-01T00:00:00.250Z",
    }  # fmt: skip
    for table_key, id, version in (
        ("node:Part", "none", 2),
        ("node:Part", "bolt", 1),
        ("node:Prt", "bolt", 2),
        ("Part", "bolt", 2),
        ("node:Part", "", 2),
        ("", "bolt", 2),
    ):
        nothing = shared.both(
            lambda graph, key=table_key, id=id, version=version: graph.entity_at(  # type: ignore[misc]
                key, id, version=version
            )
        )
        assert nothing is None
    shared.raised(lambda graph: graph.entity_at("node:Part", "bolt", version=9))


def test_tags(place: Place) -> None:
    graph = place.graph
    first = graph.list_commits()[-1]
    made = graph.tag_create("release/1.0", ReadTarget(snapshot_id=first.graph_commit_id))
    expected = Tag("release/1.0", first.graph_commit_id, "main", "main", 1, made.created_at, None)
    assert made == expected
    graph.branch_create("side")
    commit = put(graph, bin_("b9"), branch="side")
    graph.tag_create("a tag", "side")
    graph.tag_create("copy", ReadTarget(tag="release/1.0"))
    listed = place.both(lambda graph: graph.tag_list())
    assert [tag.tag for tag in listed] == ["a tag", "copy", "release/1.0"]
    assert [tag.commit_id for tag in listed] == [commit, *[first.graph_commit_id] * 2]
    assert isinstance(place.raised(lambda graph: graph.tag_create("copy")), AlreadyExists)
    assert isinstance(place.raised(lambda graph: graph.tag_create("")), ConfigError)
    place.raised(lambda graph: graph.tag_create("x", "none"))
    graph.branch_delete("side")
    assert graph.snapshot_of(ReadTarget(tag="a tag")).commit.graph_commit_id == commit
    graph.tag_delete("a tag")
    assert isinstance(place.raised(lambda graph: graph.tag_delete("a tag")), TagNotFound)
    assert len(place.both(lambda graph: graph.tag_list())) == 2


@NOT_ON_S3
def test_many_tags_are_all_listed(place: Place) -> None:
    """Of a server, more than it tells at a time."""
    many = 120 if place.way.is_remote else 3
    for number in range(many):
        place.at_hand.tag_create(f"t{number:03}", "main")
    assert len(place.both(lambda graph: graph.tag_list())) == many


@NOT_ON_S3
def test_main_cannot_be_deleted(shared: Place) -> None:
    assert isinstance(shared.raised(lambda graph: graph.branch_delete("main")), ConfigError)
    assert isinstance(shared.raised(lambda graph: graph.branch_delete("none")), BranchNotFound)
    assert isinstance(shared.raised(lambda graph: graph.branch_create("main")), ConfigError)
    problem = shared.raised(lambda graph: graph.branch_create("x", source="none"))
    assert isinstance(problem, BranchNotFound)


def test_what_is_opened_says_where_it_is(shared: Place) -> None:
    assert shared.graph.uri in repr(shared.graph) or shared.graph.uri == shared.at_hand.uri
    with shared.graph as again:
        assert again is shared.graph
    assert len(amounts(shared.graph)) == 3, "closed, it may be used again"
