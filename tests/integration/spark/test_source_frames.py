"""Data frames of several types into a graph: one commit, checked as every load on Spark is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, DataError
from omnigraph_core.spark.source import load_frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = """
node Part { sku: String @key  stock: U64? }
edge Fits: Part -> Part { @unique(src, dst) }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    return Omnigraph.init(str(tmp_path / "graph"), _SCHEMA)


def left(graph: Omnigraph) -> list[Path]:
    return [path for path in (Path(graph.uri) / "_scratch").rglob("*") if path.is_file()]


def test_types_land_together(spark: SparkSession, graph: Omnigraph) -> None:
    parts = spark.range(0, 40, 1, 3).selectExpr("concat('p', id) AS sku", "id AS stock")
    fits = spark.range(1, 40, 1, 2).selectExpr("concat('p', id) AS src", "'p0' AS dst")
    before = graph.snapshot("main").manifest_version
    loaded = load_frames(graph, {"Part": parts, "edge:Fits": fits}, idempotency_key="once")
    assert (loaded.nodes_loaded, loaded.edges_loaded) == (40, 39)
    assert graph.snapshot("main").manifest_version == before + 1
    again = {"Part": parts.repartition(2), "edge:Fits": fits.coalesce(1)}
    assert load_frames(graph, again, idempotency_key="once").is_repeat
    assert graph.verify(is_deep=True).is_sound
    assert left(graph) == []


def test_rows_that_break_a_rule(spark: SparkSession, graph: Omnigraph) -> None:
    parts = spark.createDataFrame([("p1",), ("p2",)], "sku string").coalesce(1)
    fits = spark.createDataFrame([("p1", "p9"), ("p1", "p2")], "src string, dst string").coalesce(1)
    with pytest.raises(DataError, match=r"edge:Fits, partition 0, row 1: .*p9"):
        load_frames(graph, {"Part": parts, "edge:Fits": fits})
    assert graph.snapshot("main").table("node:Part").row_count == 0
    assert left(graph) == []


def test_what_cannot_be_is_refused_before_anything_runs(
    spark: SparkSession, graph: Omnigraph
) -> None:
    never = spark.range(1).selectExpr("assert_true(false) AS colour", "'p' AS sku")
    with pytest.raises(DataError, match="unknown column `colour` of Part"):
        load_frames(graph, {"Part": never})
    with pytest.raises(ConfigError, match="no data frame"):
        load_frames(graph, {})
    nothing = spark.createDataFrame([], "sku string")
    with pytest.raises(ConfigError, match="would empty Part"):
        load_frames(graph, {"Part": nothing}, mode="overwrite")
