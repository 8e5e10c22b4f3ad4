"""Data frames into a graph: one commit by the rules of every load, or nothing and all reasons."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import AnalysisException

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.spark.source import register
from tests.support.source_worlds import ALL_OF_THING, SCHEMA, frame, small_graph, stored, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return small_graph(tmp_path_factory.mktemp("small") / "graph")


def left(og: Omnigraph) -> list[str]:
    """What jobs have left beside the graph."""
    return [path.name for path in (Path(og.uri) / "_scratch").rglob("*") if path.is_file()]


def test_every_value_comes_back(spark: SparkSession, small: Omnigraph, tmp_path: Path) -> None:
    copy = Omnigraph.init(str(tmp_path / "copy"), SCHEMA)
    for type in ("Thing", "Place", "edge:Lies"):
        read = frame(spark, small, type, **({"columns": ALL_OF_THING} if type == "Thing" else {}))
        write(read, copy, type, actor="ada")
    for key in ("node:Thing", "node:Place", "edge:Lies"):
        assert stored(copy, key) == stored(small, key)
    assert copy.verify(is_deep=True).is_sound
    assert left(copy) == []
    assert [commit.actor_id for commit in copy.list_commits()] == ["ada", "ada", "ada", None]


def test_a_wrong_write_is_refused_before_anything_runs(
    spark: SparkSession, small: Omnigraph
) -> None:
    def never(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise AssertionError("it was run")

    schema = "sku string, colour string, large boolean"
    unread = spark.createDataFrame([("a", "b", True)], schema).mapInArrow(never, schema)
    with pytest.raises(AnalysisException) as refused:
        write(unread, small)
    for words in (
        "unknown column `colour` of Thing",
        "Thing.large: expected I64?, found a column of bool",
    ):
        assert words in str(refused.value)
    register(spark)
    sink = unread.write.format("omnigraph").options(mode="replace", embed="later", tag="v1")
    with pytest.raises(AnalysisException) as refused:
        sink.mode("append").save()
    for words in (
        "unknown option `tag`",
        "option `graph` is missing",
        "option `type` is missing",
        "`mode` is one of overwrite, append, merge, not 'replace'",
        "`embed` is one of now, defer, off, not 'later'",
    ):
        assert words in str(refused.value)


WIDE = 1 << 20


def wide_rows(
    marks: str, deaths: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows of a megabyte; the worker dies after most of them, so many times."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            for place, sku in enumerate(batch.column(0).to_pylist()):
                if place == 70 and context.attemptNumber() < deaths:
                    (Path(marks) / f"{deaths}-{context.attemptNumber()}").touch()
                    os._exit(1)
                yield pa.RecordBatch.from_pydict({"sku": [sku], "note": [sku * (WIDE // 8)]})

    return made


def test_tasks_that_die(spark: SparkSession, tmp_path: Path) -> None:
    """One that is tried again writes once; a job whose tasks all fail has not been."""
    failed = Omnigraph.init(str(tmp_path / "failed"), SCHEMA)
    skus = spark.createDataFrame([(f"w{n:07}",) for n in range(72)], "sku string").coalesce(1)
    schema = "sku string, note string"
    with pytest.raises(Py4JJavaError, match="failed 3 times"):
        write(skus.mapInArrow(wide_rows(str(tmp_path), 9), schema), failed)
    # The last attempt may still be writing a part: what it leaves is for cleanup.
    assert (len(failed.list_commits()), stored(failed)) == (1, {})
    og = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    write(skus.mapInArrow(wide_rows(str(tmp_path), 1), schema), og)
    assert sorted(path.name for path in tmp_path.glob("?-?")) == ["1-0", "9-0", "9-1", "9-2"]
    found = stored(og)
    assert len(found) == 72
    assert found["w0000071"]["note"] == "w0000071" * (WIDE // 8)
    assert left(og) == [], "also what the first attempt wrote is gone"
