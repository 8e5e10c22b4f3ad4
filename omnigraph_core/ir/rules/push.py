"""Each condition moved to the earliest place where its variables are bound.

A filter over an optional variable stays behind the join that introduces it: inside, it would choose
what to join instead of which rows to keep.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import Expand, Filter, NodeScan, introduces
from omnigraph_core.ir.rules.levels import RuleContext, rewrite_levels
from omnigraph_core.query.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.query.typed import TypedCondition


_START: Final = -1
"""The place before the first operator."""


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
    conditions = [op.condition for op in pipeline if isinstance(op, Filter)]
    if not conditions:
        return pipeline
    others = [op for op in pipeline if not isinstance(op, Filter)]
    due = _by_place(conditions, others)
    placed: list[Op] = [Filter(condition) for condition in due[_START]]
    for place, op in enumerate(others):
        node = {_node(op)}
        placed.append(_absorb(op, [c for c in due[place] if mentions(c) == node]))
        placed.extend(Filter(c) for c in due[place] if mentions(c) != node)
    return tuple(placed)


def _by_place(
    conditions: Iterable[TypedCondition], ops: Iterable[Op]
) -> defaultdict[int, list[TypedCondition]]:
    """Conditions by the operator that binds the last of their variables, in their own order."""
    places = {variable: place for place, op in enumerate(ops) for variable in introduces(op)}
    due: defaultdict[int, list[TypedCondition]] = defaultdict(list)
    for condition in conditions:
        # What no operator here introduces comes from the outer row and is bound from the start.
        due[max((places.get(v, _START) for v in mentions(condition)), default=_START)].append(
            condition
        )
    return due


def _node(op: Op) -> str | None:
    """The node an operator introduces and can filter by itself."""
    match op:
        case NodeScan(variable=variable) | Expand(dst_var=variable, is_closing=False):
            return variable
        case _:
            return None


def _absorb(op: Op, own: list[TypedCondition]) -> Op:
    match op:
        case NodeScan():
            return replace(op, filters=(*op.filters, *own))
        case Expand():
            return replace(op, dst_filters=(*op.dst_filters, *own))
        case _:
            return op
