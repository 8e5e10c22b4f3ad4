"""The rows of a result on their way to whoever asked: all of them at once, if they fit.

How large they are is known before they leave the executors, unless the query says that they are
few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F

from omnigraph_core.spark.query.frame import column
from omnigraph_core.spark.query.tasks import bordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from omnigraph_core.exec.guard import Guard
    from omnigraph_core.exec.window import Window
    from omnigraph_core.spark.query.context import Context

_CLAUSE: Final = "return"
_FEW_ROWS: Final = 10_000
"""Rows that are not worth measuring first."""
_BYTES: Final = "bytes"


def collected(ctx: Context, rows: DataFrame, guard: Guard, window: Window) -> pa.Table:
    """The rows in their order.

    Raises:
        BudgetExceeded: they are more than the query may use.
    """
    if window.end is not None and window.end - window.start <= _FEW_ROWS:
        return _held(ctx.actions.act(rows.toArrow), guard)
    kept = rows.persist()
    try:
        sizes = kept.mapInArrow(_Measuring(ctx.tables.variables), f"{_BYTES} bigint")
        (total,) = ctx.actions.act(sizes.agg(F.sum(column(_BYTES)).alias(_BYTES)).collect)
        guard.expect(int(total[_BYTES] or 0), _CLAUSE)
        return _held(ctx.actions.act(kept.toArrow), guard)
    finally:
        kept.unpersist()


def _held(table: pa.Table, guard: Guard) -> pa.Table:
    guard.hold(table.nbytes, _CLAUSE)
    return table


@dataclass(frozen=True, slots=True)
class _Measuring:
    """How many bytes rows take."""

    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        return bordered(self._rows(batches), self.variables)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = sum(batch.nbytes for batch in batches)
        yield pa.record_batch({_BYTES: pa.array([total], pa.int64())})
