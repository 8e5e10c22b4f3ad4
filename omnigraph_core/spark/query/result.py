"""The result half of a read as data frames: groups, different rows, rankings, order and window.

Rows of the match come in; the rows of the result go out in their order, as Spark carries them, with
what it takes to make their columns of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import ConfigError
from omnigraph_core.exec.order import sort_keys
from omnigraph_core.exec.window import fused_ranks, leading_rank
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import Rrf
from omnigraph_core.spark.query.cells import cell_of, cells_in, id_of
from omnigraph_core.spark.query.frame import column
from omnigraph_core.spark.query.fuse import MOST_COUNTED, fused, score_column, tie_column
from omnigraph_core.spark.query.groups import group_cells, lower_groups
from omnigraph_core.spark.query.match import lower_match
from omnigraph_core.spark.query.outputs import LATE_ROWS, Outputs, column_cells, is_late

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.order import SortKey
    from omnigraph_core.exec.window import Window
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.spark.query.cells import Cell
    from omnigraph_core.spark.query.context import Context


def lower_read(ctx: Context, read: ReadPlan, window: Window) -> tuple[DataFrame, Outputs]:
    """The rows of a result between offset and limit, in order."""
    ir = read.plan.ir
    if ir.is_grouped:
        rows, outputs = _grouped(ctx, read)
    else:
        rows, outputs = _plain(ctx, read, window)
    if ir.is_distinct:
        rows = rows.dropDuplicates(_telling(ir, outputs) or None)
    keys = sort_keys(ir) if ir.order_by else ()
    if keys:
        rows = rows.orderBy(*(_sorted_by(key, outputs.made) for key in keys))
    return _between(rows, window), outputs


def check_window(window: Window) -> None:
    """
    Raises:
        ConfigError: so many rows cannot be skipped.
    """
    if window.start > MOST_COUNTED:
        raise ConfigError(
            f"`offset` is {window.start:,}, and Spark skips {MOST_COUNTED:,} rows at most",
            hint="continue from the last key of the page before, with a condition",
        )


def _between(rows: DataFrame, window: Window) -> DataFrame:
    """The rows from offset to limit; a limit beyond what Spark can count is left to others."""
    if window.end is not None and window.end <= MOST_COUNTED:
        rows = rows.limit(window.end)
    return rows.offset(window.start) if window.start else rows


def _grouped(ctx: Context, read: ReadPlan) -> tuple[DataFrame, Outputs]:
    ir = read.plan.ir
    frame = lower_match(ctx, read.plan.steps, group_cells(ir, ctx))
    rows, made = lower_groups(ctx, ir, frame)
    return rows, Outputs(read, ctx.tables.types, ctx.values, made)


def _plain(ctx: Context, read: ReadPlan, window: Window) -> tuple[DataFrame, Outputs]:
    """Rows of the match, those that a leading rank reaches."""
    ir = read.plan.ir
    leading = leading_rank(ir)
    ranks = tuple(
        dict.fromkeys((*fused_ranks(ir), *([leading] if isinstance(leading, Rrf) else [])))
    )
    kept = _kept_cells(ir)
    shown = column_cells(ir, ctx.catalog)
    late = frozenset(cell for cell in shown - kept if _may_wait(ir, window) and is_late(cell))
    wanted = kept | (shown - late) | {id_of(cell.variable) for cell in late}
    frame = lower_match(ctx, read.plan.steps, frozenset(wanted))
    made: dict[TypedExpr, str] = {}
    for number, rank in enumerate(ranks):
        frame = fused(ctx, frame, rank, number, window, is_leading=rank == leading)
        made[rank] = score_column(number)
    rows = frame.rows
    assert rows is not None
    if leading is not None and not isinstance(leading, Rrf):
        rows = rows.where(column(cell_of(leading).name).isNotNull())
    return rows, Outputs(read, ctx.tables.types, ctx.values, made, late)


def _may_wait(ir: QueryIR, window: Window) -> bool:
    """Whether so few rows are returned that their properties are better fetched at the end."""
    return not ir.is_distinct and window.end is not None and window.end <= LATE_ROWS


def _kept_cells(ir: QueryIR) -> frozenset[Cell]:
    """The cells that decide which rows are returned, and in which order."""
    leading, ranks = leading_rank(ir), fused_ranks(ir)
    exprs = [key.expr for key in sort_keys(ir)] if ir.order_by else []
    return frozenset(cells_in((*exprs, *ranks, *([] if leading is None else [leading]))))


def _telling(ir: QueryIR, outputs: Outputs) -> list[str]:
    """The columns that tell rows of the result apart."""
    exprs = (output.expr for output in ir.columns if not is_given(output.expr))
    return list(dict.fromkeys(_column_of(expr, outputs.made) for expr in exprs))


def _column_of(expr: TypedExpr, made: Mapping[TypedExpr, str]) -> str:
    return made[expr] if expr in made else cell_of(expr).name


def _sorted_by(key: SortKey, made: Mapping[TypedExpr, str]) -> Column:
    """Null is smaller than everything."""
    if key.is_tie_break:
        return column(tie_column(list(made).index(key.expr))).asc()
    found = column(_column_of(key.expr, made))
    return found.desc_nulls_last() if key.is_descending else found.asc_nulls_first()
