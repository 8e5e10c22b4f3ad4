"""Names inside `not` and `optional` blocks: which come from outside, and fresh ones for the rest.

A variable local to a `not` block may share its name with one the surrounding match binds elsewhere.
Rows hold one value per name, so such a local gets a name that nobody can write.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedFilter,
    CheckedNegation,
    CheckedOptional,
    CheckedTraversal,
)
from omnigraph_core.query.mentions import rename_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.query.checked import CheckedClause

    Block = CheckedNegation | CheckedOptional


def outer_names(block: Block) -> frozenset[str]:
    """The outer variables a block reads, those of blocks nested in it included."""
    nested = (c for c in block.clauses if isinstance(c, CheckedNegation | CheckedOptional))
    deep = frozenset[str]().union(*map(outer_names, nested))
    return frozenset(block.outer) | (deep - local_names(block.clauses))


def local_names(clauses: Iterable[CheckedClause]) -> frozenset[str]:
    """The variables a clause list binds or walks to, whether or not they come from outside."""
    names: set[str] = set()
    for clause in clauses:
        match clause:
            case CheckedBinding(variable=variable):
                names.add(variable)
            case CheckedTraversal():
                edge = (clause.edge_binding,) if clause.edge_binding is not None else ()
                names.update((clause.left, clause.right, *edge))
            case CheckedOptional(introduced=introduced):
                names.update(introduced)
            case _:
                pass
    return frozenset(names)


def rename_locals(negation: CheckedNegation, taken: frozenset[str]) -> CheckedNegation:
    """The block with every local whose name is taken outside given a fresh one."""
    clashing = (local_names(negation.clauses) & taken) - outer_names(negation)
    if not clashing:
        return negation
    names: dict[str, str] = {}
    for name in sorted(clashing):
        names[name] = next(
            fresh for n in count(1) if (fresh := f"{name}~{n}") not in taken.union(names.values())
        )
    return replace(negation, clauses=_rename_all(negation.clauses, names))


def _rename_all(
    clauses: tuple[CheckedClause, ...], names: Mapping[str, str]
) -> tuple[CheckedClause, ...]:
    return tuple(_rename(clause, names) for clause in clauses)


def _rename(clause: CheckedClause, names: Mapping[str, str]) -> CheckedClause:
    match clause:
        case CheckedBinding():
            return CheckedBinding(
                names.get(clause.variable, clause.variable),
                clause.type_name,
                tuple(rename_condition(condition, names) for condition in clause.conditions),
            )
        case CheckedTraversal():
            edge = clause.edge_binding
            return replace(
                clause,
                left=names.get(clause.left, clause.left),
                right=names.get(clause.right, clause.right),
                edge_binding=names.get(edge, edge) if edge is not None else None,
            )
        case CheckedFilter():
            return CheckedFilter(rename_condition(clause.condition, names))
        case _:
            return _rename_block(clause, names)


def _rename_block(block: Block, names: Mapping[str, str]) -> CheckedClause:
    """Inside a nested block only what it shares is renamed: an equal name may be its own local."""
    shared = outer_names(block)
    if isinstance(block, CheckedOptional):
        shared |= set(block.introduced)
    names = {old: new for old, new in names.items() if old in shared}
    clauses = _rename_all(block.clauses, names)
    outer = tuple(names.get(name, name) for name in block.outer)
    if isinstance(block, CheckedNegation):
        return CheckedNegation(clauses, outer)
    return CheckedOptional(
        clauses, outer, tuple(names.get(name, name) for name in block.introduced)
    )
