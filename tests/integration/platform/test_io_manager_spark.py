"""Frames of Spark that assets return and take: staged, published and read on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.integration.platform.test_io_manager import commits, metadata_of, rows_of
from tests.support.later import Later

if TYPE_CHECKING:
    from pathlib import Path

    import dagster as dg
    import polars as pl
    import pytest
    from pyspark.sql import SparkSession

    from omnigraph_assets.assets import publish
    from tests.support import frame_assets
else:
    dg, pl = Later("dagster"), Later("polars")
    frame_assets = Later("tests.support.frame_assets")
    publish = Later("omnigraph_assets.assets.publish")


def test_frames_of_spark(
    spark: SparkSession,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyspark.sql import DataFrame

    monkeypatch.setenv("FRAMES_FOLDER", str(tmp_path))
    graph = Omnigraph.init(str(tmp_path / "graph"), frame_assets.SCHEMA)
    people = spark.range(0, 30, 1, 3).selectExpr("concat('p', id) AS name", "int(id) AS age")
    asset = frame_assets.asset_of("Person", people)
    knows = frame_assets.asset_of("Knows", pl.DataFrame({"src": ["p1"], "dst": ["p2"]}))
    end = publish.publish_graph_asset([asset, knows])
    memory = {"io_manager_key": "memory"}
    reader = frame_assets.reader_of("Person", DataFrame, deps=[end], **memory)
    before = commits(graph)
    graph_io = frame_assets.graph_io(engine="spark")
    resources = {"graph_io": graph_io, "memory": dg.mem_io_manager}
    result = dg.materialize([asset, knows, end, reader], instance=instance, resources=resources)
    assert result.success
    assert metadata_of(result, "Person")["dagster/row_count"] == 30
    assert metadata_of(result, "graph_publish")["spark_jobs"]
    assert commits(graph) == before + 1
    assert (rows_of(graph)["node:Person"], rows_of(graph)["edge:Knows"]) == (30, 1)
    assert result.output_for_node("read_Person").where("age > 9").count() == 20
