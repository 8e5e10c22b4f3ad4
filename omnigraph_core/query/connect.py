"""Which variables of a match hang together, through traversals or conditions they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedFilter,
    CheckedNegation,
    CheckedOptional,
    CheckedRead,
    CheckedTraversal,
)
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
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.checked import CheckedClause, CheckedQuery
    from omnigraph_core.query.typed import TypedCondition, TypedExpr


def unconnected_parts(query: CheckedQuery) -> tuple[tuple[str, ...], ...]:
    """The groups of variables a read multiplies with each other; one group is the usual case."""
    if not isinstance(query.body, CheckedRead):
        return ()
    groups: list[set[str]] = []
    for linked in _links(query.body.clauses):
        touching = [group for group in groups if group & linked]
        groups = [group for group in groups if not group & linked]
        groups.append(linked.union(*touching))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _links(clauses: tuple[CheckedClause, ...]) -> Iterator[set[str]]:
    """Sets of variables that one clause ties together."""
    for clause in clauses:
        match clause:
            case CheckedBinding():
                yield {clause.variable}.union(*map(condition_variables, clause.conditions))
            case CheckedTraversal():
                edge = {clause.edge_variable} if clause.edge_variable else set()
                yield {clause.left, clause.right} | edge
            case CheckedFilter():
                if names := condition_variables(clause.condition):
                    yield names
            case CheckedOptional():
                yield {*clause.outer, *clause.introduced}
            case CheckedNegation():
                yield set(clause.outer)


def condition_variables(condition: TypedCondition) -> set[str]:
    """Every pattern variable a condition reads."""
    match condition:
        case Compare():
            return expr_variables(condition.left) | expr_variables(condition.right)
        case IsIn():
            return expr_variables(condition.item)
        case IsNull() | Holds():
            return expr_variables(condition.operand)
        case All() | Any():
            return set[str]().union(*map(condition_variables, condition.operands))


def expr_variables(expr: TypedExpr) -> set[str]:
    """Every pattern variable an expression reads."""
    match expr:
        case PropertyValue() | NodeValue():
            return {expr.variable}
        case TextMatch() | Nearest() | Bm25():
            return expr_variables(expr.field) | expr_variables(expr.query)
        case Rrf():
            return expr_variables(expr.arms[0]) | expr_variables(expr.arms[1])
        case Aggregate():
            return expr_variables(expr.argument)
        case _:
            return set()
