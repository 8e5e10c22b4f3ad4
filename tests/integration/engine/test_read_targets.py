"""What a query reads: branches, commits, tags, versions, moments; and what it refuses to run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    BranchNotFound,
    CommitNotFound,
    CompileError,
    ConfigError,
    ParameterError,
    QueryNotFound,
    QuerySyntaxError,
    SnapshotNotFound,
    TagNotFound,
)
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.cases import each
from tests.support.graphs import PART, new_graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from omnigraph_core.manifest.snapshot import Snapshot

STOCK = "query stock() { match { $p: Part } return { $p.sku, $p.stock } order { $p.sku } }"
ONE = "query one($sku: String) { match { $p: Part {sku: $sku} } return { $p.stock } }"
ADD = "query add($sku: String, $stock: I64) { insert Part { sku: $sku, stock: $stock } }"
DROP = "query drop($sku: String) { delete Part where sku = $sku }"


class History:
    """A part is added, changed and deleted on main; a branch forked in between goes its own way."""

    def __init__(self, address: str) -> None:
        self.og = new_graph(address)
        self.snapshots: list[Snapshot] = []
        self.moments: list[datetime] = []
        self.do(ADD, sku="a", stock=1)
        self.do(ADD, sku="a", stock=2)
        self.og.tag_create("two")
        self.og.branch_create("review")
        self.do(ADD, sku="b", stock=3)
        self.do(DROP, sku="a")
        self.og.mutate(ADD, {"sku": "c", "stock": 4}, branch="review")

    def do(self, text: str, **params: object) -> None:
        self.og.mutate(text, params)
        self.snapshots.append(self.og.snapshot())
        self.moments.append(datetime.now(UTC))

    def stock(self, target: str | ReadTarget | Snapshot) -> dict[str, int]:
        rows = self.og.query(target, STOCK).to_pylist()
        return {row["p.sku"]: row["p.stock"] for row in rows}


STATES = [{"a": 1}, {"a": 2}, {"a": 2, "b": 3}, {"b": 3}]
"""Main after each of its commits."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(str(tmp_path_factory.mktemp("history") / "graph"))


@pytest.mark.parametrize("place", range(len(STATES)))
def test_every_way_to_name_a_commit(history: History, place: int) -> None:
    og, snapshot = history.og, history.snapshots[place]
    version, commit = snapshot.manifest_version, snapshot.commit.graph_commit_id
    assert history.stock(snapshot) == STATES[place]
    assert history.stock(ReadTarget(snapshot_id=commit)) == STATES[place]
    assert history.stock(og.snapshot_at_version(version)) == STATES[place]
    assert history.stock(og.snapshot_at_time(history.moments[place])) == STATES[place]
    rows = og.run_query_at(version, STOCK).to_pylist()
    assert {row["p.sku"]: row["p.stock"] for row in rows} == STATES[place]
    found = og.entity_at(PART, "a", version=version)
    assert (None if found is None else found["stock"]) == STATES[place].get("a")


def test_results_tell_what_they_were_read_from(history: History) -> None:
    for snapshot in history.snapshots:
        result = history.og.run_query_at(snapshot.manifest_version, STOCK)
        assert result.snapshot.commit == snapshot.commit
        assert result.query_name == "stock"


def test_branches_and_tags(history: History) -> None:
    assert history.stock("main") == history.stock(ReadTarget(branch="main")) == {"b": 3}
    assert history.stock("review") == {"a": 2, "c": 4}
    assert history.stock(ReadTarget(tag="two")) == {"a": 2}
    at = history.og.snapshot("review").manifest_version
    one = {"sku": "c"}
    assert history.og.run_query_at(at, ONE, None, one, branch="review").num_rows == 1
    assert history.og.run_query_at(at, ONE, params=one).num_rows == 0


def test_a_moment_without_a_zone_is_utc(history: History) -> None:
    moment = history.moments[1].replace(tzinfo=None)
    assert history.stock(history.og.snapshot_at_time(moment)) == STATES[1]


def test_another_handle_reads_the_same(history: History) -> None:
    other = Omnigraph.open(history.og.uri)
    for snapshot, expected in zip(history.snapshots, STATES, strict=True):
        rows = other.run_query_at(snapshot.manifest_version, STOCK).to_pylist()
        assert {row["p.sku"]: row["p.stock"] for row in rows} == expected
        assert other.query(snapshot, STOCK).to_pylist() == rows


def test_a_deleted_branch_is_still_there_by_its_commit(tmp_path: Path) -> None:
    history = History(str(tmp_path / "graph"))
    snapshot = history.og.snapshot("review")
    history.og.branch_delete("review")
    assert history.stock(snapshot) == {"a": 2, "c": 4}
    target = ReadTarget(snapshot_id=snapshot.commit.graph_commit_id)
    assert history.stock(target) == {"a": 2, "c": 4}
    with pytest.raises(BranchNotFound):
        history.stock("review")


def test_a_branch_made_anew_is_another_branch(tmp_path: Path) -> None:
    """Also for a reader that relies on what it knows of the old one."""
    history = History(str(tmp_path / "graph"))
    assert history.stock("review") == {"a": 2, "c": 4}
    history.og.branch_delete("review")
    history.og.branch_create("review")
    assert history.stock("review") == {"b": 3}
    rows = history.og.query("review", STOCK, max_age=600).to_pylist()
    assert [row["p.sku"] for row in rows] == ["b"]


UNKNOWN: dict[str, tuple[type[Exception], Callable[[Omnigraph], object]]] = {
    "branch": (BranchNotFound, lambda og: og.query("none", STOCK)),
    "branch that may be old": (BranchNotFound, lambda og: og.query("none", STOCK, max_age=60)),
    "branch of a version": (BranchNotFound, lambda og: og.run_query_at(1, STOCK, branch="none")),
    "commit": (CommitNotFound, lambda og: og.query(ReadTarget(snapshot_id="none"), STOCK)),
    "tag": (TagNotFound, lambda og: og.query(ReadTarget(tag="none"), STOCK)),
    "version to come": (SnapshotNotFound, lambda og: og.run_query_at(999, STOCK)),
    "version zero": (SnapshotNotFound, lambda og: og.run_query_at(0, STOCK)),
    "version below": (SnapshotNotFound, lambda og: og.run_query_at(-1, STOCK)),
    "moment": (
        SnapshotNotFound,
        lambda og: og.snapshot_at_time(datetime.now(UTC) - timedelta(days=1)),
    ),
    "entity's version": (SnapshotNotFound, lambda og: og.entity_at(PART, "a", version=999)),
    "name": (QueryNotFound, lambda og: og.query("main", STOCK, "none")),
    "no name for one of two": (QueryNotFound, lambda og: og.query("main", STOCK + "\n" + ONE)),
    "empty text": (QueryNotFound, lambda og: og.query("main", "")),
}


@each("what", UNKNOWN)
def test_what_is_not_there(history: History, what: str) -> None:
    error, act = UNKNOWN[what]
    with pytest.raises(error):
        act(history.og)


def test_an_unknown_entity_or_table_is_none(history: History) -> None:
    version = history.og.snapshot().manifest_version
    assert history.og.entity_at(PART, "none", version=version) is None
    assert history.og.entity_at("node:None", "a", version=version) is None


def test_one_of_several_queries_by_name(history: History) -> None:
    text = f"{STOCK}\n{ONE}\n{ADD}"
    assert history.og.query("main", text, "stock").num_rows == 1
    assert history.og.query("main", text, "one", {"sku": "b"}).to_pylist() == [{"p.stock": 3}]


@pytest.mark.parametrize("text", [ADD, DROP])
def test_a_mutation_is_no_query(history: History, text: str) -> None:
    before = history.og.head_commit_id_for_branch()
    with pytest.raises(ConfigError, match="changes the graph") as refused:
        history.og.query("main", text, params={"sku": "x", "stock": 1})
    assert refused.value.hint == "run it as a mutation, not as a read"
    assert history.og.head_commit_id_for_branch() == before


def test_a_read_is_no_mutation(history: History) -> None:
    with pytest.raises(ConfigError):
        history.og.mutate(STOCK)


def test_text_that_is_wrong(history: History) -> None:
    with pytest.raises(QuerySyntaxError):
        history.og.query("main", "query q( { }")
    with pytest.raises(CompileError) as refused:
        history.og.query("main", "query q() { match { $p: Prat } return { $q.sku } }")
    assert [item.code for item in refused.value.diagnostics] == ["T1", "T6"]


def test_parameters_are_checked_before_anything_is_read(history: History) -> None:
    with pytest.raises(ParameterError) as refused:
        history.og.query("main", ONE, params={"sku": 7, "stock": 1})
    assert len(refused.value.problems) == 2
    assert refused.value.details() == {"problems": list(refused.value.problems)}
    with pytest.raises(ParameterError, match="missing"):
        history.og.query("main", ONE)
