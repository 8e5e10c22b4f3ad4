"""Which variables a parsed query mentions, for the passes that only count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.query.ast import (
    Access,
    And,
    Binding,
    Call,
    Comparison,
    Delete,
    Filter,
    ListLiteral,
    Membership,
    Negation,
    NullTest,
    OptionalMatch,
    Or,
    Read,
    Traversal,
    Truth,
    Update,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.ast import Clause, Condition, Expr, Mutation, Query


def iter_variables(query: Query) -> Iterator[str]:
    """Every `$name` the body mentions, parameters and pattern variables alike."""
    body = query.body
    yield from _of_read(body) if isinstance(body, Read) else _of_mutation(body)


def _of_read(read: Read) -> Iterator[str]:
    for clause in read.match:
        yield from _of_clause(clause)
    for expr in (*(c.expr for c in read.columns), *(k.expr for k in read.order)):
        yield from _of_expr(expr)
    for condition in read.having:
        yield from _of_condition(condition)
    for cut in (read.limit, read.offset):
        if cut is not None:
            yield from _of_expr(cut)


def _of_mutation(mutation: Mutation) -> Iterator[str]:
    for statement in mutation.statements:
        if not isinstance(statement, Delete):
            for assignment in statement.assignments:
                yield from _of_expr(assignment.value)
        if isinstance(statement, Update | Delete):
            yield from _of_condition(statement.where)


def _of_clause(clause: Clause) -> Iterator[str]:
    match clause:
        case Binding():
            yield clause.variable
            for field in clause.fields:
                yield from _of_expr(field.value)
        case Traversal():
            yield clause.left
            yield clause.right
            if clause.edge_binding is not None:
                yield clause.edge_binding
        case Filter():
            yield from _of_condition(clause.condition)
        case Negation() | OptionalMatch():
            for inner in clause.clauses:
                yield from _of_clause(inner)


def _of_condition(condition: Condition) -> Iterator[str]:
    match condition:
        case And() | Or():
            for operand in condition.operands:
                yield from _of_condition(operand)
        case Comparison():
            yield from _of_expr(condition.left)
            yield from _of_expr(condition.right)
        case Membership():
            yield from _of_expr(condition.item)
            yield from _of_expr(condition.options)
        case NullTest() | Truth():
            yield from _of_expr(condition.operand)


def _of_expr(expr: Expr) -> Iterator[str]:
    match expr:
        case Variable():
            yield expr.name
        case Access():
            yield expr.variable
        case Call():
            for argument in expr.arguments:
                yield from _of_expr(argument)
        case ListLiteral():
            for item in expr.items:
                yield from _of_expr(item)
