"""Which id every type, table and property of a catalog has, given the accepted document.

Whatever continues an accepted thing keeps its ids; everything else draws fresh ones, in name order,
from a counter that only grows: what was dropped is gone, and a name that comes back is a new thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.schema.catalog import EdgeType, InterfaceType, NodeType
from omnigraph_core.schema.document.catalog import catalog_from_document
from omnigraph_core.schema.document.match import match_properties, match_types
from omnigraph_core.schema.document.model import DocumentInterface

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.document.model import DocumentType, SchemaDocument

_AnyType: TypeAlias = InterfaceType | NodeType | EdgeType

NO_TABLE = 0


@dataclass(frozen=True, slots=True)
class TypeIdentity:
    type_id: int
    table_incarnation_id: int
    """`NO_TABLE` for an interface."""
    properties: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Identities:
    interfaces: Mapping[str, TypeIdentity]
    nodes: Mapping[str, TypeIdentity]
    edges: Mapping[str, TypeIdentity]
    next_identity_id: int


def identify(catalog: Catalog, accepted: SchemaDocument) -> Identities:
    """Carry over the ids of everything that continues, and draw fresh ones for the rest."""
    before = catalog_from_document(accepted)
    fresh = count(accepted.next_identity_id)
    same = {name: name for name in catalog.interfaces if name in before.interfaces}
    nodes = match_types(before.nodes, catalog.nodes).previous
    edges = match_types(before.edges, catalog.edges).previous
    return Identities(
        _identify(catalog.interfaces, before.interfaces, same, accepted.interfaces, fresh),
        _identify(catalog.nodes, before.nodes, nodes, accepted.nodes, fresh),
        _identify(catalog.edges, before.edges, edges, accepted.edges, fresh),
        next_identity_id=next(fresh),
    )


def _identify(
    desired: Mapping[str, _AnyType],
    before: Mapping[str, _AnyType],
    previous: Mapping[str, str],
    documents: Iterable[DocumentType],
    fresh: Iterator[int],
) -> dict[str, TypeIdentity]:
    known = {item.name: item for item in documents}
    found = {}
    for name in sorted(desired):
        old = previous.get(name)
        if old is None:
            found[name] = _new_identity(desired[name], fresh)
        else:
            found[name] = _kept_identity(desired[name], before[old], known[old], fresh)
    return found


def _new_identity(desired: _AnyType, fresh: Iterator[int]) -> TypeIdentity:
    return TypeIdentity(
        type_id=next(fresh),
        table_incarnation_id=NO_TABLE if isinstance(desired, InterfaceType) else next(fresh),
        properties={name: next(fresh) for name in sorted(desired.properties)},
    )


def _kept_identity(
    desired: _AnyType, before: _AnyType, document: DocumentType, fresh: Iterator[int]
) -> TypeIdentity:
    ids = {item.name: item.prop_id for item in document.properties}
    previous = match_properties(before.properties, desired.properties).previous
    return TypeIdentity(
        type_id=document.type_id,
        table_incarnation_id=(
            NO_TABLE if isinstance(document, DocumentInterface) else document.table_incarnation_id
        ),
        properties={
            name: ids[previous[name]] if name in previous else next(fresh)
            for name in sorted(desired.properties)
        },
    )
