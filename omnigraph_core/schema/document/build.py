"""From a catalog to its document, with the identities of the accepted document carried over.

The same inputs give the same document. Columns and constraint groups keep their written order: the
order of key columns is part of a node's identity.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.ids import new_ulid
from omnigraph_core.schema.document.identities import identify
from omnigraph_core.schema.document.model import (
    FIRST_IDENTITY_ID,
    ConstraintKind,
    DocumentConstraint,
    DocumentEdge,
    DocumentInterface,
    DocumentNode,
    DocumentProperty,
    Reference,
    SatisfiedProperty,
    SchemaDocument,
)
from omnigraph_core.schema.document.shape import stored_default

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.schema.catalog import (
        Catalog,
        EdgeType,
        Embedding,
        InterfaceType,
        NodeType,
        PropertyDef,
    )
    from omnigraph_core.schema.document.identities import Identities, TypeIdentity

_Named = TypeVar("_Named", DocumentInterface, DocumentNode, DocumentEdge, DocumentProperty)
_by_name = attrgetter("name")

GROUP_KINDS = (ConstraintKind.KEY, ConstraintKind.UNIQUE, ConstraintKind.INDEX)


def build_document(
    catalog: Catalog, *, accepted: SchemaDocument | None, domain: str | None = None
) -> SchemaDocument:
    """The document of a catalog; with `accepted`, whatever continues keeps its identity.

    A rename hint that cannot be followed is left unfollowed: the thing counts as new.

    Args:
        domain: the identity domain of a first document; a fresh ULID when not given.
    """
    if accepted is None:
        accepted = SchemaDocument(domain or new_ulid(), FIRST_IDENTITY_ID)
    elif domain not in (None, accepted.schema_identity_domain):
        raise InvariantBroken("a graph keeps its identity domain")
    ids = identify(catalog, accepted)
    interfaces = enumerate(catalog.interfaces.values())
    nodes = enumerate(catalog.nodes.values())
    edges = enumerate(catalog.edges.values())
    return SchemaDocument(
        schema_identity_domain=accepted.schema_identity_domain,
        next_identity_id=ids.next_identity_id,
        interfaces=_sorted(_interface(item, position, ids) for position, item in interfaces),
        nodes=_sorted(_node(item, position, ids) for position, item in nodes),
        edges=_sorted(_edge(item, position, ids) for position, item in edges),
    )


def _sorted(items: Iterable[_Named]) -> tuple[_Named, ...]:
    return tuple(sorted(items, key=_by_name))


def _interface(interface: InterfaceType, position: int, ids: Identities) -> DocumentInterface:
    own = ids.interfaces[interface.name]
    return DocumentInterface(
        name=str(interface.name),
        type_id=own.type_id,
        position=position,
        properties=_properties(interface.properties, own, ids, (), {}),
    )


def _node(node: NodeType, position: int, ids: Identities) -> DocumentNode:
    own = ids.nodes[node.name]
    constraints = tuple(_node_constraints(node, own))
    return DocumentNode(
        name=str(node.name),
        type_id=own.type_id,
        table_incarnation_id=own.table_incarnation_id,
        position=position,
        annotations=node.annotations,
        implements=tuple(
            Reference(ids.interfaces[name].type_id, str(name)) for name in node.implements
        ),
        properties=_properties(node.properties, own, ids, constraints, node.embeddings),
        constraints=constraints,
    )


def _edge(edge: EdgeType, position: int, ids: Identities) -> DocumentEdge:
    own = ids.edges[edge.name]
    constraints = (
        *_groups(ConstraintKind.UNIQUE, edge.unique, own),
        *_groups(ConstraintKind.INDEX, edge.indexes, own),
    )
    return DocumentEdge(
        name=str(edge.name),
        type_id=own.type_id,
        table_incarnation_id=own.table_incarnation_id,
        position=position,
        from_type=Reference(ids.nodes[edge.source].type_id, str(edge.source)),
        to_type=Reference(ids.nodes[edge.target].type_id, str(edge.target)),
        cardinality=edge.cardinality,
        annotations=edge.annotations,
        properties=_properties(edge.properties, own, ids, constraints, {}),
        constraints=constraints,
    )


def _node_constraints(node: NodeType, own: TypeIdentity) -> Iterator[DocumentConstraint]:
    if node.key is not None:
        yield from _groups(ConstraintKind.KEY, (node.key,), own)
    yield from _groups(ConstraintKind.UNIQUE, node.unique, own)
    yield from _groups(ConstraintKind.INDEX, node.indexes, own)
    for limit in node.ranges:
        columns = (_column(limit.property, own),)
        yield DocumentConstraint(ConstraintKind.RANGE, columns, limit.minimum, limit.maximum)
    for check in node.checks:
        columns = (_column(check.property, own),)
        yield DocumentConstraint(ConstraintKind.CHECK, columns, pattern=check.pattern)


def _groups(
    kind: ConstraintKind, groups: Iterable[tuple[str, ...]], own: TypeIdentity
) -> Iterator[DocumentConstraint]:
    for group in groups:
        yield DocumentConstraint(kind, tuple(_column(name, own) for name in group))


def _column(name: str, own: TypeIdentity) -> Reference:
    return Reference(own.properties.get(name), str(name))


def _properties(
    properties: Mapping[str, PropertyDef],
    own: TypeIdentity,
    ids: Identities,
    constraints: tuple[DocumentConstraint, ...],
    embeddings: Mapping[str, Embedding],
) -> tuple[DocumentProperty, ...]:
    return _sorted(
        DocumentProperty(
            name=str(item.name),
            prop_id=own.properties[item.name],
            position=position,
            type=item.type,
            annotations=item.annotations,
            default=stored_default(item),
            property_constraints=one_column_constraints(item.name, constraints),
            embed_source=(
                _column(embeddings[item.name].source, own) if item.name in embeddings else None
            ),
            embed_model=embeddings[item.name].model if item.name in embeddings else None,
            declared_directly=item.is_direct,
            satisfies_interface_properties=tuple(
                SatisfiedProperty(
                    Reference(ids.interfaces[interface].type_id, str(interface)),
                    ids.interfaces[interface].properties[item.name],
                )
                for interface in item.satisfies
            ),
        )
        for position, item in enumerate(properties.values())
    )


def one_column_constraints(
    name: str, constraints: Iterable[DocumentConstraint]
) -> tuple[ConstraintKind, ...]:
    """The kinds of key, unique and index constraints that stand on this column alone."""
    alone = {item.kind for item in constraints if item.names == (name,)}
    return tuple(kind for kind in GROUP_KINDS if kind in alone)
