"""`not` and `optional` as joins: rows of a match come in, and what an inner match finds for each.

Inner steps start from the distinct combinations of what they use of the outer row; what they find
is joined back to all rows that have the combination. An inner side of one step needs no start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql import functions as F

from omnigraph_core.plan.steps import ExpandStep, FilterStep, Making
from omnigraph_core.spark.query.cells import id_of
from omnigraph_core.spark.query.expand import COUNT, is_test, is_void, keys_of, matches
from omnigraph_core.spark.query.frame import WEIGHT, Frame, column
from omnigraph_core.spark.query.needs import (
    inner_wanted,
    is_plain_test,
    start_of,
    with_edge_filters,
)
from omnigraph_core.spark.query.tables import Side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from omnigraph_core.plan.steps import AntiJoinStep, OptionalStep, Steps
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.spark.query.cells import Cell
    from omnigraph_core.spark.query.context import Context

    Cells = frozenset[Cell]

_OUTER: Final = "#outer "
_EVERY: Final = "#every"
_ALL: Final = "#all"
_FOUND: Final = "#found"
_INNER_WEIGHT: Final = "#inner weight"
_UNKNOWN: Final = float("inf")
_WIDTH: Final = 64


class Lower(Protocol):
    """Lowers inner steps."""

    def __call__(self, ctx: Context, steps: Steps, frame: Frame, wanted: Cells) -> Frame: ...


class Sift(Protocol):
    """Keeps rows by a condition."""

    def __call__(
        self,
        ctx: Context,
        condition: TypedCondition,
        frame: Frame,
        after: Cells,
        *,
        is_negated: bool = False,
    ) -> Frame: ...


def lower_anti_join(
    ctx: Context, step: AntiJoinStep, frame: Frame, after: Cells, lower: Lower, sift: Sift
) -> Frame:
    """The rows for which the inner steps find nothing."""
    first, on_edge = _only_expand(ctx, step.inner)
    if is_plain_test(step.inner):
        (test,) = step.inner
        assert isinstance(test, FilterStep)
        return sift(ctx, test.op.condition, frame, after, is_negated=True)
    if first is not None:
        exists = replace(first, making=Making.EXISTS)
        frame, side = matches(ctx, exists, frame, (), on_edge)
        rows = ctx.joins.joined(frame, side, keys_of(first.op), "left_anti")
        return frame.with_rows(rows, after)
    frame, inner = _started(ctx, step, frame, after, lower)
    keys = _keys(step.op.outer_vars)
    found = inner.select(*(column(theirs) for _, theirs in keys)).distinct()
    return frame.with_rows(_joined_back(ctx, step, frame, found, "left_anti"), after)


def lower_optional(
    ctx: Context, step: OptionalStep, frame: Frame, after: Cells, lower: Lower
) -> Frame:
    """Each row times what the inner steps find for it; if nothing, once with nulls."""
    first, on_edge = _only_expand(ctx, step.inner)
    introduced = frozenset(cell for cell in after if cell.variable in step.op.introduced)
    if first is not None and not is_test(first):
        frame, side = matches(ctx, first, frame, introduced, on_edge)
        found = side.rows.withColumnRenamed(COUNT, _INNER_WEIGHT).withColumn(_FOUND, F.lit(True))
        rows = ctx.joins.joined(frame, replace(side, rows=found), keys_of(first.op), "left")
    else:
        frame, found = _started(ctx, step, frame, after, lower)
        rows = _joined_back(ctx, step, frame, found, "left")
    made = replace(frame, cells=after, nullable=frame.nullable.union(step.op.introduced))
    if _INNER_WEIGHT not in found.columns:
        return made.with_rows(rows)
    factor = F.when(column(_FOUND).isNull(), F.lit(1)).otherwise(column(_INNER_WEIGHT))
    return made.weighted(rows, factor)


def _only_expand(
    ctx: Context, steps: Steps
) -> tuple[ExpandStep | None, tuple[TypedCondition, ...]]:
    """The expand that inner steps come to, and the conditions on its edge; None if they are more.

    What it finds can be joined as it is, without a start from the rows of the match.
    """
    (first, on_edge), *others = with_edge_filters(steps)
    if others or not isinstance(first, ExpandStep) or is_void(ctx, first.op):
        return None, ()
    return first, on_edge


def _started(
    ctx: Context, step: AntiJoinStep | OptionalStep, frame: Frame, after: Cells, lower: Lower
) -> tuple[Frame, DataFrame]:
    """The frame, to be read twice, and what the inner steps find from its rows.

    What is found has the keys to join it back by, and a mark that it was found.
    """
    assert frame.rows is not None
    cells = start_of(step, after)
    frame = frame.with_rows(ctx.actions.held(frame.rows))
    assert frame.rows is not None
    ids = [id_of(variable).name for variable in step.op.outer_vars]
    start = Frame(None, estimate=frame.estimate, nullable=frame.nullable)
    start = start.with_rows(frame.rows, cells)
    assert start.rows is not None
    if ids:
        start = start.with_rows(start.rows.dropDuplicates(ids))
    else:
        start = start.with_rows(ctx.tables.row().rows, ())
    inner = lower(replace(ctx, is_weighing=False), step.inner, start, inner_wanted(step, after))
    assert inner.rows is not None
    rows = inner.rows.withColumnRenamed(WEIGHT, _INNER_WEIGHT).withColumn(_FOUND, F.lit(True))
    for ours, theirs in _keys(step.op.outer_vars):
        rows = rows.withColumnRenamed(ours, theirs)
    return frame, rows if ids else rows.withColumn(_ALL, F.lit(True))


def _joined_back(
    ctx: Context, step: AntiJoinStep | OptionalStep, frame: Frame, found: DataFrame, how: str
) -> DataFrame:
    """All rows beside what was found for what they have in common."""
    variables = step.op.outer_vars
    if not variables:
        assert frame.rows is not None
        frame = replace(frame, rows=frame.rows.withColumn(_EVERY, F.lit(True)))
    is_null_safe = not frame.nullable.isdisjoint(variables)
    side = Side(found, _UNKNOWN, _WIDTH)
    return ctx.joins.joined(frame, side, _keys(variables), how, is_null_safe=is_null_safe)


def _keys(variables: tuple[str, ...]) -> list[tuple[str, str]]:
    """Columns of outer rows, and those of inner ones that say to which of them they belong."""
    if not variables:
        return [(_EVERY, _ALL)]
    names = [id_of(variable).name for variable in variables]
    return [(name, f"{_OUTER}{name}") for name in names]
