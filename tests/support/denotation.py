"""What a match means, straight from its clauses: try every assignment, keep those where all hold.

The oracle runs the IR; this never sees one, so together they show that lowering loses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import Filter
from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedFilter,
    CheckedNegation,
    CheckedOptional,
    CheckedTraversal,
)
from tests.support.oracle import Given, Row, iter_rows
from tests.support.oracle_graph import Edge, Node, OracleGraph

if TYPE_CHECKING:
    from collections.abc import Sequence


def matches(clauses: tuple[CheckedClause, ...], outer: Row, given: Given) -> list[Row]:
    """Every row that extends the outer one and satisfies all clauses, with multiplicity."""
    domains = _domains(clauses, given.graph)
    new = [name for name in domains if name not in outer]
    rows = [outer] if _fits(clauses, outer, given) else []
    for name in new:
        asked = tuple(clause for clause in clauses if name in _variables(clause))
        longer: list[Row] = [{**row, name: entity} for row in rows for entity in domains[name]]
        rows = [row for row in longer if _fits(asked, row, given)]
    for clause in clauses:
        if isinstance(clause, CheckedOptional):
            rows = [made for row in rows for made in _optional(clause, row, given)]
    return [row for row in rows if _is_kept(clauses, row, given)]


def _domains(
    clauses: tuple[CheckedClause, ...], graph: OracleGraph
) -> dict[str, Sequence[Node | Edge]]:
    """What each variable of a block ranges over: the entities of its type."""
    found: dict[str, Sequence[Node | Edge]] = {}
    for clause in clauses:
        if isinstance(clause, CheckedBinding):
            found[clause.variable] = list(graph.nodes[clause.type_name].values())
        elif isinstance(clause, CheckedTraversal):
            found[clause.left] = list(graph.nodes[clause.left_type].values())
            found[clause.right] = list(graph.nodes[clause.right_type].values())
            if clause.edge_binding is not None:
                found[clause.edge_binding] = graph.edges[clause.edge_type]
    return found


def _fits(clauses: tuple[CheckedClause, ...], row: Row, given: Given) -> bool:
    """Whether bindings and traversals hold, as far as the row has their variables."""
    for clause in clauses:
        match clause:
            case CheckedBinding() if clause.variable in row:
                holds = row[clause.variable] is not None and all(
                    _is_true(Filter(condition), row, given) for condition in clause.conditions
                )
            case CheckedTraversal() if _names(clause) <= row.keys():
                holds = _is_linked(clause, row, given.graph)
            case _:
                holds = True
        if not holds:
            return False
    return True


def _variables(clause: CheckedClause) -> set[str]:
    """Those that a binding or a traversal says something about."""
    if isinstance(clause, CheckedTraversal):
        return _names(clause)
    return {clause.variable} if isinstance(clause, CheckedBinding) else set()


def _names(clause: CheckedTraversal) -> set[str]:
    return {clause.left, clause.right, clause.edge_binding or clause.left}


def _is_linked(clause: CheckedTraversal, row: Row, graph: OracleGraph) -> bool:
    left, right = row[clause.left], row[clause.right]
    if not isinstance(left, Node) or not isinstance(right, Node):
        return False
    if clause.edge_binding is not None:
        hop = (left, right, row[clause.edge_binding])
        return hop in graph.hop_set(clause.edge_type, clause.direction)
    hops = (clause.min_hops, clause.max_hops)
    return right in graph.reached(left, clause.edge_type, clause.direction, *hops)


def _optional(clause: CheckedOptional, row: Row, given: Given) -> list[Row]:
    nothing: Row = {**row, **dict.fromkeys(clause.introduced)}
    return matches(clause.clauses, row, given) or [nothing]


def _is_kept(clauses: tuple[CheckedClause, ...], row: Row, given: Given) -> bool:
    for clause in clauses:
        if isinstance(clause, CheckedFilter) and not _is_true(Filter(clause.condition), row, given):
            return False
        if isinstance(clause, CheckedNegation):
            shared = {name: row[name] for name in clause.outer}
            if matches(clause.clauses, shared, given):
                return False
    return True


def _is_true(op: Filter, row: Row, given: Given) -> bool:
    return any(True for _ in iter_rows((op,), row, given))
