"""Lowering of mutations: statement by statement, with an edge's ends under their stored names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.nodes import Delete, Insert, MutationIR, Update
from omnigraph_core.query.checked import CheckedInsert, CheckedUpdate
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import MutationOp
    from omnigraph_core.query.checked import CheckedMutation, CheckedParam, CheckedStatement
    from omnigraph_core.query.typed import TypedExpr

_STORED_ENDS: Final = {"from": "src", "to": "dst"}


def lower_mutation(
    name: str, params: tuple[CheckedParam, ...], mutation: CheckedMutation
) -> MutationIR:
    """The intermediate form of a checked mutation."""
    return MutationIR(name, params, tuple(_lower(s) for s in mutation.statements))


def _lower(statement: CheckedStatement) -> MutationOp:
    match statement:
        case CheckedInsert():
            return Insert(statement.kind, statement.type_name, _stored(statement))
        case CheckedUpdate():
            return Update(
                statement.kind, statement.type_name, statement.assignments, statement.where
            )
        case _:
            return Delete(statement.kind, statement.type_name, statement.where)


def _stored(insert: CheckedInsert) -> tuple[tuple[str, TypedExpr], ...]:
    """`from` and `to` are how authors write the ends; rows hold them as `src` and `dst`."""
    if insert.kind is EntityKind.NODE:
        return insert.assignments
    return tuple((_STORED_ENDS.get(name, name), value) for name, value in insert.assignments)
