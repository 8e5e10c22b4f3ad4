"""Loads for tests of Spark, as functions of a runner: whoever holds a session can be told to do
them. Arguments and results are JSON."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.writes import load_options
from omnigraph_core.job_report import job_facts
from omnigraph_core.spark.ingest import load as spark_load
from omnigraph_core.spark.ingest import parts
from omnigraph_core.write.sources import open_sources
from tests.support import spark_jobs
from tests.support.load_worlds import outcome

if TYPE_CHECKING:
    from omnigraph_core.spark.runner import Runner, SparkRunner


def load(runner: Runner, graph: str, data: list[str], **options: Any) -> Any:
    """What became of a load; the session of the runner does it."""
    opened = Omnigraph.open(graph)
    return outcome(
        partial(
            spark_load.load,
            opened._context,
            open_sources(data),
            load_options("main", **options),
            runner,
        )
    )


def reported_load(_: Runner, graph: str, data: str) -> Any:
    """What a load with the session of this process says about its jobs."""
    return Omnigraph.open(graph).load(data, mode="append", engine="spark").spark


def load_slowly(
    runner: SparkRunner, graph: str, data: list[str], directory: str, wait: str, part_bytes: int
) -> Any:
    """A load in parts whose tasks wait, as the function of that name in `spark_jobs` says."""
    slow = spark_jobs.Slow(runner, getattr(spark_jobs, wait), directory)
    return load_in_parts(slow, graph, data, "append", part_bytes)


def load_forgetting(
    runner: SparkRunner, graph: str, data: list[str], directory: str, number: int, part_bytes: int
) -> Any:
    """A load in parts of which one task of each job is lost once, and what it says of its jobs."""
    forgetting = spark_jobs.Forgetting(runner, directory, number)
    with job_facts(operation="load") as report:
        told = load_in_parts(forgetting, graph, data, "append", part_bytes)
    return [told, report.to_json()["jobs"]]


def load_in_parts(runner: Runner, graph: str, data: list[str], mode: str, part_bytes: int) -> Any:
    """The same in parts of a size."""
    whole = spark_load.split
    spark_load.split = partial(parts.split, part_bytes=part_bytes)
    try:
        return load(runner, graph, data, mode=mode)
    finally:
        spark_load.split = whole
