"""Where a read runs: in this process, or beyond it on Spark.

Spark is loaded by name and only when it is asked for: nobody else pays for it, or needs it.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core import settings
from omnigraph_core.errors import ConfigError
from omnigraph_core.plan.estimate import Estimator

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.run import Limits
    from omnigraph_core.plan.estimate import Stats
    from omnigraph_core.plan.steps import QueryPlan
    from omnigraph_core.schema.catalog import Catalog

LOCAL: Final = "local"
SPARK: Final = "spark"
AUTO: Final = "auto"
ENGINES: Final = (LOCAL, SPARK, AUTO)

_HINT: Final = "pip install 'omnigraph[spark]'"
_MODULE: Final = "omnigraph_core.spark.query.run"


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine of a read, and why it is that one."""

    engine: str
    reason: str

    def __str__(self) -> str:
        return f"{'on Spark' if self.engine == SPARK else 'in this process'}: {self.reason}"


def check_engine(engine: str) -> None:
    """
    Raises:
        ConfigError: there is no such engine.
    """
    if engine not in ENGINES:
        raise ConfigError(f"`engine` is {engine!r}", hint=f"give one of {', '.join(ENGINES)}")


def chosen(engine: str, plan: QueryPlan, stats: Stats, catalog: Catalog) -> Choice:
    """Where a plan runs on tables of these sizes; `auto` decides by the rows that are expected."""
    if engine != AUTO:
        return Choice(engine, "as asked for")
    largest = Estimator(stats, catalog).largest(plan.steps)
    most = settings.SPARK_ROWS.read()
    if largest.rows <= most:
        return Choice(LOCAL, f"no step has to do with more than {most:,} rows")
    reason = f"{largest.label} ~{int(float(f'{largest.rows:.1e}')):,} rows, more than {most:,}"
    if not is_installed():
        return Choice(LOCAL, f"{reason}, but pyspark is not installed")
    return Choice(SPARK, reason)


def execute_on_spark(
    graph: GraphData,
    read: ReadPlan,
    params: Mapping[str, object] | None,
    embedder: Embedder,
    limits: Limits,
) -> pa.Table:
    """The rows of a read, found by Spark; equal to what this process would find.

    Raises:
        ConfigError: Spark is not installed, or does not start.
        JobFailed: it could not carry the read out.
        And what `exec.run.execute` raises.
    """
    spark: Any = import_spark(_MODULE)
    rows: pa.Table = spark.execute(graph, read, params, embedder, limits)
    return rows


def import_spark(module: str) -> Any:
    """A module of ours that needs Spark.

    Raises:
        ConfigError: Spark is not installed.
    """
    if not is_installed():
        raise ConfigError("Spark needs the package `pyspark`", hint=_HINT)
    return importlib.import_module(module)


def is_installed() -> bool:
    return importlib.util.find_spec("pyspark") is not None
