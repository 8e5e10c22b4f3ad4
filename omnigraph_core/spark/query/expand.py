"""Expands as joins: rows of a match come in, rows with the far end of a traversal go out.

An edge counts only if there is a node at its far end, as everywhere. Where only the number or the
presence of matches is asked for, that is what is joined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from omnigraph_core.plan.steps import Making
from omnigraph_core.query.checked import Direction
from omnigraph_core.spark.query.cells import id_of
from omnigraph_core.spark.query.context import of_side
from omnigraph_core.spark.query.frame import column
from omnigraph_core.spark.query.joins import BROADCAST_BYTES
from omnigraph_core.spark.query.reach import reached
from omnigraph_core.spark.query.scan import FROM, TO

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.plan.steps import ExpandStep
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.spark.query.cells import Cell
    from omnigraph_core.spark.query.context import Context
    from omnigraph_core.spark.query.frame import Frame
    from omnigraph_core.spark.query.tables import Side

KEY: Final = "#id"
COUNT: Final = "#count"


def lower_expand(
    ctx: Context,
    step: ExpandStep,
    frame: Frame,
    needs: frozenset[Cell],
    on_edge: Sequence[TypedCondition] = (),
) -> Frame:
    """The rows after an expand.

    Args:
        needs: cells that are read afterwards.
        on_edge: conditions on the edge alone.
    """
    op = step.op
    if is_void(ctx, op):
        return ctx.nothing(frame, needs)
    estimate = ctx.estimator.after(step, frame.estimate)
    if step.making is Making.ROWS and not op.is_closing:
        made = _followed(ctx, step, frame, needs, on_edge, estimate)
    else:
        frame, side = matches(ctx, step, frame, needs, on_edge)
        how = "left_semi" if is_test(step) else "inner"
        rows = ctx.joins.joined(frame, side, keys_of(op), how)
        if COUNT in side.rows.columns:
            made = replace(frame, cells=needs).weighted(rows, column(COUNT))
        else:
            made = frame.with_rows(rows, needs)
    if step.is_deduplicating and made.rows is not None:
        made = made.with_rows(made.rows.dropDuplicates())
    return replace(made, estimate=estimate)


def is_void(ctx: Context, op: Expand) -> bool:
    """Edges between different types do not chain: nothing is two hops away."""
    return op.min_hops > 1 and not _is_chaining(ctx, op)


def is_test(step: ExpandStep) -> bool:
    """Rows are kept or dropped and nothing else."""
    is_bare = step.op.is_closing and step.op.edge_binding is None
    return is_bare or step.making is Making.EXISTS


def keys_of(op: Expand) -> list[tuple[str, str]]:
    """Columns of the match, and those of the edges that they have to equal."""
    keys = [(id_of(op.src_var).name, FROM)]
    return [*keys, (id_of(op.dst_var).name, TO)] if op.is_closing else keys


def matches(
    ctx: Context,
    step: ExpandStep,
    frame: Frame,
    needs: Collection[Cell],
    on_edge: Sequence[TypedCondition] = (),
) -> tuple[Frame, Side]:
    """What a step finds from anywhere, to be joined by `keys_of`: rows, counts or nothing but keys.

    The frame comes along: it may have been counted meanwhile.
    """
    op = step.op
    is_bare = is_test(step)
    edge_cells = [cell for cell in needs if cell.variable == op.edge_binding]
    frame, side = _edges(ctx, step, frame, edge_cells, on_edge, is_distinct=not is_bare)
    if not op.is_closing:
        side = _ending(ctx, op, side, needs)
    if is_bare or step.making is Making.ROWS:
        return frame, side
    groups = [FROM, TO] if op.is_closing else [FROM]
    counted = side.rows.groupBy(*map(column, groups)).agg(F.count(F.lit(1)).alias(COUNT))
    return frame, replace(side, rows=counted)


def _followed(
    ctx: Context,
    step: ExpandStep,
    frame: Frame,
    needs: frozenset[Cell],
    on_edge: Sequence[TypedCondition],
    estimate: float,
) -> Frame:
    """Rows with what they lead to: first the edges of each, then the nodes at their ends."""
    op = step.op
    edge_cells = [cell for cell in needs if cell.variable == op.edge_binding]
    frame, side = _edges(ctx, step, frame, edge_cells, on_edge, is_distinct=True)
    rows = ctx.joins.joined(frame, side, keys_of(op), "inner")
    far = ctx.tables.nodes(op.dst_var, _properties(needs, op.dst_var), op.dst_filters, key=KEY)
    rows = ctx.joins.joined(replace(frame, rows=rows, estimate=estimate), far, [(TO, KEY)], "inner")
    if id_of(op.dst_var) in needs:
        rows = rows.withColumnRenamed(TO, id_of(op.dst_var).name)
    return frame.with_rows(rows, needs)


def _ending(ctx: Context, op: Expand, side: Side, needs: Collection[Cell]) -> Side:
    """Edges whose far end is a node that satisfies the conditions, with cells of it."""
    cells = _properties(needs, op.dst_var)
    far = ctx.tables.nodes(op.dst_var, cells, op.dst_filters, key=KEY)
    rows = ctx.joins.joined(of_side(side), far, [(TO, KEY)], "inner" if cells else "left_semi")
    if id_of(op.dst_var) in needs:
        rows = rows.withColumn(id_of(op.dst_var).name, column(TO))
    return replace(side, rows=rows, width=side.width + far.width)


def _properties(needs: Collection[Cell], variable: str) -> list[Cell]:
    return [cell for cell in needs if cell.variable == variable and cell != id_of(variable)]


def _edges(
    ctx: Context,
    step: ExpandStep,
    frame: Frame,
    cells: Sequence[Cell],
    on_edge: Sequence[TypedCondition],
    *,
    is_distinct: bool,
) -> tuple[Frame, Side]:
    """Edges to follow, or what several hops lead to; each pair of ends once if that matters."""
    op = step.op
    if not _is_direct(ctx, step):
        return reached(ctx, op, frame)
    side = ctx.tables.edges(op, cells, on_edge)
    frame, side = ctx.joins.narrowed(frame, side, keys_of(op))
    if op.edge_binding is None and is_distinct and not _is_simple(ctx, op):
        rows = side.rows
        if side.most_bytes > BROADCAST_BYTES:
            rows = rows.repartition(column(FROM))  # as the join that follows will have them
        side = replace(side, rows=rows.dropDuplicates([FROM, TO]))
    return frame, side


def _is_direct(ctx: Context, step: ExpandStep) -> bool:
    """Whether the stored edges answer as they are.

    Nothing is reached but through a neighbour, so one hop tells whether anything is.
    """
    op = step.op
    if op.max_hops == 1 or not _is_chaining(ctx, op):
        return True
    is_presence = step.making is Making.EXISTS and not op.dst_filters and not op.is_closing
    return is_presence and op.min_hops == 1


def _is_chaining(ctx: Context, op: Expand) -> bool:
    declared = ctx.catalog.edges[op.edge_type]
    return declared.source == declared.target


def _is_simple(ctx: Context, op: Expand) -> bool:
    """Whether the schema forbids parallel edges."""
    groups = (frozenset(group) for group in ctx.catalog.edges[op.edge_type].unique)
    return op.direction is not Direction.BOTH and any(g <= {"src", "dst"} for g in groups)
