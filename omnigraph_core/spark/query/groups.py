"""Groups and their aggregates: rows of a match come in, one row per group goes out.

Spark counts, sums and compares by group, whole numbers as decimals of 38 digits; what these come to
is worked out by the engine's own rules, in tasks over the groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from omnigraph_core.errors import DataError
from omnigraph_core.exec.conditions import Operands, truth_of
from omnigraph_core.exec.scalars import arrow_column
from omnigraph_core.exec.totals import (
    aggregates_of,
    counts_values,
    is_group_key,
    means_of,
    sums_of,
    whole_column,
)
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import Aggregate, AggregateFunction, ColumnValue, NodeValue
from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.spark.query.cells import Cell, cell_of
from omnigraph_core.spark.query.columns import carried, restored, spark_schema
from omnigraph_core.spark.query.frame import WEIGHT, column
from omnigraph_core.spark.query.outputs import cells_of
from omnigraph_core.spark.query.tasks import bordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import Column, DataFrame

    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.spark.query.context import Context
    from omnigraph_core.spark.query.frame import Frame

_ROWS: Final = "#rows"
_LOST: Final = "#lost"
_HALF: Final = Decimal(2**63)
_DECIMAL: Final = "decimal(38,0)"


def group_cells(ir: QueryIR, ctx: Context) -> frozenset[Cell]:
    """The cells that groups and aggregates are made from."""
    found: set[Cell] = set()
    for output in ir.columns:
        if is_group_key(output.expr):
            found |= cells_of(output.expr, ctx.catalog)
    for aggregate in aggregates_of(ir):
        if not is_given(aggregate.argument):
            found.add(cell_of(aggregate.argument))
    return frozenset(found)


def lower_groups(ctx: Context, ir: QueryIR, frame: Frame) -> tuple[DataFrame, dict[TypedExpr, str]]:
    """The groups that `having` keeps, and which column has which aggregate."""
    assert frame.rows is not None
    keys, shown = _keys(ctx, ir)
    aggregates = aggregates_of(ir)
    weight = column(WEIGHT) if frame.is_weighted else None
    tallies = [_count(None, weight).alias(_ROWS)]
    if weight is not None:
        tallies.append(F.count_if(weight.isNull()).alias(_LOST))
    for number, found in enumerate(aggregates):
        tallies += _tallies(ctx, found, number, weight)
    tallies += [F.first(column(cell.name)).alias(cell.name) for cell in shown]
    groups = frame.rows.groupBy(*(column(cell.name) for cell in keys)).agg(*tallies)
    names: dict[TypedExpr, str] = {found: f"#value{n}" for n, found in enumerate(aggregates)}
    kinds = {cell.name: ctx.tables.types.of(cell) for cell in (*keys, *shown)}
    task = _Finishing(ir, ctx.values, aggregates, kinds, ctx.tables.variables)
    made = {names[found]: arrow_type(found.type) for found in aggregates}
    return groups.mapInArrow(task, spark_schema((kinds | made).items())), names


def _keys(ctx: Context, ir: QueryIR) -> tuple[list[Cell], list[Cell]]:
    """The cells that rows are grouped by, and those that rows of one group have in common."""
    exprs = [output.expr for output in ir.columns if is_group_key(output.expr)]
    keys = list(dict.fromkeys(map(cell_of, exprs)))
    of_nodes = (cells_of(expr, ctx.catalog) for expr in exprs if isinstance(expr, NodeValue))
    shown = {cell for cells in of_nodes for cell in cells} - set(keys)
    return keys, sorted(shown, key=lambda cell: cell.name)


def _tallies(
    ctx: Context, found: Aggregate, number: int, weight: Column | None
) -> Iterator[Column]:
    """What Spark keeps per group to know an aggregate in the end."""
    if is_given(found.argument):
        return
    cell = cell_of(found.argument)
    value = column(cell.name)
    if counts_values(found):
        yield F.count_distinct(value).alias(f"#count{number}")
        return
    match found.function:
        case AggregateFunction.COUNT:
            yield _count(value, weight).alias(f"#count{number}")
        case AggregateFunction.SUM | AggregateFunction.AVG:
            yield _count(value, weight).alias(f"#count{number}")
            yield from _sum(ctx.tables.types.of(cell), value, number, weight)
        case AggregateFunction.MIN:
            yield F.min(value).alias(f"#best{number}")
        case AggregateFunction.MAX:
            yield F.max(value).alias(f"#best{number}")


def _count(value: Column | None, weight: Column | None) -> Column:
    if weight is None:
        return F.count(F.lit(1) if value is None else value)
    counted = weight if value is None else F.when(value.isNotNull(), weight)
    return F.coalesce(F.try_sum(counted.cast(_DECIMAL)), F.lit(0)).cast(_DECIMAL)


def _sum(kind: pa.DataType, value: Column, number: int, weight: Column | None) -> Iterator[Column]:
    if pa.types.is_floating(kind):
        terms = value.cast("double")
        if weight is not None:
            terms = terms * weight.cast("double")
        yield F.sum(terms).alias(f"#sum{number}")
        return
    terms = value.cast(_DECIMAL)
    if pa.types.is_uint64(kind):
        terms = (terms + F.lit(_HALF)).cast(_DECIMAL)
    if weight is not None:
        terms = F.try_multiply(terms, weight.cast(_DECIMAL)).cast(_DECIMAL)
        lost = F.count_if(terms.isNull() & value.isNotNull() & weight.isNotNull())
        yield lost.alias(f"#lost{number}")
    yield F.try_sum(terms).cast(_DECIMAL).alias(f"#sum{number}")


@dataclass(frozen=True, slots=True)
class _Finishing:
    """Makes the aggregates of groups out of tallies, and drops what `having` does not keep."""

    ir: QueryIR
    values: Values
    aggregates: tuple[Aggregate, ...]
    kinds: Mapping[str, pa.DataType]
    """Of the columns that groups have in common."""
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        return bordered(self._rows(batches), self.variables)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            _check_counts(batch)
            made = {found: self._made(found, n, batch) for n, found in enumerate(self.aggregates)}
            columns = {name: batch.column(name) for name in self.kinds}
            columns |= {f"#value{n}": carried(value) for n, value in enumerate(made.values())}
            yield pa.record_batch(columns).filter(pa.array(self._kept(batch, made)))

    def _kept(self, batch: pa.RecordBatch, made: Mapping[Aggregate, pa.Array]) -> np.ndarray:
        """The groups for which every condition is true."""

        def column_of(expr: TypedExpr) -> pa.Array:
            value = self.ir.columns[expr.column].expr if isinstance(expr, ColumnValue) else expr
            if isinstance(value, Aggregate):
                return made[value]
            name = cell_of(value).name
            return restored(batch.column(name), self.kinds[name])

        kept = np.ones(batch.num_rows, np.bool_)
        for condition in self.ir.having:
            kept &= truth_of(condition, Operands(batch.num_rows, column_of), self.values)
        return kept

    def _made(self, found: Aggregate, number: int, batch: pa.RecordBatch) -> pa.Array:
        if is_given(found.argument):
            return self._of_given(found, batch)
        match found.function:
            case AggregateFunction.COUNT:
                return whole_column(found, _whole(batch.column(f"#count{number}")))
            case AggregateFunction.MIN | AggregateFunction.MAX:
                return restored(batch.column(f"#best{number}"), arrow_type(found.type))
        _check_sum(found, number, batch)
        counts = _whole(batch.column(f"#count{number}"))
        sums = _numbers(batch.column(f"#sum{number}"))
        of = sums_of if found.function is AggregateFunction.SUM else means_of
        return of(found, sums, counts)

    def _of_given(self, found: Aggregate, batch: pa.RecordBatch) -> pa.Array:
        """An aggregate of what is the same in every row."""
        assert is_given(found.argument)
        value = self.values.of(found.argument)
        rows = _whole(batch.column(_ROWS))
        counts = rows if value is not None else np.zeros_like(rows)
        if counts_values(found):
            counts = np.minimum(counts, 1)
        if found.function is AggregateFunction.COUNT:
            return whole_column(found, counts)
        if found.function in (AggregateFunction.MIN, AggregateFunction.MAX):
            same = arrow_column(value, found.type, batch.num_rows)
            return pc.if_else(pa.array(rows > 0), same, pa.nulls(len(same), same.type))
        assert isinstance(value, int | float | None)
        of = sums_of if found.function is AggregateFunction.SUM else means_of
        exact = rows.astype(np.object_) if isinstance(value, int) else rows.astype(np.float64)
        return of(found, exact * (0 if value is None else value), counts)


def _check_counts(batch: pa.RecordBatch) -> None:
    """
    Raises:
        DataError: a row counts more often than 64 bits can say.
    """
    if _LOST in batch.schema.names and pc.sum(batch.column(_LOST)).as_py():
        raise DataError(
            "one row stands for more matches than 64 bits can count",
            hint="count what is distinct, or match less",
        )


def _check_sum(found: Aggregate, number: int, batch: pa.RecordBatch) -> None:
    name = f"#lost{number}"
    if name in batch.schema.names and pc.sum(batch.column(name)).as_py():
        raise DataError(f"{found.function} exceeds {found.type.scalar}", hint="sum less")


def _numbers(column: pa.Array) -> np.ndarray:
    """Sums as numbers, 0 where there was nothing to sum."""
    if pa.types.is_floating(column.type):
        filled: np.ndarray = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        return filled
    return _whole(column)


def _whole(column: pa.Array) -> np.ndarray:
    """Whole numbers: int64, or Python's where that does not do."""
    try:
        found: np.ndarray = column.cast(pa.int64()).fill_null(0).to_numpy()
    except pa.ArrowInvalid:
        return np.array([int(value or 0) for value in column.to_pylist()], np.object_)
    return found
