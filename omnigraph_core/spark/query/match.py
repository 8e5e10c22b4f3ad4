"""The match of a read as data frames: its steps come in, lowered one after another, rows go out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.exec.conditions import Operands, truth_of
from omnigraph_core.plan.access import conjuncts
from omnigraph_core.plan.steps import (
    AntiJoinStep,
    ExpandStep,
    FilterStep,
    Making,
    OptionalStep,
    ScanStep,
)
from omnigraph_core.query.typed import Compare, PropertyValue, TypedOp
from omnigraph_core.spark.query.carried_rows import Sifting
from omnigraph_core.spark.query.cells import cell_of
from omnigraph_core.spark.query.expand import lower_expand
from omnigraph_core.spark.query.frame import UNIT, WEIGHT, Frame, column
from omnigraph_core.spark.query.needs import following_filters, needs_after, with_edge_filters
from omnigraph_core.spark.query.nested import lower_anti_join, lower_optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from omnigraph_core.plan.steps import Step, Steps
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.spark.query.cells import Cell
    from omnigraph_core.spark.query.context import Context

    Cells = frozenset[Cell]


def lower_match(ctx: Context, steps: Steps, wanted: Cells) -> Frame:
    """The rows of a match, with the cells that are wanted of them."""
    frame = lower_steps(ctx, steps, UNIT, wanted)
    return frame if frame.rows is not None else frame.with_rows(ctx.tables.row().rows)


def lower_steps(ctx: Context, steps: Steps, frame: Frame, wanted: Cells) -> Frame:
    """The rows that steps make of some."""
    pushed = with_edge_filters(steps)
    needs = needs_after([step for step, _ in pushed], wanted)
    last_expand = max((i for i, s in enumerate(pushed) if isinstance(s[0], ExpandStep)), default=-1)
    for place, ((step, on_edge), after) in enumerate(zip(pushed, needs, strict=True)):
        if isinstance(step, ExpandStep):
            carried = frame.cells
            frame = lower_expand(ctx, step, frame, after, on_edge)
            if ctx.is_weighing and place < last_expand and not carried <= after:
                frame = _merged(frame)
        elif isinstance(step, ScanStep):
            following = [later for later, _ in pushed[place + 1 :]]
            frame = _scanned(ctx, step, frame, after, following)
        else:
            frame = _lower_other(ctx, step, frame, after)
    return frame


def _lower_other(ctx: Context, step: Step, frame: Frame, after: Cells) -> Frame:
    match step:
        case FilterStep(op=op):
            made = _filtered(ctx, op.condition, frame, after)
        case AntiJoinStep():
            made = lower_anti_join(ctx, step, _bound(ctx, frame), after, lower_steps, sifted)
        case OptionalStep():
            made = lower_optional(ctx, step, _bound(ctx, frame), after, lower_steps)
        case _:
            raise InvariantBroken(f"no other step is lowered here: {step.label}")
    return replace(made, estimate=ctx.estimator.after(step, frame.estimate))


def _bound(ctx: Context, frame: Frame) -> Frame:
    """The frame as rows, also if it binds nothing yet."""
    return frame if frame.rows is not None else frame.with_rows(ctx.tables.row().rows)


# Filters


def _filtered(ctx: Context, condition: TypedCondition, frame: Frame, after: Cells) -> Frame:
    if frame.rows is not None:
        return sifted(ctx, condition, frame, after)
    return frame if _holds(ctx, condition) else frame.with_rows(ctx.tables.row(is_there=False).rows)


def _holds(ctx: Context, condition: TypedCondition) -> bool:
    """Whether a condition that mentions no variable is true."""

    def column_of(expr: TypedExpr) -> pa.Array:
        raise InvariantBroken(f"nothing is bound that has {expr}")

    return bool(truth_of(condition, Operands(1, column_of), ctx.values)[0])


def sifted(
    ctx: Context,
    condition: TypedCondition,
    frame: Frame,
    after: Cells,
    *,
    is_negated: bool = False,
) -> Frame:
    """The rows for which a condition is true, or those for which it is not."""
    assert frame.rows is not None
    kept = replace(frame, cells=after)
    task = Sifting(
        condition,
        ctx.values,
        ctx.kinds(frame),
        tuple(kept.names),
        is_negated,
        ctx.tables.variables,
    )
    return replace(kept, rows=frame.rows.mapInArrow(task, ctx.schema(kept)))


# Scans


def _scanned(
    ctx: Context, step: ScanStep, frame: Frame, after: Cells, following: Sequence[Step]
) -> Frame:
    """Each row times the nodes of a type that satisfy the conditions."""
    op = step.op
    estimate = ctx.estimator.after(step, frame.estimate)
    if step.making is not Making.ROWS:
        return replace(_counted(ctx, step, frame, after), estimate=estimate)
    cells = [cell for cell in after if cell.variable == op.variable]
    side = ctx.tables.nodes(op.variable, cells, op.filters)
    if frame.rows is None:
        made = frame.with_rows(side.rows, after)
        return replace(made, estimate=min(estimate, side.most))
    keys = _join_keys(ctx, op.variable, frame, cells, following)
    if keys:
        return replace(
            frame.with_rows(ctx.joins.joined(frame, side, keys, "inner"), after), estimate=estimate
        )
    return replace(frame.with_rows(ctx.joins.multiplied(frame, side), after), estimate=estimate)


def _counted(ctx: Context, step: ScanStep, frame: Frame, after: Cells) -> Frame:
    """A scan of which nobody asks what it finds, only how much or whether anything."""
    op = step.op
    bound = _bound(ctx, frame)
    assert bound.rows is not None
    count = ctx.tables.node_count(op.type_name)
    if op.filters and count:
        found = ctx.tables.nodes(op.variable, (), op.filters).rows
        is_test = step.making is Making.EXISTS
        count = ctx.actions.act((found.limit(1) if is_test else found).count)
    if not count:
        return ctx.nothing(bound, after)
    if step.making is Making.EXISTS:
        return bound.with_rows(bound.rows, after)
    return replace(bound, cells=after).weighted(bound.rows, F.lit(count))


def _join_keys(
    ctx: Context,
    variable: str,
    frame: Frame,
    cells: Sequence[Cell],
    following: Sequence[Step],
) -> list[tuple[str, str]]:
    """Equalities that the next filters ask for between a new variable and those before it.

    Rows without them are dropped by the filters in any case; joined by them, none is made first.
    """
    conditions = [condition for _, condition in following_filters(following, -1)]
    keys: list[tuple[str, str]] = []
    for condition in conjuncts(conditions):
        match condition:
            case Compare(PropertyValue() as one, TypedOp.EQ, PropertyValue() as other):
                new, old = (one, other) if one.variable == variable else (other, one)
                is_known = cell_of(new) in cells and cell_of(old) in frame.cells
                types = ctx.tables.types
                if is_known and types.of(cell_of(new)) == types.of(cell_of(old)):
                    keys.append((cell_of(old).name, cell_of(new).name))
    return keys


def _merged(frame: Frame) -> Frame:
    """Equal rows made one that counts as many times."""
    assert frame.rows is not None
    if not frame.cells:
        return frame
    weight = column(WEIGHT) if frame.is_weighted else F.lit(1).cast("bigint")
    total = F.when(F.count_if(weight.isNull()) > 0, None).otherwise(F.try_sum(weight))
    groups = [column(name) for name in sorted(cell.name for cell in frame.cells)]
    rows = frame.rows.groupBy(*groups).agg(total.cast("bigint").alias(WEIGHT))
    return replace(frame, is_weighted=True).with_rows(rows)
