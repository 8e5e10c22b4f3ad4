"""Directories and patterns are loaded alike by one process and by Spark, from disk and from S3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import obstore
import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, ConflictError
from omnigraph_core.spark.runner import SparkRunner
from tests.support import spark_loads
from tests.support.input_folders import MISTAKES, inputs, mistakes, part
from tests.support.load_worlds import SCHEMA, content, outcome
from tests.support.s3 import s3_store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.s3 import S3Server

_ON_DISK = pytest.mark.long("test_mistakes_are_named_by_file_and_line: the same files on disk")
PART_BYTES = 1_000
"""Many parts for each file that can be shared out."""


def folder(path: Path, *, has_mistakes: bool = False) -> Path:
    for name, data in inputs(has_mistakes=has_mistakes).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def both(spark: SparkSession, tmp_path: Path, *given: str) -> tuple[str, object]:
    """What became of a load, in one process and by Spark the same."""
    whole = Omnigraph.init(str(tmp_path / "whole"), SCHEMA)
    Omnigraph.init(str(tmp_path / "spread"), SCHEMA).close()
    expected = outcome(lambda: whole.load(list(given), mode="append"))
    found = spark_loads.load_in_parts(
        SparkRunner(spark), str(tmp_path / "spread"), list(given), "append", PART_BYTES
    )
    assert json.dumps(found) == json.dumps(expected)
    assert content(Omnigraph.open(str(tmp_path / "spread"))) == content(whole)
    return expected


@pytest.mark.long("test_on_s3 loads the same directory; the next test a part of it from disk")
def test_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    kind, result = both(spark, tmp_path, str(folder(tmp_path / "data")))
    assert kind == "loaded"
    assert isinstance(result, dict)
    assert result["nodes_loaded"] == 305


def test_a_pattern_and_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    data = folder(tmp_path / "data")
    _, result = both(spark, tmp_path, f"{data}/20*/*.jsonl*", f"{data}/nodes")
    assert isinstance(result, dict)
    assert result["nodes_loaded"] == 290


def test_mistakes_are_named_by_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    kind, report = both(spark, tmp_path, str(folder(tmp_path / "data", has_mistakes=True)))
    assert kind == "refused"
    assert isinstance(report, list)
    assert mistakes(report) == MISTAKES


@pytest.mark.usefixtures("s3_root")
@pytest.mark.parametrize("has_mistakes", [False, pytest.param(True, marks=_ON_DISK)])
def test_on_s3(
    spark: SparkSession, s3_server: S3Server, tmp_path: Path, *, has_mistakes: bool
) -> None:
    store = s3_store(s3_server.bucket, s3_server.endpoint)
    prefix = f"exports-{has_mistakes}"
    for name, data in inputs(has_mistakes=has_mistakes).items():
        obstore.put(store, f"{prefix}/{name}", data)
    kind, result = both(spark, tmp_path, f"s3://{s3_server.bucket}/{prefix}")
    if has_mistakes:
        assert isinstance(result, list)
        assert mistakes(result) == MISTAKES
    else:
        assert isinstance(result, dict)
        assert (kind, result["nodes_loaded"]) == ("loaded", 305)


def test_steps_read_the_files_of_the_plan(tmp_path: Path) -> None:
    data = folder(tmp_path / "data")
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    graph.plan_load("r1", str(data), engine="local", mode="append")
    graph.plan_load("r1", str(data), engine="local", mode="append")
    (data / "2024" / "0.jsonl").write_text(part(1000))
    steps = Omnigraph.open(str(tmp_path / "graph")).load_steps("r1", engine="local")
    assert steps.read()["node:Part"] == 260
    with pytest.raises(ConflictError, match="loads something else"):
        graph.plan_load("r1", str(data), engine="local", mode="append")
    again = Omnigraph.open(str(tmp_path / "graph")).load_steps("r1", engine="local")
    assert again.commit().nodes_loaded == 305


def test_a_file_that_is_gone_is_named_by_the_step_that_misses_it(tmp_path: Path) -> None:
    data = folder(tmp_path / "data")
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    steps = graph.plan_load("r1", f"{data}/2024/*.jsonl", engine="local")
    (data / "2024" / "3.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"cannot read .*3\.jsonl"):
        steps.read()
