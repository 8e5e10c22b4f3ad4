"""Which pattern variables an expression or condition speaks of, and the same under other names.

Everything that moves a condition asks here first: a condition may stand wherever all the variables
it mentions are bound, and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

from omnigraph_core.query.typed import (
    Aggregate,
    All,
    Any,
    Bm25,
    Compare,
    Holds,
    IsIn,
    IsNull,
    Nearest,
    NodeValue,
    PropertyValue,
    Rrf,
    TextMatch,
    TypedCondition,
    TypedExpr,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Term: TypeAlias = TypedExpr | TypedCondition


def mentions(*terms: Term) -> frozenset[str]:
    """The variables read anywhere inside; result columns and parameters are not variables.

    >>> from omnigraph_core.query.typed import TypedOp
    >>> from omnigraph_core.types import STRING
    >>> name = PropertyValue("a", "name", STRING)
    >>> sorted(mentions(Compare(name, TypedOp.EQ, PropertyValue("b", "name", STRING))))
    ['a', 'b']
    """
    return frozenset(
        term.variable for term in iter_terms(terms) if isinstance(term, PropertyValue | NodeValue)
    )


def iter_terms(terms: Iterable[Term]) -> Iterator[Term]:
    """Each term and everything inside it, outermost first."""
    for term in terms:
        yield term
        yield from iter_terms(_parts(term))


def _parts(term: Term) -> tuple[Term, ...]:
    match term:
        case Compare(left, _, right):
            return (left, right)
        case IsIn(item, options):
            return (item, options)
        case IsNull(operand) | Holds(operand):
            return (operand,)
        case All(operands) | Any(operands):
            return operands
        case TextMatch(_, field, query, max_edits):
            return (field, query) if max_edits is None else (field, query, max_edits)
        case Nearest(field, query) | Bm25(field, query):
            return (field, query)
        case Rrf(arms, k):
            return (*arms, k)
        case Aggregate(_, argument):
            return (argument,)
        case _:
            return ()


def rename_condition(condition: TypedCondition, names: Mapping[str, str]) -> TypedCondition:
    """The condition with variables renamed.

    >>> from omnigraph_core.types import STRING
    >>> rename_condition(IsNull(PropertyValue("a", "name", STRING)), {"a": "b"}).operand.variable
    'b'
    """

    def rename(expr: TypedExpr) -> TypedExpr:
        return _rename_expr(expr, names)

    return map_operands(condition, rename)


def map_operands(
    condition: TypedCondition, change: Callable[[TypedExpr], TypedExpr]
) -> TypedCondition:
    """The condition with every operand expression replaced; its Boolean shape stays."""
    match condition:
        case Compare(left, op, right):
            return Compare(change(left), op, change(right))
        case IsIn(item, options):
            return IsIn(change(item), options)
        case IsNull(operand, is_negated):
            return IsNull(change(operand), is_negated)
        case Holds(operand):
            return Holds(change(operand))
        case All(operands):
            return All(tuple(map_operands(part, change) for part in operands))
        case Any(operands):
            return Any(tuple(map_operands(part, change) for part in operands))


def _rename_expr(expr: TypedExpr, names: Mapping[str, str]) -> TypedExpr:
    match expr:
        case PropertyValue() | NodeValue():
            return replace(expr, variable=names.get(expr.variable, expr.variable))
        case TextMatch() | Nearest() | Bm25():
            field = cast("PropertyValue", _rename_expr(expr.field, names))
            return replace(expr, field=field, query=_rename_expr(expr.query, names))
        case Rrf(arms=(first, second)):
            renamed = (_rename_expr(first, names), _rename_expr(second, names))
            return replace(expr, arms=cast("tuple[Nearest | Bm25, Nearest | Bm25]", renamed))
        case Aggregate():
            return replace(expr, argument=_rename_expr(expr.argument, names))
        case _:
            return expr
