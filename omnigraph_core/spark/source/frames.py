"""Data frames of any source of Spark into a graph: several types with one commit.

Tasks leave the rows of each frame as files beside the graph, so that a frame is evaluated once,
whatever it would say the next time. Then they are loaded on Spark like any other files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Unpack

import pyarrow as pa

from omnigraph_core.engine.beyond import SPARK
from omnigraph_core.engine.writes import load_options, load_sources
from omnigraph_core.errors import ConfigError
from omnigraph_core.ids import new_ulid
from omnigraph_core.job_report import job_facts
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.spark.jobs import run
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.source.columns import arrow_schema
from omnigraph_core.spark.source.landing import dry_run, sources_of
from omnigraph_core.spark.source.writer import Written, write_parts
from omnigraph_core.spark.worker import take_on
from omnigraph_core.storage.places import shared_store
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.engine.writes import LoadKeywords
    from omnigraph_core.write.load_model import LoadResult

_WRITTEN: Final = "partition int, parts string, row_hash string, row_count bigint"


def load_frames(
    graph: Omnigraph,
    frames: Mapping[str, DataFrame],
    *,
    branch: str = MAIN,
    **options: Unpack[LoadKeywords],
) -> LoadResult:
    """Load the rows of data frames, each of one type, with one commit.

    Args:
        frames: by type, `Person` or `edge:Knows`; all of one session. Columns are named like
            properties; edges have `src` and `dst`, or `from` and `to`.

    The other arguments, and what is raised, are those of `load`. Tasks do all that grows with rows.

    Raises:
        ConfigError: there is no frame, or an empty one to overwrite its type with; or rejects are
            to be written, which name lines of files.
        DataError: every column that its type cannot take, before anything runs; or the rows that
            break a rule.
    """
    if not frames:
        raise ConfigError("there is no data frame to load")
    if options.get("rejects") is not None:
        raise ConfigError("rows of data frames have no lines to write to a file of rejects")
    chosen = load_options(branch, **options)
    dry_run(graph, {name: arrow_schema(frame.schema) for name, frame in frames.items()}, chosen)
    scratch = Scratch(shared_store(graph.uri), new_ulid())
    is_hashed = chosen.write.idempotency_key is not None
    try:
        with job_facts(operation="load", branch=branch):
            sources = []
            for name, frame in frames.items():
                with job_facts(type=name):
                    written = write_frame(frame, scratch, is_hashed=is_hashed)
                sources += sources_of(name, written, scratch, chosen.mode, name_before=f"{name}, ")
            return load_sources(graph, sources, chosen, engine=SPARK)
    finally:
        scratch.clear()


def write_frame(frame: DataFrame, scratch: Scratch, *, is_hashed: bool) -> list[Written]:
    """Have tasks leave the rows of a frame as files beside a graph; by partition what they left.

    Args:
        is_hashed: the load has a key, under which the same rows are known again.
    """
    session = frame.sparkSession
    work = _writer(scratch.address("")[0], scratch.job, SparkRunner(session).variables(), is_hashed)
    rows = run(
        session, lambda: frame.mapInArrow(work, _WRITTEN).collect(), name="write rows of a frame"
    )
    ordered = sorted(rows, key=lambda row: row["partition"])
    return [
        Written(tuple(json.loads(row["parts"])), int(row["row_hash"]), row["row_count"])
        for row in ordered
    ]


def _writer(
    root: str, job: str, environment: Mapping[str, str], is_hashed: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for `mapInArrow`: the rows of a partition come in, what it has left goes out."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        take_on(environment)
        task = TaskContext.get()
        assert task is not None  # this runs on an executor
        written = write_parts(Scratch(shared_store(root), job), batches, is_hashed=is_hashed)
        yield pa.RecordBatch.from_pydict(
            {
                "partition": pa.array([task.partitionId()], pa.int32()),
                "parts": [json.dumps(written.parts)],
                "row_hash": [str(written.row_hash)],
                "row_count": pa.array([written.row_count], pa.int64()),
            }
        )

    return work
