"""Conditions over rows that Spark carries: batches come in, rows that satisfy them go out.

The rows are looked at by the engine's own comparisons; Spark's have other ideas of null, of the
order of numbers of different types and of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.exec.conditions import Operands, truth_of
from omnigraph_core.spark.query.cells import cell_of
from omnigraph_core.spark.query.columns import restored
from omnigraph_core.spark.query.scan import ROW
from omnigraph_core.spark.query.tasks import bordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedCondition, TypedExpr


@dataclass(frozen=True, slots=True)
class Sifting:
    """Keeps the rows for which a condition is true, or those for which it is not."""

    condition: TypedCondition
    values: Values
    kinds: Mapping[str, pa.DataType]
    """What the columns that are compared hold."""
    kept: tuple[str, ...]
    """Columns of the rows that come out."""
    is_negated: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        return bordered(self._rows(batches), self.variables)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue

            def column_of(expr: TypedExpr, batch: pa.RecordBatch = batch) -> pa.Array:
                name = cell_of(expr).name
                return restored(batch.column(name), self.kinds[name])

            truth = truth_of(self.condition, Operands(batch.num_rows, column_of), self.values)
            yield self._selected(batch).filter(pa.array(~truth if self.is_negated else truth))

    def _selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.kept == (ROW,):
            return pa.record_batch({ROW: pa.repeat(pa.scalar(True), batch.num_rows)})
        return batch.select(list(self.kept))
