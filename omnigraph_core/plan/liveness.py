"""Which variables anybody still asks for: what a result needs of its rows, and each operator.

A variable nobody asks for is not carried along; what introduces it need not tell which it found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import introduces, uses
from omnigraph_core.plan.steps import Making
from omnigraph_core.query.mentions import iter_terms, map_operands, mentions
from omnigraph_core.query.typed import (
    Aggregate,
    AggregateFunction,
    Constant,
    NodeValue,
    PropertyValue,
)
from omnigraph_core.types import I64

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import Op, QueryIR
    from omnigraph_core.query.mentions import Term
    from omnigraph_core.query.typed import TypedExpr

_ROW: Final = Constant(1, I64)
"""What `count` counts when it counts rows."""
_EXTREMES: Final = frozenset({AggregateFunction.MIN, AggregateFunction.MAX})


def result_needs(ir: QueryIR) -> frozenset[str]:
    """The variables a result is made from.

    Rows that are ordered as they are have ties broken by the ids of all their variables.
    """
    needed = mentions(*result_terms(ir))
    has_ties = bool(ir.order_by) and not (ir.is_grouped or ir.is_distinct)
    return needed.union(ir.variables) if has_ties else needed


def result_terms(ir: QueryIR) -> tuple[Term, ...]:
    """Everything a result computes."""
    columns = (column.expr for column in ir.columns)
    return (*columns, *ir.having, *(key.expr for key in ir.order_by))


def dead_making(ir: QueryIR) -> Making:
    """What a step makes whose variables nobody asks for.

    EXISTS where repeated rows change nothing, COUNT where they are only counted, else ROWS.
    """
    if not ir.is_grouped:
        return Making.EXISTS if ir.is_distinct else Making.ROWS
    aggregates = (t for t in iter_terms(result_terms(ir)) if isinstance(t, Aggregate))
    is_set = all(a.is_distinct or a.function in _EXTREMES for a in aggregates)
    return Making.EXISTS if is_set else Making.COUNT


def needed_before(op: Op, needed: frozenset[str]) -> frozenset[str]:
    """The variables asked for before an operator, from those asked for after it."""
    return needed.difference(introduces(op)) | uses(op)


def counting_rows(ir: QueryIR) -> QueryIR:
    """The same read with `count` of what is never null written as a count of rows.

    >>> from omnigraph_core.ir.explain import explain
    >>> from omnigraph_core.ir.nodes import NodeScan, QueryIR, ReturnColumn
    >>> count = Aggregate(AggregateFunction.COUNT, NodeValue("p", "Part"), I64)
    >>> scan = NodeScan("p", "Part")
    >>> ir = QueryIR("q", (), (scan,), (ReturnColumn("n", count, I64),), is_grouped=True)
    >>> print(explain(counting_rows(ir)))
    query q()
      scan $p: Part
      return grouped
        n: I64 = count(1)
    """
    if not ir.is_grouped:
        return ir
    return replace(
        ir,
        columns=tuple(replace(c, expr=_counting_rows(c.expr)) for c in ir.columns),
        having=tuple(map_operands(condition, _counting_rows) for condition in ir.having),
        order_by=tuple(replace(key, expr=_counting_rows(key.expr)) for key in ir.order_by),
    )


def _counting_rows(expr: TypedExpr) -> TypedExpr:
    match expr:
        case Aggregate(AggregateFunction.COUNT, argument, is_distinct=False):
            return expr if _may_be_null(argument) else replace(expr, argument=_ROW)
        case _:
            return expr


def _may_be_null(argument: TypedExpr) -> bool:
    match argument:
        case NodeValue():
            return argument.is_nullable
        case PropertyValue():
            return argument.type.is_nullable
        case _:
            return True
