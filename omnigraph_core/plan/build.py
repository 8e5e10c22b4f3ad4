"""The planner: the IR of a read comes in, the steps that carry it out go out.

Every step learns which variables are asked for after it; where that is none of its own, it need
only count what it finds, or find one. The plan says the same as the IR on every graph.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.ir.explain import explain_op
from omnigraph_core.ir.nodes import AntiJoin, Expand, Filter, NodeScan, OptionalJoin, introduces
from omnigraph_core.plan.access import key_equality
from omnigraph_core.plan.arrange import arrange
from omnigraph_core.plan.liveness import (
    counting_rows,
    dead_making,
    needed_before,
    result_needs,
)
from omnigraph_core.plan.steps import (
    AntiJoinStep,
    ExpandStep,
    FilterStep,
    KeyLookup,
    Making,
    OptionalStep,
    QueryPlan,
    ScanStep,
)
from omnigraph_core.query.typed import (
    Bm25,
    Compare,
    Constant,
    Nearest,
    NodeValue,
    PropertyValue,
    Rrf,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.plan.steps import Step, Steps
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.schema.catalog import Catalog


def plan_query(ir: QueryIR, catalog: Catalog) -> QueryPlan:
    """The plan of a read; `ir` in it counts rows where the author counted what is never null."""
    ir = counting_rows(ir)
    needed, making = result_needs(ir), dead_making(ir)
    return QueryPlan(
        ir=ir,
        steps=_plan_pipeline(ir.pipeline, needed, making),
        is_set=making is Making.EXISTS,
        row_needs=needed,
        lookup=_key_lookup(ir, catalog),
    )


def _plan_pipeline(
    pipeline: Pipeline,
    needed: frozenset[str],
    making: Making,
    fixed: frozenset[str] = frozenset(),
) -> Steps:
    """The steps of one level.

    Args:
        needed: variables asked for at its end.
        making: what a step may make when none of its variables is asked for.
        fixed: variables of the outer row. Dropping one makes no two rows equal.
    """
    steps: list[Step] = []
    for op in reversed(arrange(pipeline)):
        step = _plan_op(op, needed, making)
        if step is not None:
            steps.append(step)
            needed = needed_before(step.op, needed)
    steps.reverse()
    return tuple(_deduplicating(steps, fixed)) if making is Making.EXISTS else tuple(steps)


def _plan_op(op: Op, needed: frozenset[str], making: Making) -> Step | None:
    """The step of an operator; None if it changes nothing that anybody asks for."""
    match op:
        case NodeScan():
            return ScanStep(op, needed, _label(op), _making(op, needed, making))
        case Expand():
            return _plan_expand(op, needed, making)
        case Filter():
            return FilterStep(op, needed, _label(op))
        case AntiJoin():
            fixed = frozenset(op.outer_vars)
            inner = _plan_pipeline(op.inner, frozenset(), Making.EXISTS, fixed)
            return AntiJoinStep(op, inner, needed, _label(op))
        case OptionalJoin():
            return _plan_optional(op, needed, making)


def _plan_expand(op: Expand, needed: frozenset[str], making: Making) -> ExpandStep:
    if making is Making.EXISTS and op.edge_binding is not None and op.edge_binding not in needed:
        # Which of several edges between two nodes it was only repeats the row.
        op = replace(op, edge_binding=None)
    return ExpandStep(op, needed, _label(op), _making(op, needed, making))


def _plan_optional(op: OptionalJoin, needed: frozenset[str], making: Making) -> OptionalStep | None:
    asked = needed.intersection(op.introduced)
    if making is Making.EXISTS and not asked:
        return None  # every row stays, once or several times
    inner = _plan_pipeline(op.inner, asked, making, frozenset(op.outer_vars))
    return OptionalStep(op, inner, needed, _label(op))


def _making(op: NodeScan | Expand, needed: frozenset[str], making: Making) -> Making:
    made = introduces(op)
    return making if made and needed.isdisjoint(made) else Making.ROWS


def _label(op: Op) -> str:
    """How messages name a step: the operator without the conditions it carries."""
    match op:
        case NodeScan():
            return explain_op(replace(op, filters=()))
        case Expand():
            return explain_op(replace(op, dst_filters=()))
        case _:
            return explain_op(op)


def _deduplicating(steps: list[Step], fixed: frozenset[str]) -> Iterator[Step]:
    """The steps, expands marked where rows may be equal because a variable is no longer there."""
    has_repeats = False
    for step in steps:
        has_repeats |= not _carried(step) - fixed <= step.needed
        if isinstance(step, ExpandStep):
            step, has_repeats = replace(step, is_deduplicating=has_repeats), False
        yield step


def _carried(step: Step) -> frozenset[str]:
    """The variables rows have while a step works on them, before it drops what nobody needs."""
    carried = needed_before(step.op, step.needed)
    if isinstance(step, ScanStep | ExpandStep) and step.making is Making.EXISTS:
        return carried
    return carried.union(introduces(step.op))


def _key_lookup(ir: QueryIR, catalog: Catalog) -> KeyLookup | None:
    if ir.is_grouped or not _keeps_single_row(ir):
        return None
    match ir.pipeline:
        case (NodeScan(variable, type_name, (Compare() as condition,)),):
            key = key_equality(condition, catalog.nodes[type_name])
            if key is not None and all(map(_is_of_node, (c.expr for c in ir.columns))):
                return KeyLookup(variable, type_name, key.property, key.given)
    return None


def _keeps_single_row(ir: QueryIR) -> bool:
    """Whether a single row is all of the result: a rank may leave it out, a limit may cut it."""
    if any(isinstance(key.expr, Nearest | Bm25 | Rrf) for key in ir.order_by):
        return False
    return _is_constant(ir.limit, at_least=1) and ir.offset is None


def _is_constant(expr: TypedExpr | None, *, at_least: int) -> bool:
    match expr:
        case None:
            return True
        case Constant(value=int() as value):
            return value >= at_least
        case _:
            return False


def _is_of_node(expr: TypedExpr) -> bool:
    return isinstance(expr, PropertyValue | NodeValue)
