"""Each condition moved to the earliest place where its variables are bound.

A filter over an optional variable stays behind the join that introduces it: inside, it would choose
what to join instead of which rows to keep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import Expand, Filter, NodeScan, introduces
from omnigraph_core.ir.rules.levels import RuleContext, rewrite_levels
from omnigraph_core.query.mentions import mentions

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.query.typed import TypedCondition


def push_filters(ir: QueryIR, context: RuleContext) -> QueryIR:
    """A condition on one scanned or reached node goes into that operator, others right behind.

    >>> from omnigraph_core.ir.explain import explain
    >>> from tests.support.ir_samples import CONTEXT, age, older, query, uses
    >>> ir = query(NodeScan("p", "Part"), uses("p", "q"), uses("q", "r"),
    ...            Filter(older("p", "q")), Filter(age("q", ">", 3)))
    >>> print(explain(ir))
    query sample()
      scan $p: Part
      expand $p -Uses-> $q: Part
      expand $q -Uses-> $r: Part
      filter $p.age > $q.age
      filter $q.age > 3
    >>> print(explain(push_filters(ir, CONTEXT)))
    query sample()
      scan $p: Part
      expand $p -Uses-> $q: Part where $q.age > 3
      filter $p.age > $q.age
      expand $q -Uses-> $r: Part
    """
    return rewrite_levels(ir, _push_level)


def _push_level(pipeline: Pipeline) -> Pipeline:
    waiting = [op.condition for op in pipeline if isinstance(op, Filter)]
    if not waiting:
        return pipeline
    unbound = {variable for op in pipeline for variable in introduces(op)}
    placed: list[Op] = _take_ready(waiting, unbound)
    for op in pipeline:
        if not isinstance(op, Filter):
            placed.append(_absorb(op, waiting))
            unbound.difference_update(introduces(op))
            placed.extend(_take_ready(waiting, unbound))
    return tuple(placed)


def _absorb(op: Op, waiting: list[TypedCondition]) -> Op:
    """The operator with the waiting conditions that speak only of the node it introduces."""
    match op:
        case NodeScan():
            return replace(op, filters=(*op.filters, *_take_own(waiting, op.variable)))
        case Expand(is_closing=False):
            return replace(op, dst_filters=(*op.dst_filters, *_take_own(waiting, op.dst_var)))
        case _:
            return op


def _take_own(waiting: list[TypedCondition], variable: str) -> list[TypedCondition]:
    own = [condition for condition in waiting if mentions(condition) == {variable}]
    waiting[:] = [condition for condition in waiting if condition not in own]
    return own


def _take_ready(waiting: list[TypedCondition], unbound: set[str]) -> list[Op]:
    """Conditions that nothing further on introduces a variable of; outer variables always are."""
    ready = [condition for condition in waiting if unbound.isdisjoint(mentions(condition))]
    waiting[:] = [condition for condition in waiting if condition not in ready]
    return [Filter(condition) for condition in ready]
