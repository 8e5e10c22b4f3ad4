"""The way from the engine to loads on Spark: when they are worth it, and a session for them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.job_report import job_facts
from omnigraph_core.spark.ingest.load import load
from omnigraph_core.spark.ingest.steps import LoadSteps
from omnigraph_core.spark.runner import InProcessRunner, SparkRunner
from omnigraph_core.spark.session import open_session
from omnigraph_core.spark.settings import LOAD_FROM, is_elsewhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.write.load_model import LoadOptions, LoadResult
    from omnigraph_core.write.sources import Source


def is_worth_it(sources: Sequence[Source]) -> bool:
    """Whether a load is large enough for Spark.

    On one machine Spark is never faster; it is used for inputs larger than its memory, for a load
    in one process holds the keys. Other machines are used from a size on, which can be set.
    """
    size = sum(source.size for source in sources)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return size >= (LOAD_FROM.read() if is_elsewhere() else memory)


def load_on_spark(
    context: GraphContext, sources: Sequence[Source], options: LoadOptions
) -> LoadResult:
    """Load with the session of this process, which is opened if there is none.

    Raises:
        ConfigError: Spark cannot be started or reached.
        DataError, ConflictError, EmbeddingError: as of every load.
        JobFailed: a task failed in a way that is no fault of the input.
    """
    with job_facts(operation="load", branch=options.write.branch) as report:
        loaded = load(context, sources, options, SparkRunner(open_session()))
    return replace(loaded, spark=report.result)


def load_steps(context: GraphContext, branch: str, run: str, *, is_local: bool) -> LoadSteps:
    """The steps of a run, by tasks of the session of this process or one after the other in it.

    Raises:
        ConfigError: no run can have such a name, or Spark cannot be started or reached.
    """
    runner = InProcessRunner() if is_local else SparkRunner(open_session())
    return LoadSteps(context, branch, run, runner)
