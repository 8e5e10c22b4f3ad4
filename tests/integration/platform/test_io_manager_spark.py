"""Frames of Spark that assets return and take: staged, published and read on Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.staged_frames import make_spark_frame
from omnigraph_core.errors import ConfigError
from tests.integration.platform.test_io_manager import commits, metadata_of, rows_of
from tests.support.later import Later

if TYPE_CHECKING:
    from pathlib import Path

    import dagster as dg
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from omnigraph_assets.assets import publish
    from tests.support import frame_assets
else:
    dg, pl, pa = Later("dagster"), Later("polars"), Later("pyarrow")
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


def test_frames_of_other_libraries_as_frames_of_spark(
    spark: SparkSession,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyspark.sql import DataFrame

    monkeypatch.setenv("FRAMES_FOLDER", str(tmp_path))
    Omnigraph.init(str(tmp_path / "graph"), frame_assets.SCHEMA)
    at = datetime(2001, 2, 3, 4, 5, tzinfo=UTC)
    moment = pa.array([int(at.timestamp() * 1000)], pa.int64()).view(pa.date64())
    people = pa.table(
        {
            "name": pa.array(["ann"], pa.string_view()),
            "age": pa.array([31], pa.uint32()),
            "born": moment,
        }
    )
    asset = frame_assets.asset_of("Person", people)
    memory = {"io_manager_key": "memory"}
    reader = frame_assets.reader_of("Person", DataFrame, **memory)  # no publish is waited for
    resources = {"graph_io": frame_assets.graph_io(), "memory": dg.mem_io_manager}
    result = dg.materialize([asset, reader], instance=instance, resources=resources)
    frame = result.output_for_node("read_Person")
    (row,) = frame.selectExpr("name", "age", "unix_millis(born)").collect()
    assert tuple(row) == ("ann", 31, at.timestamp() * 1000)
    coded = pa.table({"tags": pa.array([["a"]]), "code": pa.array(["a"]).dictionary_encode()})
    assert make_spark_frame(spark, coded).first().asDict() == {"tags": ["a"], "code": "a"}
    views = pa.table({"tags": pa.array([["a"]], pa.list_view(pa.string()))})
    with pytest.raises(ConfigError, match="no type for columns: `tags` is list_view"):
        make_spark_frame(spark, views)
