"""From the persisted document back to the catalog, so a graph opens without parsing its source.

Written order comes back from `position`; the result equals the catalog the document was built from.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Name
from omnigraph_core.schema.ast import Check, Range
from omnigraph_core.schema.catalog import (
    Catalog,
    EdgeType,
    Embedding,
    InterfaceType,
    NodeType,
    PropertyDef,
)
from omnigraph_core.schema.document.model import ConstraintKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.schema.document.model import (
        DocumentConstraint,
        DocumentEdge,
        DocumentNode,
        DocumentProperty,
        SchemaDocument,
    )

_written_order = attrgetter("position")


def catalog_from_document(document: SchemaDocument) -> Catalog:
    """The catalog this document was built from, without source positions."""
    interfaces = sorted(document.interfaces, key=_written_order)
    nodes = sorted(document.nodes, key=_written_order)
    edges = sorted(document.edges, key=_written_order)
    return Catalog(
        interfaces={
            item.name: InterfaceType(item.name, _properties(item.properties)) for item in interfaces
        },
        nodes={item.name: _node(item) for item in nodes},
        edges={item.name: _edge(item) for item in edges},
        edge_names={item.name.lower(): item.name for item in edges},
    )


def _node(node: DocumentNode) -> NodeType:
    keys = _groups(node.constraints, ConstraintKind.KEY)
    return NodeType(
        name=node.name,
        properties=_properties(node.properties),
        implements=tuple(interface.name for interface in node.implements),
        key=keys[0] if keys else None,
        unique=_groups(node.constraints, ConstraintKind.UNIQUE),
        indexes=_groups(node.constraints, ConstraintKind.INDEX),
        ranges=tuple(
            Range(Name(item.names[0]), item.minimum, item.maximum)
            for item in node.constraints
            if item.kind is ConstraintKind.RANGE
        ),
        checks=tuple(
            Check(Name(item.names[0]), item.pattern)
            for item in node.constraints
            if item.kind is ConstraintKind.CHECK and item.pattern is not None
        ),
        embeddings=_embeddings(node.properties),
        annotations=node.annotations,
    )


def _edge(edge: DocumentEdge) -> EdgeType:
    return EdgeType(
        name=edge.name,
        source=edge.from_type.name,
        target=edge.to_type.name,
        cardinality=edge.cardinality,
        properties=_properties(edge.properties),
        unique=_groups(edge.constraints, ConstraintKind.UNIQUE),
        indexes=_groups(edge.constraints, ConstraintKind.INDEX),
        annotations=edge.annotations,
    )


def _properties(properties: Iterable[DocumentProperty]) -> dict[str, PropertyDef]:
    return {
        item.name: PropertyDef(
            name=item.name,
            type=item.type,
            annotations=item.annotations,
            default=item.default,
            is_direct=item.declared_directly,
            satisfies=tuple(
                satisfied.interface.name for satisfied in item.satisfies_interface_properties
            ),
        )
        for item in sorted(properties, key=_written_order)
    }


def _embeddings(properties: Iterable[DocumentProperty]) -> dict[str, Embedding]:
    return {
        item.name: Embedding(item.embed_source.name, item.embed_model)
        for item in sorted(properties, key=_written_order)
        if item.embed_source is not None
    }


def _groups(
    constraints: Iterable[DocumentConstraint], kind: ConstraintKind
) -> tuple[tuple[str, ...], ...]:
    return tuple(item.names for item in constraints if item.kind is kind)
