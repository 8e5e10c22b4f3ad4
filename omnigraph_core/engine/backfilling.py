"""Where a backfill of vectors runs: in this process, or on Spark if it is asked for."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.engine.beyond import SPARK, check_engine, spark_module
from omnigraph_core.job_report import job_facts
from omnigraph_core.write.backfill import backfill
from omnigraph_core.write.batch_embed import embed_in_batches
from omnigraph_core.write.paid_vectors import PaidVectors, paid_vectors
from omnigraph_core.write.progress import Reporter

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
        return _backfill_here(context, options, embedder, progress=progress)
    with job_facts(operation="embed", branch=options.branch) as report:
        spark = spark_module("embed.backfill")
        result: BackfillResult = spark.backfill_on_spark(context, options, progress=progress)
    return replace(result, spark=report.result)


def _backfill_here(
    context: GraphContext, options: WriteOptions, embedder: Embedder, *, progress: Listener | None
) -> BackfillResult:
    """Backfill with what batches have brought, or a backfill that was killed has left."""
    reporter = Reporter(progress)
    embed_in_batches(context, options.branch, embedder, reporter)
    kept = paid_vectors(context.store, context.head(options.branch)[0].incarnation)
    names = kept.names("")
    if not names:
        return backfill(context, options, embedder, reporter)
    with closing(embedder.with_kept(PaidVectors(kept))) as richer:
        result = backfill(context, options, richer, reporter)
    kept.remove(names)
    return result
