"""Types of a graph as data frames: the same rows as the engine's own, at one snapshot for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as fn

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.spark.source import register
from tests.support.source_worlds import (
    ALL_OF_THING,
    SCHEMA_OF_THING,
    by_id,
    frame,
    many_things,
    small_graph,
    stored,
    things,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return small_graph(tmp_path_factory.mktemp("small") / "graph")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return many_things(tmp_path_factory.mktemp("many") / "graph")


def skus(frame: DataFrame) -> list[str]:
    return sorted(row["sku"] for row in frame.select("sku").collect())


def refusal(of: object, act: str = "load") -> str:
    """What Spark says when a reader is refused."""
    with pytest.raises(AnalysisException) as refused:
        getattr(of, act)()
    return str(refused.value)


def test_every_value_of_every_type(spark: SparkSession, small: Omnigraph) -> None:
    found = frame(spark, small)
    assert found.schema.simpleString() == SCHEMA_OF_THING
    assert [field.name for field in found.schema if not field.nullable] == ["id", "sku"]
    everything = frame(spark, small, columns=ALL_OF_THING)
    assert by_id(everything.toArrow()) == stored(small)
    edges = frame(spark, small, "edge:lies")
    assert edges.schema.simpleString() == "struct<id:string,src:string,dst:string,since:date>"
    assert by_id(edges.toArrow()) == stored(small, "edge:Lies")


def test_columns_are_chosen_by_name_or_by_a_schema(spark: SparkSession, small: Omnigraph) -> None:
    by_name = frame(spark, small, columns="photo, sku,photo#uri")
    assert by_name.columns == ["photo", "sku", "photo#uri"]
    photos = {row["sku"]: (row["photo"], row["photo#uri"]) for row in by_name.collect()}
    assert photos == {
        "nothing": (None, None),
        "least": (b"", None),
        "most": (b"\x00\x01\x02\xff", None),
        "zero": (None, "https://example.org/photo.png"),
    }
    register(spark)
    reader = spark.read.format("omnigraph").option("type", "Thing")
    typed = reader.schema("shape array<float>, huge decimal(20,0)").load(small.uri)
    assert sorted(map(str, typed.collect())) == sorted(
        map(str, frame(spark, small).select("shape", "huge").collect())
    )


def test_a_filter_is_judged_by_lance(spark: SparkSession, many: Omnigraph) -> None:
    assert many.ensure_indices()
    few = frame(spark, many, where="`large` >= 195 AND sku <> 't0199'", rows_per_partition=20)
    assert skus(few) == ["t0195", "t0196", "t0197", "t0198"]
    assert few.filter("large < 197").count() == 2


def test_uses_of_one_frame_do_not_mix(spark: SparkSession, many: Omnigraph) -> None:
    """Even where Spark offers conditions to sources."""
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    all_things = frame(spark, many)
    one, other = all_things.filter("large = 11"), all_things.filter("large = 12")
    assert one.count() == 1
    assert all_things.count() == 180
    assert skus(one.union(other).union(one)) == ["t0011", "t0011", "t0012"]


def test_sparks_own_pushdown_still_mixes_uses_of_a_frame(spark: SparkSession) -> None:
    """The reason why readers take no conditions; once this fails they may."""
    from tests.support.pushing_source import PushingSource

    spark.dataSource.register(PushingSource)
    numbers = spark.read.format("pushing").load()
    assert numbers.filter("n = 2").count() == 1
    assert numbers.count() == 1, "there are three"


def test_partitions_are_groups_of_fragments(spark: SparkSession, many: Omnigraph) -> None:
    def partitions(**options: object) -> int:
        found = frame(spark, many, **options).groupBy(fn.spark_partition_id()).count().collect()
        assert sum(row["count"] for row in found) == 180
        return len(found)

    assert partitions() == 1
    assert partitions(rows_per_partition=90) == 2


def test_a_type_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    og = Omnigraph.init(str(tmp_path / "graph"), "node Thing { sku: String @key }")
    assert frame(spark, og).collect() == []


def test_a_frame_stays_at_its_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    og = many_things(tmp_path / "graph", loads=2, each=20)
    inferred = frame(spark, og)
    typed = spark.read.format("omnigraph").options(graph=og.uri, type="Thing")
    with_schema = typed.schema("sku string, large bigint").load()
    assert inferred.count() == with_schema.count() == 36
    og.load(things({"sku": "new"}), mode="merge")
    og.mutate("query q() { delete Thing where small = 4 }")
    og.optimize()
    for found in (inferred, with_schema):
        assert found.count() == 36
    assert inferred.join(with_schema, "sku").count() == 36
    assert frame(spark, og).count() == 33


def test_everything_wrong_with_options_is_said_at_once(
    spark: SparkSession, small: Omnigraph
) -> None:
    register(spark)
    reader = spark.read.format("omnigraph").options(
        typ="Thing", branch="main", tag="v1", version="0", rows_per_partition="many"
    )
    said = refusal(reader)
    for words in (
        "unknown option `typ`: did you mean `type`?",
        "option `graph` is missing",
        "option `type` is missing",
        "`branch`, `tag`: give one of them",
        "`version` is a number from 1 up, not '0'",
        "`rows_per_partition` is a number from 1 up, not 'many'",
    ):
        assert words in said
    assert "node:Thing has no column `image`, `x`" in refusal(
        spark.read.format("omnigraph").options(graph=small.uri, type="Thing", columns="image,sku,x")
    )
    assert "is the address of a server" in refusal(
        spark.read.format("omnigraph").options(graph="http://localhost:1", type="Thing")
    )


def test_a_wrong_schema_or_filter_is_refused(spark: SparkSession, small: Omnigraph) -> None:
    register(spark)
    reader = spark.read.format("omnigraph").options(graph=small.uri, type="Thing")
    wrong = reader.schema("sku string, large int, note string not null, colour string").load()
    said = refusal(wrong, "collect")
    assert "`large` is bigint, not int; `note` may be null; no column `colour`" in said
    unclear = frame(spark, small, where="large > 'x'")
    assert "is no filter of" in refusal(unclear, "collect")


def test_files_that_are_gone_are_told(spark: SparkSession, tmp_path: Path) -> None:
    og = many_things(tmp_path / "graph", loads=1, each=10)
    found = frame(spark, og)
    for path in (tmp_path / "graph" / "nodes").rglob("data/*.lance"):
        path.unlink()
    with pytest.raises(PySparkException, match="the file is gone"):
        found.collect()
