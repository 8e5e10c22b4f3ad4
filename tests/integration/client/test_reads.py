"""What is read behind a server is what is read at hand: rows, plans, snapshots, files, changes."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from omnigraph_core.diff.model import ChangeFilter, ChangeOp, ChangePage
from omnigraph_core.errors import ConfigError, OmnigraphError, QueryCancelled
from omnigraph_core.exec.guard import Cancellation
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import GraphCommit
from omnigraph_core.plan.report import PlanReport
from omnigraph_core.query.typed import EntityKind
from tests.integration.client.conftest import SCHEMA, Pair, lines
from tests.support.cases import each

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = """
query parts($least: I64?, $after: Date?) {
  match { $p: Part  $p.stock >= $least }
  return { $p.sku, $p.stock, $p.weight, $p.made, $p.seen, $p.tags, $p.shape, $p.grade, $p as part }
}
query all_parts() { match { $p: Part } return { $p.sku, $p.seen, $p.tags } order { $p.sku } }
query held() { match { $b: Bin  $b holds $p } return { $b.code, count($p) as parts } }
"""


@pytest.fixture(scope="module", autouse=True)
def history(pair: Pair) -> dict[str, str]:
    """A tag, a branch with changes of every kind, and the ids of what to look at."""
    local = pair.local
    first = local.head_commit_id_for_branch()
    local.tag_create("v1", actor="tester")
    local.branch_create("edited", actor="tester")
    local.mutate(
        'query grow() { update Part set { stock: 9, grade: "b" } where sku = "p1"'
        ' insert Part { sku: "p4", note: "new" } }',
        branch="edited",
        actor="tester",
    )
    local.mutate('query drop() { delete Part where sku = "p3" }', branch="edited", actor="tester")
    return {"first": first, "second": local.head_commit_id_for_branch("edited")}


def both(pair: Pair, call: Callable[[Any], Any]) -> Any:
    """What a call gives at hand and behind a server, which is the same."""
    local, remote = call(pair.local), call(pair.remote)
    assert type(local) is type(remote)
    assert told(remote) == told(local)
    return remote


def told(value: Any) -> Any:
    """A value as it can be compared: of which catalog a commit is, and its key, are not told."""
    if isinstance(value, GraphCommit | ChangePage | PlanReport):
        return value.to_json()
    return tuple(map(told, value)) if isinstance(value, tuple) else value


@pytest.mark.parametrize("target", ["main", "edited", "tag", "commit", "snapshot"])
def test_rows_are_the_same_of_whatever_is_read(
    pair: Pair, history: dict[str, str], target: str
) -> None:
    def chosen(graph: Any) -> Any:
        return {
            "tag": ReadTarget(tag="v1"),
            "commit": ReadTarget(snapshot_id=history["second"]),
            "snapshot": graph.snapshot("edited"),
        }.get(target, target)

    found = [graph.query(chosen(graph), PARTS, "all_parts") for graph in (pair.local, pair.remote)]
    local, remote = found
    assert remote.table == local.table
    assert remote.table.schema.equals(local.table.schema, check_metadata=True)
    assert remote.query_name == local.query_name == "all_parts"
    assert remote.columns == tuple(
        replace(column, type=None, node_type=None) for column in local.columns
    )
    assert remote.describe() == local.describe()
    assert remote.to_pylist() == local.to_pylist()
    assert remote.to_pandas().equals(local.to_pandas())
    assert told(remote.snapshot.commit) == told(local.snapshot.commit)
    assert remote.snapshot.branch == local.snapshot.branch
    assert remote.snapshot.manifest_version == local.snapshot.manifest_version
    assert dict(remote.snapshot.tables) == dict(local.snapshot.tables)
    assert remote.snapshot.schema == local.snapshot.schema


def test_every_kind_of_value_and_parameter(pair: Pair) -> None:
    params = {"least": 1, "after": dt.date(2026, 1, 1)}

    def rows(graph: Any) -> Any:
        return graph.query("main", PARTS, "parts", params, timeout=120, memory=2**28).to_pylist()

    (row,) = both(pair, rows)
    assert (row["p.sku"], row["p.made"], row["p.tags"]) == ("p1", "2026-01-31", ["m3", "steel"])
    assert row["part"]["stock"] == 3
    version = pair.local.snapshot().manifest_version
    both(pair, lambda graph: graph.run_query_at(version, PARTS, "held").to_json())


def test_a_result_tells_its_commit_without_asking_again(
    pair: Pair, history: dict[str, str]
) -> None:
    found = pair.remote.query("main", PARTS, "held")
    pair.remote.close()
    commit = found.snapshot.commit
    assert commit.graph_commit_id == history["first"]
    assert history["first"] in repr(found.snapshot)
    assert commit.operation == "load", "fetched now, over a new connection"
    assert commit == pair.local.get_commit(history["first"])
    assert hash(commit) == hash(pair.local.get_commit(history["first"]))
    with pytest.raises(AttributeError):
        _ = commit.nothing  # type: ignore[attr-defined]


def test_names_of_any_letters(pair: Pair) -> None:
    name = pair.fork("größe/50% ü")
    found = pair.remote.query(name, PARTS, "held")
    assert found.snapshot.branch == name
    assert found.snapshot.tables == pair.local.snapshot(name).tables


def test_plans(pair: Pair) -> None:
    plan = both(pair, lambda graph: graph.explain("main", PARTS, "parts"))
    assert plan.text.startswith("query parts")
    local, remote = (
        graph.profile("main", PARTS, "held", timeout=120) for graph in (pair.local, pair.remote)
    )
    assert [step.kind for step in remote.steps] == [step.kind for step in local.steps]
    assert remote.total is not None
    assert remote.total.rows_out == 1


OF_PARTS = ChangeFilter(type_names=frozenset({"Part"}))
READS: dict[str, Callable[[Any], Any]] = {
    "uri of a branch": lambda graph: graph.branch_get("edited"),
    "main": lambda graph: graph.branch_get("main"),
    "branches": lambda graph: graph.branch_list(),
    "commits": lambda graph: graph.list_commits("edited"),
    "commits of main": lambda graph: graph.list_commits(),
    "newest commit": lambda graph: graph.list_commits("edited", limit=1),
    "no commits": lambda graph: graph.list_commits(limit=0),
    "head": lambda graph: graph.head_commit_id_for_branch("edited"),
    "tags": lambda graph: graph.tag_list(),
    "schema": lambda graph: graph.schema_show(ReadTarget(tag="v1")),
    "tables": lambda graph: dict(graph.snapshot("edited").tables),
    "incarnation": lambda graph: graph.snapshot("edited").incarnation,
    "at a version": lambda graph: graph.snapshot_at_version(2).commit,
    "of a tag": lambda graph: graph.snapshot_of(ReadTarget(tag="v1")).commit,
    "now": lambda graph: (
        graph.snapshot_at_time(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).commit
    ),
    "a row": lambda graph: graph.entity_at("node:Part", "p1", version=2),
    "no row": lambda graph: graph.entity_at("node:Part", "none", version=2),
    "indexes": lambda graph: graph.index_status("edited"),
    "vectors": lambda graph: graph.embedding_status("edited"),
    "indexes of a tag": lambda graph: graph.index_status(ReadTarget(tag="v1")),
    "vectors of a tag": lambda graph: graph.embedding_status(ReadTarget(tag="v1")),
    "runs": lambda graph: graph.list_runs(),
    "lines": lambda graph: b"".join(graph.export_jsonl("edited")),
    "some lines": lambda graph: b"".join(
        graph.export_jsonl(ReadTarget(tag="v1"), types=["Bin"], table_keys=["edge:Holds"])
    ),
    "diff": lambda graph: graph.diff_between("main", "edited"),
    "diff of a tag": lambda graph: graph.diff_between(
        ReadTarget(tag="v1"), ReadTarget(branch="edited"), has_values=False, limit=1
    ),
    "filtered diff": lambda graph: graph.diff_between(
        "main",
        "edited",
        ChangeFilter(
            frozenset({EntityKind.NODE}), frozenset({"Part"}), frozenset({ChangeOp.UPDATE})
        ),
    ),
    "one by one": lambda graph: list(graph.iter_diff("main", "edited")),
    "opened": lambda graph: graph.open_diff("main", "edited").summary,
    "opened changes": lambda graph: list(
        graph.open_diff("main", "edited").iter_changes(has_values=False, limit=2)
    ),
    "cursor": lambda graph: graph.cursor_at(branch="edited"),
    "feed": lambda graph: graph.poll(
        graph.cursor_at(
            graph.list_commits("edited")[2].graph_commit_id, branch="edited", filter=OF_PARTS
        ),
        branch="edited",
        filter=OF_PARTS,
    ),
    "feed of now": lambda graph: graph.poll(),
    "verified": lambda graph: graph.verify("edited"),
    "cleanup": lambda graph: graph.cleanup(
        keep=1, older_than=dt.timedelta(days=1), branches=["main"], is_preview=True
    ),
    "plan": lambda graph: graph.schema_plan(
        SCHEMA.replace("weight: F64?", "weight: F64?  x: Date?")
    ),
    "refused plan": lambda graph: graph.schema_plan(
        SCHEMA.replace("weight: F64?", "weight: Bool?")
    ),
}


@each("name", READS)
def test_values_are_the_same(pair: Pair, name: str) -> None:
    both(pair, READS[name])


def test_changes_of_commits(pair: Pair, history: dict[str, str]) -> None:
    second = history["second"]
    both(pair, lambda graph: graph.get_commit(second))
    both(pair, lambda graph: graph.commit_changes(second))
    both(pair, lambda graph: graph.diff_commits(history["first"], second, limit=2))
    both(pair, lambda graph: list(graph.open_commit_changes(second).iter_changes()))
    first = both(pair, lambda graph: graph.commit_changes(history["first"], limit=0))
    assert (first.stats.inserts, first.changes, first.is_complete) == (7, (), False)


def test_blobs(pair: Pair) -> None:
    data = both(pair, lambda graph: graph.read_blob("Part", "p1", "drawing"))
    assert data == bytes(range(5))
    at = {"offset": 1, "length": 3, "target": ReadTarget(tag="v1")}
    both(pair, lambda graph: graph.read_blob("Part", "p1", "drawing", **at))
    assert both(pair, lambda graph: graph.read_blob("Part", "p3", "drawing")) is None
    assert both(pair, lambda graph: graph.open_blob("Part", "p2", "drawing")).uri is not None
    for graph in (pair.local, pair.remote):
        reader = graph.open_blob("Part", "p1", "drawing").reader
        assert reader is not None
        with reader:
            found = (
                reader.size, reader.read(2), reader.tell(), reader.read_range(3, 9),
                reader.seek(-1, 2), reader.read(), reader.read(), reader.read_range(9, 1),
            )  # fmt: skip
        assert found == (5, b"\0\1", 2, b"\3\4", 4, b"\4", b"", b"")


def test_blobs_that_are_empty_or_elsewhere(pair: Pair) -> None:
    branch = pair.fork("blobs")
    rows = [
        {"type": "Part", "data": {"sku": "e", "drawing": "base64:"}},
        {"type": "Part", "data": {"sku": "s", "drawing": "s3://bucket/drawing%20one"}},
    ]
    pair.local.load(lines(*rows), branch=branch, embed="off")
    assert both(pair, lambda graph: graph.read_blob("Part", "e", "drawing", target=branch)) == b""
    found = both(pair, lambda graph: graph.open_blob("Part", "s", "drawing", target=branch))
    assert found.uri == "s3://bucket/drawing%20one"
    reader = pair.remote.open_blob("Part", "p1", "drawing").reader
    assert reader is not None
    for wrong in (
        lambda: reader.seek(-1),
        lambda: reader.seek(0, 7),
        lambda: reader.read_range(-1, 1),
    ):
        with pytest.raises(ConfigError):
            wrong()


def test_an_export_can_be_left_early(pair: Pair) -> None:
    exported = pair.remote.export_jsonl()
    first = next(exported)
    assert first.endswith(b"\n")
    exported.close()  # type: ignore[attr-defined]
    assert list(exported) == []
    assert next(pair.remote.iter_diff("main", "edited")).id


def test_parquet_files_are_those_of_a_graph_at_hand(pair: Pair, tmp_path: Path) -> None:
    for name, graph in (("local", pair.local), ("remote", pair.remote)):
        files = graph.export_parquet(tmp_path / name, "edited")
        assert [(file.table_key, file.row_count) for file in files] == [
            ("edge:Holds", 2), ("node:Bin", 2), ("node:Part", 3),
        ]  # fmt: skip
        assert all(file.byte_count == file.path.stat().st_size for file in files)
    for path in ("nodes/Part.parquet", "nodes/Bin.parquet", "edges/Holds.parquet"):
        local, remote = (pq.read_table(tmp_path / name / path) for name in ("local", "remote"))
        assert remote.schema.equals(local.schema, check_metadata=True)
        assert remote.equals(local)
    (only,) = pair.remote.export_parquet(tmp_path / "some", types=["Bin"])
    assert only.path.exists()
    assert [path.name for path in (tmp_path / "some").iterdir()] == ["nodes"]


WRONG: dict[str, Callable[[Any], Any]] = {
    "branch": lambda graph: graph.query("none", PARTS, "held"),
    "branch with an odd name": lambda graph: graph.branch_get("a/../b c%"),
    "name of a branch": lambda graph: graph.branch_get(".."),
    "commit": lambda graph: graph.get_commit("01M7HCRA2YB7TR5DXVE32ATFRJ"),
    "tag": lambda graph: graph.snapshot_of(ReadTarget(tag="none")),
    "version": lambda graph: graph.snapshot_at_version(99),
    "moment": lambda graph: graph.snapshot_at_time(dt.datetime(2001, 1, 1)),
    "run": lambda graph: graph.get_run("01M7HCRA2YB7TR5DXVE32ATFRJ"),
    "query name": lambda graph: graph.query("main", PARTS, "none"),
    "no query name": lambda graph: graph.query("main", PARTS),
    "syntax": lambda graph: graph.query("main", "query x() { match }"),
    "types": lambda graph: graph.query("main", "query x() { match { $p: Par } return { $p.nam } }"),
    "parameters": lambda graph: graph.query("main", PARTS, "parts", {"least": "x", "els": 1}),
    "budget": lambda graph: graph.query("main", PARTS, "all_parts", memory=1),
    "a mutation": lambda graph: graph.query(
        "main", 'query x() { delete Part where sku = "p1" }'
    ),
    "type of an export": lambda graph: graph.export_jsonl(types=["Prt"], table_keys=["node:x"]),
    "files of an export": lambda graph: graph.export_parquet("none", types=["Prt"]),
    "blob": lambda graph: graph.open_blob("Part", "none", "drawing"),
    "property": lambda graph: graph.read_blob("Part", "p1", "drwing"),
    "range": lambda graph: graph.read_blob("Part", "p1", "drawing", offset=-1),
    "blob elsewhere": lambda graph: graph.read_blob("Part", "p2", "drawing"),
    "diff": lambda graph: graph.iter_diff("main", "none"),
    "filter": lambda graph: graph.diff_between(
        "main", "edited", ChangeFilter(type_names=frozenset({"Prt"}))
    ),
    "limit": lambda graph: graph.diff_between("main", "edited", limit=-1),
    "limit of commits": lambda graph: graph.list_commits(limit=-1),
    "cursor": lambda graph: graph.poll("nothing"),
    "retention": lambda graph: graph.cleanup(is_preview=True),
    "schema": lambda graph: graph.schema_plan("node X {"),
}  # fmt: skip


@each("name", WRONG)
def test_errors_are_the_same(pair: Pair, name: str) -> None:
    with pytest.raises(OmnigraphError) as local:
        WRONG[name](pair.local)
    with pytest.raises(OmnigraphError) as remote:
        WRONG[name](pair.remote)
    assert type(remote.value) is type(local.value)
    assert str(remote.value) == str(local.value)
    assert remote.value.details() == local.value.details()
    assert remote.value.retryable == local.value.retryable


def test_what_a_server_does_not_offer_is_said(pair: Pair) -> None:
    with pytest.raises(ConfigError, match="`branches` is empty"):
        pair.remote.cleanup(keep=1, branches=[])
    with pytest.raises(ConfigError, match="the token says who acts"):
        pair.remote.branch_delete("edited", actor="somebody")
    for call in (
        lambda: pair.remote.optimize(engine="spark"),
        lambda: pair.remote.ensure_indices(engine="spark"),
        lambda: pair.remote.cleanup(keep=1, engine="local"),
    ):
        with pytest.raises(ConfigError, match="the server chooses it"):
            call()


def test_a_query_is_cancelled(pair: Pair) -> None:
    done = Cancellation()
    found = pair.remote.query("main", PARTS, "held", cancellation=done)
    assert found.num_rows == 1
    done.cancel()
    with pytest.raises(QueryCancelled):
        pair.remote.query("main", PARTS, "held", cancellation=done)
