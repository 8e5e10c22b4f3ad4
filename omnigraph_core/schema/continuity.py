"""Which type and which property of one schema document continues which of another.

Two documents of a graph come in, and the newest one both descend from. Ids up to there identify,
under whatever name; among the rest equal names continue each other, if the rows can, and then
equal ids. `next_document` draws ids in a way that keeps them apart between branches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph_core.schema.document.build import build_document
from omnigraph_core.schema.document.hashes import schema_hash
from omnigraph_core.schema.document.model import (
    ConstraintKind,
    DocumentEdge,
    DocumentInterface,
    DocumentNode,
)
from omnigraph_core.schema.reshape import can_hold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.document.model import DocumentType, SchemaDocument

_Type = TypeVar("_Type", DocumentInterface, DocumentNode, DocumentEdge)

_STRIDE_BITS: Final = 40


@dataclass(frozen=True, slots=True)
class Continuity:
    """Earlier name → later name, of everything that continues."""

    nodes: Mapping[str, str]
    edges: Mapping[str, str]
    interfaces: Mapping[str, str]
    properties: Mapping[tuple[str, str], Mapping[str, str]]
    """By kind (`node`, `edge`, `interface`) and earlier name of a type that continues."""


def continuity(
    before: SchemaDocument, after: SchemaDocument, *, common: SchemaDocument | None = None
) -> Continuity:
    """What continues from one document to another.

    Args:
        common: the newest document both descend from; in one line of history either of the two,
            `before` if not given. Its ids below its counter are those that identify.
    """
    common = common or before
    shared = frozenset(item for item in _ids(common) if item < common.next_identity_id)
    nodes = _match_types(before.nodes, after.nodes, shared, _has_same_key)
    edges = _match_types(
        before.edges, after.edges, shared, lambda old, new: _has_same_ends(old, new, nodes)
    )
    interfaces = _match_types(before.interfaces, after.interfaces, shared, lambda *_: True)
    properties = {
        **_property_maps("node", before.nodes, after.nodes, nodes, shared),
        **_property_maps("edge", before.edges, after.edges, edges, shared),
        **_property_maps("interface", before.interfaces, after.interfaces, interfaces, shared),
    }
    return Continuity(nodes, edges, interfaces, properties)


def next_document(desired: Catalog, accepted: SchemaDocument) -> SchemaDocument:
    """The document of a catalog that follows an accepted one, with ids no other branch draws.

    Branches count on from where they parted. Were they to count on by one, the same id would mean
    a thing of one branch and another of the next, and after a merge nothing could tell them apart.
    So each change of schema leaps first, by a distance that its content gives: the same change of
    the same document draws the same ids, on whatever branch.
    """
    draft = build_document(desired, accepted=accepted)
    if draft.next_identity_id == accepted.next_identity_id:
        return draft
    digest = schema_hash(draft).rpartition(":")[2]
    leap = 1 + int(digest[: _STRIDE_BITS // 4], base=16)
    moved = replace(accepted, next_identity_id=accepted.next_identity_id + leap)
    return build_document(desired, accepted=moved)


def _ids(document: SchemaDocument) -> Iterator[int]:
    for item in document.types:
        yield item.type_id
        yield from (prop.prop_id for prop in item.properties)


def _match_types(
    before: Iterable[_Type],
    after: Iterable[_Type],
    shared: frozenset[int],
    can_follow: Callable[[_Type, _Type], bool],
) -> dict[str, str]:
    old, new = {item.name: item for item in before}, {item.name: item for item in after}
    return _match(
        {name: item.type_id for name, item in old.items()},
        {name: item.type_id for name, item in new.items()},
        shared,
        lambda name: can_follow(old[name], new[name]),
    )


def _has_same_key(before: DocumentNode, after: DocumentNode) -> bool:
    """Whether rows of a node that was declared anew could be the ones of before."""
    old, new = (
        [item.names for item in node.constraints if item.kind is ConstraintKind.KEY]
        for node in (before, after)
    )
    return old == new


def _has_same_ends(before: DocumentEdge, after: DocumentEdge, nodes: Mapping[str, str]) -> bool:
    """Whether rows of an edge that was declared anew could be the ones of before."""
    ends = (before.from_type.name, before.to_type.name)
    return tuple(map(nodes.get, ends)) == (after.from_type.name, after.to_type.name)


def _property_maps(
    kind: str,
    before: Iterable[DocumentType],
    after: Iterable[DocumentType],
    found: Mapping[str, str],
    shared: frozenset[int],
) -> dict[tuple[str, str], Mapping[str, str]]:
    later = {item.name: item for item in after}
    return {
        (kind, item.name): _match_properties(item, later[found[item.name]], shared)
        for item in before
        if item.name in found
    }


def _match_properties(
    before: DocumentType, after: DocumentType, shared: frozenset[int]
) -> dict[str, str]:
    old = {item.name: item for item in before.properties}
    new = {item.name: item for item in after.properties}
    return _match(
        {name: item.prop_id for name, item in old.items()},
        {name: item.prop_id for name, item in new.items()},
        shared,
        lambda name: can_hold(new[name].type, old[name].type),
    )


def _match(
    before: Mapping[str, int],
    after: Mapping[str, int],
    shared: frozenset[int],
    can_follow: Callable[[str], bool],
) -> dict[str, str]:
    """Earlier name → later name: by shared id, then by name, then by whatever id both have."""
    names = {identity: name for name, identity in after.items()}
    by_id = {name: names[own] for name, own in before.items() if own in names}
    found: dict[str, str] = {}

    def take(pairs: Iterable[tuple[str, str]]) -> None:
        for old, new in pairs:
            if old not in found and new not in found.values():
                found[old] = new

    take((old, new) for old, new in by_id.items() if before[old] in shared)
    take((name, name) for name in before if name in after and can_follow(name))
    # Drawn on one branch and carried over to the other by a merge, and renamed on the way.
    take(by_id.items())
    return {name: found[name] for name in before if name in found}
