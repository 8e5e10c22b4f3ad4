"""What a query returns, reads and writes, for lint reports, clients and policies.

Types are complete: those inside `not` and `optional`, the ends of every edge followed, and the
edges that go when a node is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedDelete,
    CheckedFilter,
    CheckedInsert,
    CheckedRead,
    CheckedTraversal,
)
from omnigraph_core.query.descriptor import describe_columns
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.query.checked import CheckedClause, CheckedQuery, CheckedStatement
    from omnigraph_core.query.descriptor import ResultColumn
    from omnigraph_core.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class TypeUse:
    kind: EntityKind
    type_name: str

    def to_json(self) -> dict[str, object]:
        return {"kind": str(self.kind), "type_name": self.type_name}


@dataclass(frozen=True, slots=True)
class Operation:
    """`reads` and `writes` list nodes first, then edges, each by name."""

    result: tuple[ResultColumn, ...]
    reads: tuple[TypeUse, ...]
    writes: tuple[TypeUse, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "result": [column.to_json() for column in self.result],
            "reads": [use.to_json() for use in self.reads],
            "writes": [use.to_json() for use in self.writes],
        }


def describe_operation(checked: CheckedQuery, catalog: Catalog) -> Operation:
    """The operation of a checked query; a mutation returns no columns."""
    body = checked.body
    if isinstance(body, CheckedRead):
        return Operation(describe_columns(body), _sorted(_read_by(body.clauses, catalog)), ())
    writes = [use for statement in body.statements for use in _written_by(statement, catalog)]
    ends = [use for statement in body.statements for use in _ends_of(statement, catalog)]
    return Operation((), _sorted([*writes, *ends]), _sorted(writes))


def _read_by(clauses: Iterable[CheckedClause], catalog: Catalog) -> Iterator[TypeUse]:
    for clause in clauses:
        match clause:
            case CheckedBinding():
                yield TypeUse(EntityKind.NODE, clause.type_name)
            case CheckedTraversal():
                yield TypeUse(EntityKind.EDGE, clause.edge_type)
                yield from _edge_ends(clause.edge_type, catalog)
            case CheckedFilter():
                pass
            case _:
                yield from _read_by(clause.clauses, catalog)


def _edge_ends(edge_type: str, catalog: Catalog) -> Iterator[TypeUse]:
    edge = catalog.edges[edge_type]
    yield TypeUse(EntityKind.NODE, edge.source)
    yield TypeUse(EntityKind.NODE, edge.target)


def _written_by(statement: CheckedStatement, catalog: Catalog) -> Iterator[TypeUse]:
    """The target, and for a deleted node type the edges that go with its nodes."""
    yield TypeUse(statement.kind, statement.type_name)
    if isinstance(statement, CheckedDelete) and statement.kind is EntityKind.NODE:
        for edge in catalog.edges.values():
            if statement.type_name in (edge.source, edge.target):
                yield TypeUse(EntityKind.EDGE, edge.name)


def _ends_of(statement: CheckedStatement, catalog: Catalog) -> Iterator[TypeUse]:
    """The node types in which an inserted edge must find its ends."""
    if isinstance(statement, CheckedInsert) and statement.kind is EntityKind.EDGE:
        yield from _edge_ends(statement.type_name, catalog)


def _sorted(uses: Iterable[TypeUse]) -> tuple[TypeUse, ...]:
    def nodes_first(use: TypeUse) -> tuple[bool, str]:
        return (use.kind is EntityKind.EDGE, use.type_name)

    return tuple(sorted(set(uses), key=nodes_first))
