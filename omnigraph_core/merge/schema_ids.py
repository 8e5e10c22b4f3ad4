"""The ids of a merged schema: what ours has keeps its ids, additions of theirs bring their own.

The documents of both sides come in, already in merged names; what the merged document continues
goes out. No id stands for two things. A type that both sides have made gets the lower of its ids,
whoever is merged into whom: so an id that is not higher tells that a type was not made anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.schema.document import DocumentEdge, DocumentInterface, DocumentNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.schema.document import (
        DocumentProperty,
        DocumentType,
        SchemaDocument,
    )

_Type = TypeVar("_Type", DocumentInterface, DocumentNode, DocumentEdge)


def joined(ours: SchemaDocument, theirs: SchemaDocument, base: SchemaDocument) -> SchemaDocument:
    """Ours, and what theirs has besides, where no id of it is in use."""
    ours = _agreed(ours, theirs, frozenset(item.type_id for item in base.types))
    used = {identity for item in ours.types for identity in _ids(item)}
    return replace(
        ours,
        next_identity_id=max(ours.next_identity_id, theirs.next_identity_id),
        interfaces=_joined(ours.interfaces, theirs.interfaces, used),
        nodes=_joined(ours.nodes, theirs.nodes, used),
        edges=_joined(ours.edges, theirs.edges, used),
    )


def _agreed(ours: SchemaDocument, theirs: SchemaDocument, old: frozenset[int]) -> SchemaDocument:
    """Ours, with the ids of theirs for types that are another one since the base."""
    used = {identity for item in ours.types for identity in _ids(item)}
    return replace(
        ours,
        interfaces=_with_agreed(ours.interfaces, theirs.interfaces, old, used),
        nodes=_with_agreed(ours.nodes, theirs.nodes, old, used),
        edges=_with_agreed(ours.edges, theirs.edges, old, used),
    )


def _with_agreed(
    ours: tuple[_Type, ...], theirs: tuple[_Type, ...], old: frozenset[int], used: set[int]
) -> tuple[_Type, ...]:
    others = {item.name: item for item in theirs}
    return tuple(
        _renumbered(item, others[item.name])
        if item.name in others and _is_theirs(item, others[item.name], old, used)
        else item
        for item in ours
    )


def _is_theirs(our: DocumentType, their: DocumentType, old: frozenset[int], used: set[int]) -> bool:
    if their.type_id in old or their.type_id in used:
        return False
    return our.type_id in old or their.type_id < our.type_id


def _renumbered(our: _Type, their: _Type) -> _Type:
    if isinstance(our, DocumentInterface) or isinstance(their, DocumentInterface):
        return replace(our, type_id=their.type_id)
    incarnation = their.table_incarnation_id
    return replace(our, type_id=their.type_id, table_incarnation_id=incarnation)


def _joined(
    ours: tuple[_Type, ...], theirs: tuple[_Type, ...], used: set[int]
) -> tuple[_Type, ...]:
    others = {item.name: item for item in theirs}
    known = {item.name for item in ours}
    found: list[_Type] = []
    for item in ours:
        properties = _joined_properties(item, others.get(item.name), used)
        found.append(replace(item, properties=properties))
    for item in theirs:
        if item.name not in known and used.isdisjoint(_ids(item)):
            found.append(item)
    return tuple(found)


def _joined_properties(
    ours: DocumentType, theirs: DocumentType | None, used: set[int]
) -> tuple[DocumentProperty, ...]:
    known = {item.name for item in ours.properties}
    added = () if theirs is None else theirs.properties
    return (
        *ours.properties,
        *(item for item in added if item.name not in known and item.prop_id not in used),
    )


def _ids(item: DocumentType) -> Iterator[int]:
    yield item.type_id
    if not isinstance(item, DocumentInterface):
        yield item.table_incarnation_id
    yield from (prop.prop_id for prop in item.properties)
