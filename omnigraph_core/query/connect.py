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
from omnigraph_core.query.mentions import mentions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.query.checked import CheckedClause, CheckedQuery


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
                yield {clause.variable, *mentions(*clause.conditions)}
            case CheckedTraversal():
                edge = {clause.edge_binding} if clause.edge_binding else set()
                yield {clause.left, clause.right} | edge
            case CheckedFilter():
                if names := mentions(clause.condition):
                    yield set(names)
            case CheckedOptional():
                # It keeps every combination of its outer variables, so it does not connect them.
                yield {*clause.outer[:1], *clause.introduced}
            case CheckedNegation():
                yield set(clause.outer)
