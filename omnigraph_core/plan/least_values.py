"""Parameters that may be too small: limits, offsets, edit distances, constants of `rrf`.

The checker sees to literals. What a parameter brings is refused before the first row, all of it at
once, whether or not any row would get as far as needing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.errors import ParameterError
from omnigraph_core.ir.nodes import AntiJoin, Expand, Filter, NodeScan, OptionalJoin
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import ParamValue, Rrf, TextMatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.ir.nodes import Pipeline, QueryIR
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.mentions import Term
    from omnigraph_core.query.typed import TypedExpr


@dataclass(frozen=True, slots=True)
class LeastValue:
    """A whole number that a parameter brings, and how small it may be; null is small enough."""

    param: ParamValue
    what: str
    least: int


def least_values(ir: QueryIR) -> tuple[LeastValue, ...]:
    """Every such parameter of a read, once per use it is put to."""
    found = (
        LeastValue(number, what, least)
        for number, what, least in _numbers(ir)
        if isinstance(number, ParamValue)
    )
    return tuple(dict.fromkeys(found))


def check_least(wanted: tuple[LeastValue, ...], values: Values) -> None:
    """
    Raises:
        ParameterError: every parameter that is too small.
    """
    problems = [
        f"param '{item.param.name}': {item.what} is at least {item.least}, found {value}"
        for item in wanted
        if isinstance(value := values.of(item.param), int) and value < item.least
    ]
    if problems:
        raise ParameterError(problems)


def _numbers(ir: QueryIR) -> Iterator[tuple[TypedExpr | None, str, int]]:
    yield ir.limit, "limit", 0
    yield ir.offset, "offset", 0
    for term in iter_terms(_terms(ir)):
        if isinstance(term, TextMatch):
            yield term.max_edits, "the edit distance of `fuzzy`", 0
        elif isinstance(term, Rrf):
            yield term.k, "the constant of `rrf`", 1


def _terms(ir: QueryIR) -> Iterator[Term]:
    yield from _conditions(ir.pipeline)
    yield from (column.expr for column in ir.columns)
    yield from ir.having
    yield from (key.expr for key in ir.order_by)


def _conditions(pipeline: Pipeline) -> Iterator[Term]:
    for op in pipeline:
        match op:
            case NodeScan():
                yield from op.filters
            case Expand():
                yield from op.dst_filters
            case Filter():
                yield op.condition
            case AntiJoin() | OptionalJoin():
                yield from _conditions(op.inner)
