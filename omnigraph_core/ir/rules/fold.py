"""Conditions whose outcome is known before the query runs.

There is no negation among conditions, so unknown may be read as false throughout.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import Expand, Filter, NodeScan
from omnigraph_core.ir.rules.levels import FALSE, TRUE, RuleContext, rewrite_levels
from omnigraph_core.query.typed import (
    All,
    Any,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    TextMatch,
    TypedOp,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from omnigraph_core.ir.nodes import Op, Pipeline, QueryIR
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.values import Value


def fold_constants(ir: QueryIR, context: RuleContext) -> QueryIR:
    """Known conditions decided, repeated ones dropped, `x in [a]` written as `x = a`.

    A pipeline that can yield nothing starts with `filter false`, so that nobody runs the rest.

    >>> from omnigraph_core.ir.explain import explain
    >>> from tests.support.ir_samples import CONTEXT, age, age_in, query
    >>> scan = NodeScan("p", "Part", (age_in("p", 3),))
    >>> ir = query(scan, Filter(Any((age("p", ">", 1), age_in("p")))), Filter(age("p", "=", 3)))
    >>> print(explain(ir))
    query sample()
      scan $p: Part where $p.age in [3]
      filter $p.age > 1 or $p.age in []
      filter $p.age = 3
    >>> print(explain(fold_constants(ir, CONTEXT)))
    query sample()
      scan $p: Part where $p.age = 3
      filter $p.age > 1
    >>> print(explain(fold_constants(query(scan, Filter(age_in("p"))), CONTEXT)))
    query sample()
      filter false
      scan $p: Part where $p.age = 3
    """
    ir = rewrite_levels(ir, _fold_level)
    folded = dict.fromkeys(map(fold_condition, ir.having))
    having = tuple(condition for condition in folded if condition != TRUE)
    return ir if having == ir.having else replace(ir, having=having)


def _fold_level(pipeline: Pipeline) -> Pipeline:
    seen: set[TypedCondition] = {TRUE}
    ops = [_fold_op(op, seen) for op in pipeline]
    kept = tuple(op for op in ops if op is not None)
    return (Filter(FALSE), *kept) if FALSE in seen else kept


def _fold_op(op: Op, seen: set[TypedCondition]) -> Op | None:
    """The operator with conditions folded; None for a filter that has nothing left to say."""
    match op:
        case Filter():
            news = _fold_all((op.condition,), seen)
            return Filter(news[0]) if news else None
        case NodeScan():
            return replace(op, filters=_fold_all(op.filters, seen))
        case Expand():
            return replace(op, dst_filters=_fold_all(op.dst_filters, seen))
        case _:
            return op


def _fold_all(
    conditions: Iterable[TypedCondition], seen: set[TypedCondition]
) -> tuple[TypedCondition, ...]:
    """Folded conditions not yet seen at this level; false is only noted as seen."""
    news: list[TypedCondition] = []
    for condition in map(fold_condition, conditions):
        if condition not in seen and condition != FALSE:
            news.append(condition)
        seen.add(condition)
    return tuple(news)


def fold_condition(condition: TypedCondition) -> TypedCondition:
    """The condition with what is known about it decided; `TRUE` or `FALSE` when all is."""
    match condition:
        case All(operands):
            return _fold_junction(operands, All, absorbing=FALSE)
        case Any(operands):
            return _fold_junction(operands, Any, absorbing=TRUE)
        case Compare(left, op, right):
            return _fold_comparison(left, op, right)
        case IsIn(item, Constant(value=tuple() as members) as options):
            return _fold_membership(item, options, members)
        case IsNull(operand, is_negated):
            return condition if _may_be_null(operand) else _truth(is_negated)
        case Holds(Constant(value=value)):
            return _truth(value is True)
        case _:
            return condition


def _fold_junction(
    operands: tuple[TypedCondition, ...], make: type[All] | type[Any], *, absorbing: TypedCondition
) -> TypedCondition:
    flat: list[TypedCondition] = []
    for folded in map(fold_condition, operands):
        flat.extend(folded.operands if isinstance(folded, make) else (folded,))
    distinct = tuple(dict.fromkeys(flat))
    if absorbing in distinct:
        return absorbing
    return distinct[0] if len(distinct) == 1 else make(distinct)


def _fold_membership(
    item: TypedExpr, options: Constant, members: tuple[Value, ...]
) -> TypedCondition:
    distinct = tuple(dict.fromkeys(members))
    if not distinct:
        return FALSE
    if len(distinct) == 1:
        one = Constant(distinct[0], options.type.element)
        return fold_condition(Compare(item, TypedOp.EQ, one))
    return IsIn(item, Constant(distinct, options.type))


def _fold_comparison(left: TypedExpr, op: TypedOp, right: TypedExpr) -> TypedCondition:
    match left, op, right:
        case Constant(value=first), _, Constant(value=second):
            return _truth(first is not None and second is not None and _HOLDS[op](first, second))
        case TextMatch(), TypedOp.EQ, Constant(value=True):
            return Holds(left)
        case _:
            return Compare(left, op, right)


_HOLDS: Final[dict[TypedOp, Callable[..., bool]]] = {
    TypedOp.EQ: operator.eq,
    TypedOp.NE: operator.ne,
    TypedOp.LT: operator.lt,
    TypedOp.LE: operator.le,
    TypedOp.GT: operator.gt,
    TypedOp.GE: operator.ge,
    TypedOp.HAS_MEMBER: operator.contains,
    TypedOp.HAS_TEXT: operator.contains,
    TypedOp.STARTS_WITH: str.startswith,
}
"""Over two values of comparable types, which the checker has made sure of."""


def _may_be_null(operand: TypedExpr) -> bool:
    """False only when the schema, or the language, rules null out."""
    match operand:
        case PropertyValue() | ParamValue() | NowValue():
            return operand.type.is_nullable
        case NodeValue():
            return operand.is_nullable
        case Constant(value=value):
            return value is None
        case _:
            return True


def _truth(value: bool) -> TypedCondition:
    return TRUE if value else FALSE
