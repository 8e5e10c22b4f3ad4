"""One read from parameters to rows: the conductor of the executor.

Everything that can be known beforehand (the plan, the schema of the result) comes in; a table of
exactly that schema goes out, or an error, and nothing is left behind either way.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core import settings
from omnigraph_core.clock import now_us
from omnigraph_core.errors import QueryCancelled
from omnigraph_core.exec.collect import run_read
from omnigraph_core.exec.context import Run
from omnigraph_core.exec.guard import Guard, check_limits
from omnigraph_core.exec.point import find_point
from omnigraph_core.exec.query_vectors import QueryVectors
from omnigraph_core.interruption import interrupted_by
from omnigraph_core.plan.least_values import check_least
from omnigraph_core.plan.values import Values
from omnigraph_core.query.params import coerce_params

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.guard import Cancellation
    from omnigraph_core.exec.trace import Trace

_EPOCH: Final = dt.datetime.fromtimestamp(0, dt.UTC)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may use; what is not said comes from the settings."""

    timeout: float | None = None
    memory: int | None = None
    cancellation: Cancellation | None = None

    def __post_init__(self) -> None:
        check_limits(self.timeout, self.memory)

    def guard(self) -> Guard:
        """Begin to count."""
        return Guard(
            budget=settings.QUERY_MEMORY.read() if self.memory is None else self.memory,
            timeout=settings.QUERY_TIMEOUT.read() if self.timeout is None else self.timeout,
            cancellation=self.cancellation,
        )


NO_LIMITS: Final = Limits()


def execute(
    graph: GraphData,
    read: ReadPlan,
    params: Mapping[str, object] | None,
    embedder: Embedder,
    limits: Limits = NO_LIMITS,
    trace: Trace | None = None,
) -> pa.Table:
    """The rows of a read.

    Raises:
        ParameterError: every parameter that is missing, undeclared, of the wrong type or too small.
        QueryStopped: it needs too much memory or time, or was cancelled.
        EmbeddingError: a text to look for could not be embedded.
    """
    values = given_values(read, params)
    lookup = read.plan.lookup
    if lookup is not None and trace is None:
        if limits.cancellation is not None and limits.cancellation.is_cancelled:
            raise QueryCancelled
        return find_point(graph, read, lookup, values)
    guard = limits.guard()
    with interrupted_by(guard.check):
        vectors = QueryVectors.of(read.plan.ir, values, graph.catalog, embedder)
        guard.check()
        rows = run_read(Run(read, graph, values, guard, vectors, trace), read.plan)
        guard.check()
        return rows


def given_values(read: ReadPlan, params: Mapping[str, object] | None) -> Values:
    """What a run knows before its first row.

    Raises:
        ParameterError: every parameter that is missing, undeclared, of the wrong type or too small.
    """
    values = Values(_moment(), coerce_params(read.plan.ir.params, params))
    if read.least:
        check_least(read.least, values)
    return values


def _moment() -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=now_us() // 1000)
