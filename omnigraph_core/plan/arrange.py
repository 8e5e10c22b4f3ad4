"""The order of what only keeps or drops rows: cheap tests come first, and before rows multiply.

The rules of the IR have put each condition where its variables are bound; here the planner weighs
costs that hold for nearly every graph. Operators work row by row, so no result changes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import AntiJoin, Expand, Filter, NodeScan, OptionalJoin, introduces
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import Compare, IsIn, PropertyValue, TextMatch, TypedOp
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.ir.nodes import Op, Pipeline
    from omnigraph_core.query.typed import TypedCondition


def arrange(pipeline: Pipeline) -> Pipeline:
    """One level of pipeline with its tests in a better order.

    >>> from omnigraph_core.ir.explain import explain_pipeline
    >>> from omnigraph_core.ir.nodes import anti_join
    >>> from tests.support.ir_samples import uses
    >>> ops = (NodeScan("p", "Part"), uses("p", "q"), anti_join((uses("p", "r"),)))
    >>> print(*explain_pipeline(arrange(ops)), sep="\\n")
    scan $p: Part
    anti-join on $p
      expand $p -Uses-> $r: Part
    expand $p -Uses-> $q: Part
    """
    ops: list[Op] = []
    for op in _filters_by_cost(pipeline):
        place = len(ops)
        if isinstance(op, AntiJoin):
            while place and _may_precede(op, ops[place - 1]):
                place -= 1
        ops.insert(place, op)
    return tuple(ops)


def _filters_by_cost(pipeline: Pipeline) -> Iterator[Op]:
    for _, run in groupby(pipeline, key=lambda op: isinstance(op, Filter)):
        yield from sorted(run, key=_cost_of_filter)


def _cost_of_filter(op: Op) -> int:
    return condition_cost(op.condition) if isinstance(op, Filter) else 0


def condition_cost(condition: TypedCondition) -> int:
    """0 for numbers and nulls, 1 for texts as wholes, 2 for parts of texts, 3 for words."""
    return max((_cost(term) for term in iter_terms((condition,))), default=0)


def _cost(term: object) -> int:
    match term:
        case TextMatch():
            return 3
        case Compare(op=TypedOp.HAS_TEXT | TypedOp.STARTS_WITH | TypedOp.HAS_MEMBER):
            return 2
        case PropertyValue(type=type) if type.is_list or type.scalar is Scalar.STRING:
            return 1
        case IsIn():
            return 1
        case _:
            return 0


def _may_precede(op: AntiJoin, other: Op) -> bool:
    """Whether an anti-join is better off before an operator that it can do without.

    Products and optional joins lose no row, so it has less to test before them. An expand may lose
    many, so only a test that costs next to nothing goes before one that is there to multiply.
    """
    if not set(op.outer_vars).isdisjoint(introduces(other)):
        return False
    match other:
        case NodeScan() | OptionalJoin():
            return True
        case Expand(is_closing=False, dst_filters=()):
            return _is_degree_test(op)
        case _:
            return False


def _is_degree_test(op: AntiJoin) -> bool:
    match op.inner:
        case (Expand(max_hops=1),):
            return True
        case _:
            return False
