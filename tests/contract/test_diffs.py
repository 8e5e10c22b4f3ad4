"""Diffs: what differs between branches, commits and tags, told exactly and in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.diff.model import ChangeFilter, ChangeOp, Endpoints
from omnigraph_core.engine import diffs
from omnigraph_core.errors import (
    BranchNotFound,
    CommitNotFound,
    ConfigError,
    SnapshotNotFound,
    TagNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.storage.compact import compact
from tests.support.ageing import clean_up
from tests.support.graphs import PART, publish, touch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.diff.model import ChangeSet, EntityChange
    from omnigraph_core.engine.omnigraph import Omnigraph

pytestmark = pytest.mark.long_on_s3("test_http_over_s3 and test_commits show S3")

STOCK = [
    {"type": "Part", "data": {"sku": "a", "name": "bolt", "stock": 1}},
    {"type": "Part", "data": {"sku": "b", "name": "nut"}},
    {"type": "Part", "data": {"sku": "c"}},
    {"type": "Bin", "data": {"code": "x"}},
    {"edge": "Holds", "from": "x", "to": "a", "data": {"id": "h1", "count": 4}},
    {"edge": "Holds", "from": "x", "to": "b", "data": {"id": "h2"}},
]
EDITS = [
    {"type": "Part", "data": {"sku": "b", "name": "wing nut"}},
    {"type": "Part", "data": {"sku": "d"}},
    {"type": "Bin", "data": {"code": "y"}},
    {"edge": "Holds", "from": "y", "to": "a", "data": {"id": "h1", "count": 5}},
]
GONE = """query gone() {
  delete Part where sku = "c"
  delete Holds where id = "h2"
}"""


def load(og: Omnigraph, records: list[dict[str, object]], branch: str = "main") -> str:
    """One merged load; the id of its commit."""
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    og.load(text.encode(), mode="merge", branch=branch)
    return og.head_commit_id_for_branch(branch)


@pytest.fixture
def stock(og: Omnigraph) -> Omnigraph:
    load(og, STOCK)
    return og


def edit(og: Omnigraph, branch: str = "main") -> None:
    """Two commits: rows are changed and made, then two are removed."""
    load(og, EDITS, branch)
    og.mutate(GONE, branch=branch)


def told(changes: Iterable[EntityChange]) -> list[tuple[str, str, str]]:
    return [(str(change.op), change.type_name, change.id) for change in changes]


def counts(found: ChangeSet) -> tuple[int, int, int]:
    return (found.stats.inserts, found.stats.updates, found.stats.deletes)


ALL = [
    ("insert", "Bin", "y"),
    ("update", "Part", "b"),
    ("delete", "Part", "c"),
    ("insert", "Part", "d"),
    ("update", "Holds", "h1"),
    ("delete", "Holds", "h2"),
]


def test_every_kind_of_change(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    found = stock.diff_between("main", "review")
    assert told(found.changes) == ALL
    assert counts(found) == (2, 2, 2)
    assert found.stats.types_affected == ("Bin", "Holds", "Part")
    assert [
        (item.table_key, item.inserts, item.updates, item.deletes) for item in found.stats.tables
    ] == [
        ("edge:Holds", 0, 1, 1),
        ("node:Bin", 1, 0, 0),
        ("node:Part", 1, 1, 1),
    ]
    assert (found.branch, found.is_complete, found.stats.schema_steps) == (None, True, ())
    assert (found.from_commit_id, found.to_commit_id) == (
        stock.head_commit_id_for_branch(),
        stock.head_commit_id_for_branch("review"),
    )
    assert (found.from_version, found.to_version) == (2, 3)
    assert {change.manifest_version for change in found.changes} == {3}
    assert {(change.table_key, change.kind) for change in found.changes} == {
        ("node:Bin", EntityKind.NODE),
        ("node:Part", EntityKind.NODE),
        ("edge:Holds", EntityKind.EDGE),
    }


def test_rows_before_and_after(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    changes = {change.id: change for change in stock.diff_between("main", "review").changes}
    assert changes["b"].before == {"id": "b", "sku": "b", "name": "nut", "stock": None}
    assert changes["b"].after == {"id": "b", "sku": "b", "name": "wing nut", "stock": None}
    assert changes["b"].properties == ("name",)
    assert (changes["c"].after, changes["c"].properties) == (None, ())
    assert changes["c"].before == stock.entity_at(PART, "c", version=2)
    assert (changes["d"].before, changes["d"].properties) == (None, ())
    assert changes["d"].after == stock.entity_at(PART, "d", version=3, branch="review")
    assert changes["h1"].properties == ("src", "count")
    assert changes["h1"].endpoints == Endpoints("y", "a")
    assert changes["h2"].endpoints == Endpoints("x", "b")
    assert changes["b"].endpoints is None


def test_the_other_way_round(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    there = {change.id: change for change in stock.diff_between("main", "review").changes}
    back = {change.id: change for change in stock.diff_between("review", "main").changes}
    swapped = {"insert": "delete", "delete": "insert", "update": "update"}
    assert there.keys() == back.keys()
    for id, change in back.items():
        assert swapped[change.op] == there[id].op
        assert (change.before, change.after) == (there[id].after, there[id].before)
        assert change.properties == there[id].properties
    assert back["h1"].endpoints == Endpoints("x", "a")


def test_ids_alone(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    full = stock.diff_between("main", "review")
    bare = stock.diff_between("main", "review", has_values=False)
    assert (told(bare.changes), bare.stats) == (told(full.changes), full.stats)
    assert [change.endpoints for change in bare.changes] == [
        change.endpoints for change in full.changes
    ]
    assert {(change.before, change.after, change.properties) for change in bare.changes} == {
        (None, None, ())
    }
    assert "before" not in bare.changes[0].to_json(has_values=False)


def test_a_limit_bounds_the_list_only(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    for limit in range(len(ALL) + 2):
        found = stock.diff_between("main", "review", limit=limit)
        assert told(found.changes) == ALL[:limit]
        assert counts(found) == (2, 2, 2)
        assert found.is_complete == (limit >= len(ALL))
    with pytest.raises(ConfigError, match="`limit` is -1"):
        stock.diff_between("main", "review", limit=-1)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (ChangeFilter(kinds=frozenset({EntityKind.NODE})), ALL[:4]),
        (ChangeFilter(kinds=frozenset({EntityKind.EDGE})), ALL[4:]),
        (ChangeFilter(kinds=frozenset(EntityKind)), ALL),
        (ChangeFilter(type_names=frozenset({"Part"})), ALL[1:4]),
        (ChangeFilter(type_names=frozenset({"Part", "Bin"})), ALL[:4]),
        (ChangeFilter(ops=frozenset({ChangeOp.INSERT})), [ALL[0], ALL[3]]),
        (ChangeFilter(ops=frozenset({ChangeOp.UPDATE})), [ALL[1], ALL[4]]),
        (
            ChangeFilter(ops=frozenset({ChangeOp.INSERT, ChangeOp.DELETE})),
            [ALL[0], ALL[2], ALL[3], ALL[5]],
        ),
        (
            ChangeFilter(
                frozenset({EntityKind.NODE}),
                frozenset({"Part", "Holds"}),
                frozenset({ChangeOp.DELETE}),
            ),
            [ALL[2]],
        ),
        (
            ChangeFilter(kinds=frozenset({EntityKind.EDGE}), type_names=frozenset({"Part"})),
            [],
        ),
    ],
)
def test_filters(
    stock: Omnigraph, filter: ChangeFilter, expected: list[tuple[str, str, str]]
) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    found = stock.diff_between("main", "review", filter)
    assert told(found.changes) == expected
    assert sum(counts(found)) == len(expected)
    assert told(stock.iter_diff("main", "review", filter)) == expected


def test_a_filter_names_types_that_are_there(stock: Omnigraph) -> None:
    wrong = ChangeFilter(type_names=frozenset({"Prat", "Bin", "Zzz"}))
    text = r"no type `Prat` \(did you mean `Part`\?\), no type `Zzz`"
    for ask in (
        lambda: stock.diff_between("main", "main", wrong),
        lambda: stock.iter_diff("main", "main", wrong),
        lambda: stock.commit_changes(stock.head_commit_id_for_branch(), wrong),
        lambda: stock.cursor_at(filter=wrong),
    ):
        with pytest.raises(ConfigError, match=text):
            ask()


def test_equal_states_do_not_differ(stock: Omnigraph) -> None:
    stock.branch_create("review")
    found = stock.diff_between("main", "review")
    assert (found.changes, found.stats.tables, found.stats.types_affected) == ((), (), ())
    again = stock.diff_between("main", "main")
    assert (again.changes, again.branch) == ((), "main")


def test_what_was_undone_does_not_differ(stock: Omnigraph) -> None:
    """Rows that were written again with the values they had, or removed and made again."""
    stock.branch_create("review")
    edit(stock, "review")
    load(stock, STOCK, "review")
    stock.mutate(
        'query back() { delete Part where sku = "d"  delete Bin where code = "y" }', branch="review"
    )
    assert stock.diff_between("main", "review").changes == ()
    assert stock.diff_between("review", "main").changes == ()


def test_rewritten_files_are_no_changes(stock: Omnigraph) -> None:
    first = stock.head_commit_id_for_branch()
    load(stock, EDITS)
    before = stock.head_commit_id_for_branch()
    stock.ensure_indices()
    snapshot = stock.snapshot()
    compacted = compact(stock.table(snapshot, PART))
    assert compacted is not None
    publish(stock, snapshot, {PART: compacted}, TableOperation.COMPACTION)
    stock.optimize()
    assert stock.head_commit_id_for_branch() != before
    found = stock.diff_between(ReadTarget(snapshot_id=before), "main")
    assert (found.changes, found.stats.tables) == ((), ())
    assert stock.commit_changes(stock.head_commit_id_for_branch()).changes == ()
    over = stock.diff_between(ReadTarget(snapshot_id=first), "main")
    assert told(over.changes) == [ALL[0], ALL[1], ALL[3], ALL[4]]


def test_commits(stock: Omnigraph) -> None:
    first = stock.head_commit_id_for_branch()
    stock.branch_create("review")
    second = load(stock, EDITS, "review")
    stock.mutate(GONE, branch="review")
    third = stock.head_commit_id_for_branch("review")
    assert told(stock.commit_changes(second).changes) == [ALL[0], ALL[1], ALL[3], ALL[4]]
    assert told(stock.commit_changes(third).changes) == [ALL[2], ALL[5]]
    assert told(stock.diff_commits(first, third).changes) == ALL
    assert told(stock.diff_commits(third, third).changes) == []
    one = stock.commit_changes(second)
    assert (one.from_commit_id, one.to_commit_id, one.branch) == (first, second, "review")


def test_the_first_commit_made_nothing(og: Omnigraph) -> None:
    (genesis,) = og.list_commits()
    found = og.commit_changes(genesis.graph_commit_id)
    assert (found.changes, found.from_version, found.from_commit_id) == ((), 0, None)
    assert (found.to_version, found.branch, found.stats.tables) == (1, "main", ())
    assert found.to_json()["from_commit_id"] is None


def test_tags_and_times(stock: Omnigraph) -> None:
    stock.tag_create("before")
    edit(stock)
    found = stock.diff_between(ReadTarget(tag="before"), "main")
    assert told(found.changes) == ALL
    assert (found.branch, found.from_version, found.to_version) == ("main", 2, 4)


def test_what_is_not_there(stock: Omnigraph) -> None:
    with pytest.raises(BranchNotFound):
        stock.diff_between("main", "nowhere")
    with pytest.raises(TagNotFound):
        stock.diff_between(ReadTarget(tag="never"), "main")
    with pytest.raises(CommitNotFound):
        stock.diff_commits("nope", stock.head_commit_id_for_branch())
    with pytest.raises(CommitNotFound):
        stock.commit_changes("nope")
    first = stock.head_commit_id_for_branch()
    load(stock, EDITS)
    load(stock, STOCK)
    clean_up(stock, keep=1)
    with pytest.raises(SnapshotNotFound):
        stock.diff_between(ReadTarget(snapshot_id=first), "main")
    with pytest.raises(SnapshotNotFound):
        stock.commit_changes(stock.head_commit_id_for_branch())


def test_counts_first_and_changes_as_they_are_asked_for(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    opened, whole = stock.open_diff("main", "review"), stock.diff_between("main", "review")
    assert (opened.summary.stats, opened.summary.changes) == (whole.stats, ())
    assert opened.summary.stats.total == len(whole.changes) == len(ALL)
    for limit in (None, 0, 1, 3, 4, 100):
        expected = stock.diff_between("main", "review", limit=limit).changes
        assert tuple(opened.iter_changes(limit=limit)) == expected, "again and again"
    bare = stock.diff_between("main", "review", has_values=False).changes
    assert tuple(opened.iter_changes(has_values=False)) == bare
    with pytest.raises(ConfigError, match="`limit` is -1"):
        opened.iter_changes(limit=-1)
    second = stock.head_commit_id_for_branch("review")
    edges = ChangeFilter(kinds=frozenset({EntityKind.EDGE}))
    one = stock.open_commit_changes(second, edges)
    assert tuple(one.iter_changes()) == stock.commit_changes(second, edges).changes
    assert (one.summary.to_commit_id, one.summary.stats.total) == (second, 1)
    genesis = stock.list_commits()[-1].graph_commit_id
    assert tuple(stock.open_commit_changes(genesis).iter_changes()) == ()


def test_many_changes_stay_whole(stock: Omnigraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleanup meanwhile takes nothing away of what is read for long."""
    first = stock.head_commit_id_for_branch()
    edit(stock)
    monkeypatch.setattr(diffs, "_QUICK", 2)
    opened = stock.open_diff(ReadTarget(snapshot_id=first), "main")
    expected = tuple(opened.iter_changes())
    stream = opened.iter_changes()
    found = [next(stream)]
    touch(stock)
    clean_up(stock, keep=1)
    assert (*found, *stream) == expected
    touch(stock)
    clean_up(stock, keep=1)  # the claim is given back
    with pytest.raises(SnapshotNotFound):
        stock.snapshot_of(ReadTarget(snapshot_id=first))


def test_a_stream_is_the_same_and_stays_whole(stock: Omnigraph) -> None:
    """Nothing is read before it is asked for; cleanup meanwhile takes nothing away."""
    stock.tag_create("before")
    edit(stock)
    expected = stock.diff_between(ReadTarget(tag="before"), "main").changes
    stock.tag_delete("before")
    first = stock.list_commits()[2].graph_commit_id
    stream = stock.iter_diff(ReadTarget(snapshot_id=first), "main")
    found = [next(stream)]
    touch(stock)
    clean_up(stock, keep=1)
    found += stream
    assert tuple(found) == expected
    touch(stock)
    clean_up(stock, keep=1)  # the claim is given back
    with pytest.raises(SnapshotNotFound):
        stock.snapshot_of(ReadTarget(snapshot_id=first))


def test_a_copy_of_the_document(stock: Omnigraph) -> None:
    stock.branch_create("review")
    edit(stock, "review")
    found = stock.diff_between("main", "review")
    document = json.loads(json.dumps(found.to_json()))
    assert document["stats"]["tables"][0] == {
        "table_key": "edge:Holds",
        "inserts": 0,
        "updates": 1,
        "deletes": 1,
    }
    assert document["complete"] is True
    assert document["changes"][4]["endpoints"] == {"src": "y", "dst": "a"}
    assert [item["op"] for item in document["changes"]] == [op for op, _, _ in ALL]
