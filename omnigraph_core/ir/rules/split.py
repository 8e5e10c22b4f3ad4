"""Conjunctions taken apart, so that each part can find its own place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import Expand, Filter, NodeScan
from omnigraph_core.ir.rules.levels import RuleContext, rewrite_levels
from omnigraph_core.query.typed import All

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.query.typed import TypedCondition


def split_conjunctions(ir: QueryIR, context: RuleContext) -> QueryIR:
    """`a and b` as two conditions: a row is kept if all are true, however they are grouped.

    >>> from omnigraph_core.ir.explain import explain
    >>> from tests.support.ir_samples import CONTEXT, age, query
    >>> ir = query(NodeScan("p", "Part"), Filter(All((age("p", ">", 3), age("p", "<", 9)))))
    >>> print(explain(ir))
    query sample()
      scan $p: Part
      filter $p.age > 3 and $p.age < 9
    >>> print(explain(split_conjunctions(ir, CONTEXT)))
    query sample()
      scan $p: Part
      filter $p.age > 3
      filter $p.age < 9
    """
    ir = rewrite_levels(ir, _split_level)
    having = _split(ir.having)
    return ir if having == ir.having else replace(ir, having=having)


def _split_level(pipeline: Pipeline) -> Pipeline:
    return tuple(new for op in pipeline for new in _split_op(op))


def _split_op(op: Op) -> Iterator[Op]:
    match op:
        case Filter(condition=All(operands=operands)):
            yield from (Filter(part) for part in _split(operands))
        case NodeScan():
            yield replace(op, filters=_split(op.filters))
        case Expand():
            yield replace(op, dst_filters=_split(op.dst_filters))
        case _:
            yield op


def _split(conditions: Iterable[TypedCondition]) -> tuple[TypedCondition, ...]:
    parts: list[TypedCondition] = []
    for condition in conditions:
        parts.extend(_split(condition.operands) if isinstance(condition, All) else (condition,))
    return tuple(parts)
