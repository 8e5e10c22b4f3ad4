"""What differs between states, and the feed of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff.model import (
    ChangeFilter,
    ChangeOp,
    ChangePage,
    ChangeSet,
    ChangeStats,
    Endpoints,
    EntityChange,
    TableChanges,
)
from omnigraph_core.errors import (
    BranchNotFound,
    ChangeFeedGap,
    CommitNotFound,
    ConfigError,
    CursorRejected,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.query.typed import EntityKind
from tests.behaviour.stock import BOLT, SCHEMA, bin_, holds, part, put
from tests.support.ageing import clean_up
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from tests.support.ways import Place, Way, Ways

NO_COMMIT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
OF_PARTS = ChangeFilter(type_names=frozenset({"Part"}))


@pytest.fixture(scope="module")
def edited(shared: Place, way: Way, ways: Ways) -> Place:
    """With a branch `edited`: an edge and a bin more, a bolt changed, a part less."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ways.settings(way).items():
            patch.setenv(name, value)
        at_hand = shared.at_hand
        at_hand.branch_create("edited")
        put(at_hand, part("bolt", stock=1, tags=["x"]), bin_("b3"), branch="edited")
        put(at_hand, holds("b3", "bolt", id="h3"), branch="edited")
        at_hand.mutate('query q() { delete Part where sku = "nut" }', branch="edited")
        at_hand.tag_create("v1")
    return shared


def test_a_diff_in_full(edited: Place) -> None:
    found = edited.both(lambda graph: graph.diff_between("main", "edited"))
    version = edited.at_hand.snapshot("edited").manifest_version
    assert [(change.type_name, change.id, change.op) for change in found.changes] == [
        ("Bin", "b3", ChangeOp.INSERT),
        ("Part", "bolt", ChangeOp.UPDATE),
        ("Part", "nut", ChangeOp.DELETE),
        ("Holds", "h2", ChangeOp.DELETE),
        ("Holds", "h3", ChangeOp.INSERT),
    ]
    assert found.changes[0] == EntityChange(
        "node:Bin", EntityKind.NODE, "Bin", "b3", ChangeOp.INSERT, version, None, None,
        {"id": "b3", "code": "b3", "label": None},
    )  # fmt: skip
    bolt = found.changes[1]
    assert set(bolt.properties) >= {"stock", "tags"}
    assert bolt.before is not None
    assert bolt.after is not None
    assert (bolt.before["stock"], bolt.after["stock"]) == (BOLT["stock"], 1)
    assert (bolt.before["serial"], bolt.before["visits"]) == (BOLT["serial"], BOLT["visits"])
    assert found.changes[4].endpoints == Endpoints("b3", "bolt")
    tables = (
        TableChanges("edge:Holds", 1, 0, 1), TableChanges("node:Bin", 1, 0, 0),
        TableChanges("node:Part", 0, 1, 1),
    )  # fmt: skip
    assert found.stats == ChangeStats(2, 1, 2, ("Bin", "Holds", "Part"), tables)
    assert (found.branch, found.is_complete) == (None, True)


@NOT_ON_S3
def test_filters_values_and_limits(edited: Place) -> None:
    for filter in (
        OF_PARTS,
        ChangeFilter(kinds=frozenset({EntityKind.EDGE})),
        ChangeFilter(ops=frozenset({ChangeOp.DELETE, ChangeOp.UPDATE})),
        ChangeFilter(
            frozenset({EntityKind.NODE}), frozenset({"Part", "Holds"}), frozenset({ChangeOp.UPDATE})
        ),
    ):
        found = edited.both(lambda graph, f=filter: graph.diff_between("main", "edited", f))  # type: ignore[misc]
        assert 0 < len(found.changes) < 5
        assert found.stats.total == len(found.changes)
    for limit in (0, 2, 5):
        found = edited.both(
            lambda graph, limit=limit: graph.diff_between(  # type: ignore[misc]
                "main", "edited", has_values=False, limit=limit
            )
        )
        assert (len(found.changes), found.is_complete) == (limit, limit == 5)
        assert found.stats.total == 5
        assert all(change.before is None is change.after for change in found.changes)
    problem = edited.raised(
        lambda graph: graph.diff_between(
            "main", "edited", ChangeFilter(type_names=frozenset({"Prt"}))
        )
    )
    assert isinstance(problem, ConfigError)
    edited.raised(lambda graph: graph.diff_between("main", "edited", limit=-1))


def test_diffs_of_whatever_can_be_read(edited: Place) -> None:
    head = edited.at_hand.head_commit_id_for_branch("edited")
    whole = edited.graph.diff_between("main", "edited")
    for source, target in (
        (ReadTarget(tag="v1"), ReadTarget(branch="edited")),
        ("main", ReadTarget(snapshot_id=head)),
    ):
        found = edited.both(
            lambda graph, pair=(source, target): graph.diff_between(*pair)  # type: ignore[misc]
        )
        assert found.changes == whole.changes
    nothing = edited.both(lambda graph: graph.diff_between("main", "main"))
    assert (nothing.changes, nothing.stats.total, nothing.branch) == ((), 0, "main")
    assert isinstance(nothing, ChangeSet)
    back = edited.both(lambda graph: graph.diff_between("edited", "main"))
    assert back.stats.inserts == whole.stats.deletes
    for call in (
        lambda graph: graph.diff_between("main", "none"),
        lambda graph: graph.diff_between(ReadTarget(tag="none"), "main"),
        lambda graph: graph.diff_commits(NO_COMMIT, head),
        lambda graph: graph.iter_diff("main", "none"),
        lambda graph: graph.open_diff("none", "main"),
        lambda graph: graph.commit_changes(NO_COMMIT),
        lambda graph: graph.open_commit_changes(NO_COMMIT),
    ):
        edited.raised(call)


def test_changes_one_by_one(edited: Place) -> None:
    whole = edited.graph.diff_between("main", "edited")
    assert tuple(edited.graph.iter_diff("main", "edited")) == whole.changes
    bare = edited.both(lambda graph: list(graph.iter_diff("main", "edited", has_values=False)))
    assert [change.before for change in bare] == [None] * 5
    some = edited.both(lambda graph: list(graph.iter_diff("main", "edited", OF_PARTS)))
    assert [change.id for change in some] == ["bolt", "nut"]
    first = edited.graph.iter_diff("main", "edited")
    assert next(first) == whole.changes[0]
    first.close()  # type: ignore[attr-defined]
    opened = edited.graph.open_diff("main", "edited")
    summary = edited.both(lambda graph: graph.open_diff("main", "edited").summary)
    assert told(opened.summary) == told(summary)
    assert (summary.changes, summary.stats) == ((), whole.stats)
    assert tuple(opened.iter_changes()) == whole.changes
    assert len(list(opened.iter_changes(has_values=False, limit=3))) == 3
    assert list(opened.iter_changes(limit=0)) == []


def test_changes_of_commits(edited: Place) -> None:
    commits = edited.at_hand.list_commits("edited")
    newest, second = commits[0].graph_commit_id, commits[1].graph_commit_id
    found = edited.both(lambda graph: graph.commit_changes(newest))
    assert [change.id for change in found.changes] == ["nut", "h2"]
    assert (found.from_commit_id, found.to_commit_id) == (second, newest)
    genesis = commits[-1].graph_commit_id
    empty = edited.both(lambda graph: graph.commit_changes(genesis))
    assert (empty.from_version, empty.from_commit_id, empty.stats.total) == (0, None, 0)
    both = edited.both(lambda graph: graph.diff_commits(genesis, second, OF_PARTS, limit=1))
    assert (both.stats.inserts, len(both.changes)) == (3, 1)
    opened = edited.graph.open_commit_changes(newest)
    assert tuple(opened.iter_changes()) == found.changes
    limited = edited.both(
        lambda graph: graph.commit_changes(newest, OF_PARTS, has_values=False, limit=0)
    )
    assert (limited.changes, limited.is_complete) == ((), False)


@NOT_ON_S3
def test_a_diff_tells_how_schemas_differ(place: Place) -> None:
    place.graph.branch_create("side")
    place.graph.schema_apply(
        SCHEMA.replace("code: String @key", "code: String @key  room: String?"), branch="side"
    )
    found = place.both(lambda graph: graph.diff_between("main", "side"))
    assert len(found.stats.schema_steps) == 1


def test_the_feed(place: Place) -> None:
    graph = place.graph
    start = place.both(lambda graph: graph.cursor_at())
    now = place.both(lambda graph: graph.poll())
    assert now == ChangePage((), start)
    made = [put(graph, part("nut", stock=number)) for number in (1, 2)]
    made.append(put(graph, bin_("b7"), bin_("b8")))
    page = place.both(lambda graph: graph.poll(start))
    assert [block.commit.graph_commit_id for block in page.blocks] == made
    assert page.is_caught_up
    update = page.blocks[1].changes.changes[0]
    assert update.before is not None
    assert update.after is not None
    assert (update.before["stock"], update.after["stock"]) == (1, 2)
    first = place.both(lambda graph: graph.poll(start, most_commits=1))
    assert (len(first.blocks), first.is_caught_up) == (1, False)
    most = {"most_commits": 10**6, "most_changes": 10**9}
    assert place.both(lambda graph: graph.poll(start, **most)) == page
    rest = place.both(lambda graph: graph.poll(first.cursor, most_changes=1, has_values=False))
    assert [block.commit.graph_commit_id for block in rest.blocks] == made[1:2]
    end = place.both(lambda graph: graph.poll(page.cursor))
    assert (end.blocks, end.cursor) == ((), page.cursor)
    at_second = place.both(lambda graph: graph.cursor_at(made[1]))
    assert at_second == rest.cursor
    bins = ChangeFilter(type_names=frozenset({"Bin"}))
    filtered = place.both(lambda graph: graph.cursor_at(made[0], filter=bins))
    page = place.both(lambda graph: graph.poll(filtered, filter=bins))
    assert [len(block.changes.changes) for block in page.blocks] == [2]


@NOT_ON_S3
def test_cursors_that_cannot_be_used(place: Place) -> None:
    graph = place.graph
    cursor = graph.cursor_at()
    graph.branch_create("side")
    for call, kind in (
        (lambda graph: graph.poll("nonsense"), CursorRejected),
        (lambda graph: graph.poll(""), CursorRejected),
        (lambda graph: graph.poll(cursor[:-4]), CursorRejected),
        (lambda graph: graph.poll(cursor, branch="side"), CursorRejected),
        (lambda graph: graph.poll(cursor, filter=OF_PARTS), CursorRejected),
        (lambda graph: graph.poll(cursor, branch="none"), BranchNotFound),
        (lambda graph: graph.poll(cursor, most_commits=0), ConfigError),
        (lambda graph: graph.poll(cursor, most_changes=-1), ConfigError),
        (lambda graph: graph.cursor_at(NO_COMMIT), CommitNotFound),
        (lambda graph: graph.cursor_at(branch="none"), BranchNotFound),
        (
            lambda graph: graph.poll(filter=ChangeFilter(type_names=frozenset({"Prt"}))),
            ConfigError,
        ),
    ):
        assert isinstance(place.raised(call), kind)


def test_a_gap_in_the_feed(place: Place) -> None:
    graph = place.graph
    cursor = graph.cursor_at()
    made = [put(graph, part("nut", stock=number)) for number in range(1, 5)]
    assert place.at_hand.head_commit_id_for_branch() == made[3]
    clean_up(place.at_hand, keep=2)
    problem = place.raised(lambda graph: graph.poll(cursor))
    assert isinstance(problem, ChangeFeedGap)
    assert problem.resume_commit_id == made[2]
    resumed = place.both(lambda graph: graph.cursor_at(problem.resume_commit_id))
    page = place.both(lambda graph: graph.poll(resumed))
    assert [block.commit.graph_commit_id for block in page.blocks] == made[3:]
    gone = ReadTarget(snapshot_id=made[0])
    place.raised(lambda graph: graph.diff_between(gone, "main"))
    place.raised(lambda graph: graph.commit_changes(made[0]))
    assert place.both(lambda graph: graph.get_commit(made[0])).graph_commit_id == made[0]
