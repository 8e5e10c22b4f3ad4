"""What needs the store itself: tables, staged versions, leases and other actors; on disk and S3."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.linking import TopologyOutcome
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import (
    AlreadyExists,
    GraphNotFound,
    PreconditionFailed,
    TableNotFound,
    VersionConflict,
)
from omnigraph_core.manifest.changes import AdoptTable
from omnigraph_core.manifest.requirements import HeadIs, requirements_of
from omnigraph_core.policy.model import Action
from omnigraph_core.settings import PUBLISH_LEASE
from tests.behaviour.conftest import ON_S3
from tests.behaviour.stock import SCHEMA, amounts, bin_, part, put
from tests.support.ageing import grow_old
from tests.support.ways import Way

if TYPE_CHECKING:
    from tests.support.ways import Place

pytestmark = pytest.mark.parametrize("way", [Way.PATH, ON_S3], indirect=True, scope="module")


def test_graphs_are_made_once_and_opened_where_they_are(place: Place) -> None:
    uri = place.graph.uri
    with pytest.raises(AlreadyExists):
        Omnigraph.init(uri, SCHEMA)
    with Omnigraph.open(uri, actor="ada") as opened:
        assert (opened.uri, opened.actor) == (uri, "ada")
        assert amounts(opened) == amounts(place.graph)
    with pytest.raises(GraphNotFound):
        Omnigraph.open(f"{uri}-elsewhere")


def test_tables_of_a_snapshot(place: Place) -> None:
    graph = place.graph
    before = graph.snapshot()
    put(graph, bin_("b3"))
    assert graph.table(before, "node:Bin").count_rows() == 2
    assert graph.table(graph.snapshot(), "node:Bin").count_rows() == 3
    with pytest.raises(TableNotFound):
        graph.table(before, "node:None")


def test_the_steps_of_a_load_run_apart(place: Place) -> None:
    graph = place.graph
    before = graph.snapshot().manifest_version
    graph.plan_load("steps", json.dumps(bin_("b3")).encode(), engine="local")
    assert graph.load_steps("steps", engine="local").read() == {"node:Bin": 1}
    assert graph.load_steps("steps", engine="local").stage("node:Bin") == 3
    assert graph.snapshot().manifest_version == before
    assert graph.load_steps("steps", engine="local").commit().nodes_loaded == 1
    assert graph.snapshot().manifest_version == before + 1


def test_a_snapshot_that_is_held_outlives_cleanup(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = place.graph
    first = graph.snapshot_at_version(1)
    for name in ("b3", "b4"):
        put(graph, bin_(name))
    grow_old(timedelta(seconds=1))
    monkeypatch.setenv(PUBLISH_LEASE.name, "0.5")

    def versions_kept() -> list[int]:
        report = graph.cleanup(keep=1, grace=timedelta(seconds=1), is_preview=True)
        return [item.versions_kept for item in report.branches]

    with graph.hold(first, purpose="a test", lasting=timedelta(minutes=5)) as state:
        assert state.snapshot.manifest_version == 1
        assert versions_kept() == [2]
    assert versions_kept() == [1]


def test_links_of_few_edges_are_kept_nowhere(place: Place) -> None:
    graph = place.graph
    made = graph.build_topology()
    assert {item.outcome for item in made} == {TopologyOutcome.SMALL}
    assert [item.table_key for item in made] == ["edge:Holds"]


def test_tables_that_are_there_are_committed_together(place: Place) -> None:
    graph = place.graph
    graph.branch_create("side")
    put(graph, bin_("b3"), part("nail"), branch="side")
    side, main = graph.snapshot("side"), graph.snapshot()
    keys = ("node:Bin", "node:Part")
    changes = [AdoptTable(side.table(key), side.read_at) for key in keys]
    needed = requirements_of(main, touched=keys)
    with pytest.raises(PreconditionFailed):
        graph.commit(changes, [*needed, HeadIs(side.commit.graph_commit_id)])
    head = graph.head_commit_id_for_branch()
    assert head == main.commit.graph_commit_id
    done = graph.commit(changes, [*needed, HeadIs(head)], operation="adopt", actor="ada")
    assert (done.actor_id, done.operation, done.parent_commit_id) == ("ada", "adopt", head)
    assert graph.head_commit_id_for_branch() == done.graph_commit_id
    assert "nail" in amounts(graph)
    with pytest.raises(VersionConflict):
        graph.commit(changes, needed)  # these tables have moved since
    checked = graph.commit([], [HeadIs(done.graph_commit_id)])
    assert checked.graph_commit_id == done.graph_commit_id  # nothing to do


def test_others_act_with_the_same_graph(place: Place) -> None:
    graph = place.graph
    ada = graph.acting_as("ada")
    put(ada, bin_("b3"))
    assert (graph.actor, ada.actor) == (None, "ada")
    assert graph.snapshot().commit.actor_id == "ada"
    assert ada.rights.allows(Action.ADMIN)  # there is no policy
