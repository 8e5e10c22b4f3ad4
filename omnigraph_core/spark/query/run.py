"""One read on Spark from parameters to rows: the conductor of the lowering.

A snapshot, a plan and parameters come in; a table of exactly the schema that the plan promises goes
out, equal to what the engine of one process finds. Tables are read by the executors, at the
versions that the snapshot names; what comes back are the rows of the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from omnigraph_core.errors import JobFailed
from omnigraph_core.exec.query_vectors import QueryVectors
from omnigraph_core.exec.run import NO_LIMITS, given_values
from omnigraph_core.exec.window import window_of
from omnigraph_core.interruption import interrupted_by
from omnigraph_core.plan.estimate import Estimator
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import Nearest
from omnigraph_core.spark.query.actions import Actions
from omnigraph_core.spark.query.cells import CellTypes
from omnigraph_core.spark.query.collect import collected
from omnigraph_core.spark.query.context import Context, SnapshotCounts
from omnigraph_core.spark.query.frame import column
from omnigraph_core.spark.query.joins import Joins
from omnigraph_core.spark.query.result import check_window, lower_read
from omnigraph_core.spark.query.scan import ROW
from omnigraph_core.spark.query.searching import Sought
from omnigraph_core.spark.query.statistics import text_statistics
from omnigraph_core.spark.query.tables import Tables
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import open_session, replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.run import Limits
    from omnigraph_core.plan.values import Values


def execute(
    graph: GraphData,
    read: ReadPlan,
    params: Mapping[str, object] | None,
    embedder: Embedder,
    limits: Limits = NO_LIMITS,
    session: SparkSession | None = None,
) -> pa.Table:
    """The rows of a read.

    Args:
        session: unset, the session of this process, which is opened if there is none.

    Raises:
        ParameterError: every parameter that is missing, undeclared, of the wrong type or too small.
        QueryStopped: it needs too much time, or its result too much memory, or it was cancelled.
        EmbeddingError: a text to look for could not be embedded.
        ConfigError: there is no Spark, it does not start, or so many rows cannot be skipped.
        JobFailed: Spark could not carry it out.
    """
    ir = read.plan.ir
    values = given_values(read, params)
    window = window_of(ir, values)
    if window.end == window.start:
        return read.schema.empty_table()
    check_window(window)
    guard = limits.guard()
    with interrupted_by(guard.check):
        vectors = QueryVectors.of(ir, values, graph.catalog, embedder)
        guard.check()

        def found_on(session: SparkSession) -> pa.Table:
            ctx = _context(graph, read, values, vectors, session)
            rows, outputs = lower_read(ctx, read, window)
            names = outputs.names(graph.catalog)
            found = collected(ctx, _selected(rows, names), guard, window)
            most = None if window.end is None else window.end - window.start
            return outputs.table(found.slice(0, most), graph)

        return _on_a_session(found_on, session)


def _on_a_session(
    work: Callable[[SparkSession], pa.Table], session: SparkSession | None
) -> pa.Table:
    """What a read finds, which is begun anew if its session is gone meanwhile."""
    chosen = session or open_session()
    try:
        return work(chosen)
    except (JobFailed, PySparkException) as problem:
        another = None if session is not None else replacement(chosen, problem)
        if another is None:
            raise
    return work(another)


def _context(
    graph: GraphData,
    read: ReadPlan,
    values: Values,
    vectors: QueryVectors,
    session: SparkSession,
) -> Context:
    plan = read.plan
    exprs = (*(key.expr for key in plan.ir.order_by), *(c.expr for c in plan.ir.columns))
    nearest = (term for term in iter_terms(exprs) if isinstance(term, Nearest))
    sought = Sought(values, {term: vectors.vector(term) for term in nearest})
    runner = SparkRunner(session)
    tables = Tables(
        session, graph, CellTypes(read.types, graph.catalog), sought, runner.variables()
    )
    statistics = text_statistics(plan.ir, tables, runner)
    if statistics:
        tables = tables.seeking(replace(sought, statistics=statistics))
    actions = Actions(session, plan.ir.name)
    return Context(
        actions,
        tables,
        Joins(actions),
        Estimator(SnapshotCounts(tables), graph.catalog),
        values,
        is_weighing=plan.ir.is_grouped and not plan.is_set,
    )


def _selected(rows: DataFrame, names: list[str]) -> DataFrame:
    """These columns; of rows that have nothing to tell, that they are there."""
    return rows.select(*(map(column, names) if names else [F.lit(True).alias(ROW)]))
