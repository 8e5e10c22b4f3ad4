"""Lowering of mutations: statement by statement; the checker has named every stored column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import Delete, Insert, MutationIR, Update
from omnigraph_core.query.checked import CheckedInsert, CheckedUpdate

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import MutationOp
    from omnigraph_core.query.checked import CheckedMutation, CheckedParam, CheckedStatement


def lower_mutation(
    name: str, params: tuple[CheckedParam, ...], mutation: CheckedMutation
) -> MutationIR:
    """The intermediate form of a checked mutation."""
    return MutationIR(name, params, tuple(_lower(s) for s in mutation.statements))


def _lower(statement: CheckedStatement) -> MutationOp:
    kind, type_name = statement.kind, statement.type_name
    match statement:
        case CheckedInsert():
            return Insert(kind, type_name, statement.assignments)
        case CheckedUpdate():
            return Update(kind, type_name, statement.assignments, statement.where)
        case _:
            return Delete(kind, type_name, statement.where)
