"""A whole snapshot as views: all types at one commit, whatever others commit meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import BranchNotFound, ConfigError
from omnigraph_core.spark.source import read_snapshot
from tests.support.source_worlds import by_id, small_graph, stored, things

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def views(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, without views of other tests."""
    yield spark
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)


def names(session: SparkSession) -> set[str]:
    """Of views; Spark takes no notice of their case."""
    return {table.name for table in session.catalog.listTables() if table.isTemporary}


def count(session: SparkSession, view: str) -> int:
    rows = session.sql(f"SELECT count(*) FROM {view}").collect()
    return int(rows[0][0])


def test_every_type_is_a_view_at_one_commit(views: SparkSession, tmp_path: Path) -> None:
    og = small_graph(tmp_path / "graph")
    commit = read_snapshot(views, og.uri)
    assert commit == og.head_commit_id_for_branch()
    assert names(views) == {"node_thing", "node_place", "edge_lies"}
    og.mutate('query q() { delete Thing where sku = "most" }')
    joined = views.sql(
        "SELECT t.sku, p.name, e.since FROM edge_Lies e "
        "JOIN node_Thing t ON t.id = e.src JOIN node_Place p ON p.id = e.dst ORDER BY t.sku"
    )
    assert [(row["sku"], row["name"]) for row in joined.collect()] == [
        ("least", "attic"),
        ("most", "cellar"),
    ]
    assert count(views, "node_Thing WHERE sku = 'most'") == 1
    assert (count(views, "node_Thing"), count(views, "edge_Lies")) == (4, 2)
    later = read_snapshot(views, og.uri)
    assert later != commit
    assert (count(views, "node_Thing"), count(views, "edge_Lies")) == (3, 1)
    earlier = read_snapshot(views, og.uri, commit=commit, prefix="before_", types=["Thing"])
    assert earlier == commit
    assert (count(views, "before_node_Thing"), count(views, "node_Thing")) == (4, 3)
    assert "before_edge_lies" not in names(views)


def test_a_snapshot_of_any_state(views: SparkSession, tmp_path: Path) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), "node Thing { sku: String @key }")
    og.load(things({"sku": "a"}))
    og.tag_create("v1")
    og.branch_create("side")
    og.load(things({"sku": "b"}), branch="side")
    side = og.head_commit_id_for_branch("side")
    assert read_snapshot(views, og.uri, branch="side") == side
    assert count(views, "node_Thing") == 2
    read_snapshot(views, og.uri, tag="v1", prefix="tagged ")
    assert count(views, "`tagged node_Thing`") == 1
    assert read_snapshot(views, og.uri, version=1) == og.list_commits()[-1].graph_commit_id
    assert count(views, "node_Thing") == 0
    found = by_id(views.sql("SELECT * FROM `tagged node_Thing`").toArrow())
    assert found == stored(og)


def test_what_cannot_be_read_is_an_error_of_ours(views: SparkSession, tmp_path: Path) -> None:
    og = Omnigraph.init(
        str(tmp_path / "graph"), "node Thing { sku: String @key }\nnode THING { n: I64? }"
    )
    with pytest.raises(ConfigError, match="Spark has one name for `node_THING`, `node_Thing`"):
        read_snapshot(views, og.uri)
    with pytest.raises(ConfigError, match="unknown type `Thng`"):
        read_snapshot(views, og.uri, types=["Thng"])
    with pytest.raises(ConfigError, match="give one of them"):
        read_snapshot(views, og.uri, branch="main", tag="v1")
    with pytest.raises(BranchNotFound):
        read_snapshot(views, og.uri, branch="none")
    assert names(views) == set()
    read_snapshot(views, og.uri, types=["Thing"])
    assert names(views) == {"node_thing"}
