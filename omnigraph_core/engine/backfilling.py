"""Where a backfill of vectors runs: in this process, or on Spark if it is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.engine.beyond import SPARK, check_engine, spark_module
from omnigraph_core.job_report import job_facts
from omnigraph_core.write.backfill import backfill

if TYPE_CHECKING:
    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.write.backfill import BackfillResult
    from omnigraph_core.write.commit import WriteOptions
    from omnigraph_core.write.progress import Listener


def backfill_with(
    engine: str,
    context: GraphContext,
    options: WriteOptions,
    embedder: Embedder,
    *,
    progress: Listener | None,
) -> BackfillResult:
    """Backfill with an engine. Only who asks for Spark gets it: it makes one commit, not many.

    Raises:
        ConfigError: there is no such engine, or Spark is not installed.
    """
    check_engine(engine)
    if engine != SPARK:
        return backfill(context, options, embedder, progress=progress)
    with job_facts(operation="embed", branch=options.branch) as report:
        spark = spark_module("embed.backfill")
        result: BackfillResult = spark.backfill_on_spark(context, options, progress=progress)
    return replace(result, spark=report.result)
