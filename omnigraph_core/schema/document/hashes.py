"""Two fingerprints: of a document with its identities, and of the shape a schema describes.

The shape leaves out ids, positions, rename hints and how a property got onto its type; it holds
what migration planning compares, so an empty plan means equal shapes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from omnigraph_core.schema.catalog import Catalog
from omnigraph_core.schema.document.catalog import catalog_from_document
from omnigraph_core.schema.document.shape import (
    annotation_shape,
    embeddings_of,
    metadata,
    stored_default,
    unordered_groups,
)
from omnigraph_core.schema.document.wire import document_to_json
from omnigraph_core.values import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.schema.ast import Annotation
    from omnigraph_core.schema.catalog import EdgeType, InterfaceType, NodeType
    from omnigraph_core.schema.document.model import SchemaDocument


def schema_hash(document: SchemaDocument) -> str:
    """`sha256:` and the hex digest of the document as compact JSON with sorted fields."""
    return _digest(document_to_json(document))


def shape_hash(schema: Catalog | SchemaDocument) -> str:
    """`sha256:` and the hex digest of what the schema describes, without identities."""
    catalog = schema if isinstance(schema, Catalog) else catalog_from_document(schema)
    return _digest(
        {
            "interfaces": {
                item.name: {"properties": _properties(item)} for item in catalog.interfaces.values()
            },
            "nodes": {item.name: _node(item) for item in catalog.nodes.values()},
            "edges": {item.name: _edge(item) for item in catalog.edges.values()},
        }
    )


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _node(node: NodeType) -> dict[str, object]:
    ranges = {(item.property, _bound(item.minimum), _bound(item.maximum)) for item in node.ranges}
    return {
        "annotations": _metadata(node.annotations),
        "implements": sorted(set(node.implements)),
        "properties": _properties(node),
        "key": node.key,
        "unique": sorted(unordered_groups(node.unique)),
        "indexes": sorted(unordered_groups(node.indexes)),
        "ranges": sorted(ranges),
        "checks": sorted({(item.property, item.pattern) for item in node.checks}),
    }


def _edge(edge: EdgeType) -> dict[str, object]:
    return {
        "source": edge.source,
        "target": edge.target,
        "cardinality": (edge.cardinality.minimum, edge.cardinality.maximum),
        "annotations": _metadata(edge.annotations),
        "properties": _properties(edge),
        "unique": sorted(unordered_groups(edge.unique)),
        "indexes": sorted(unordered_groups(edge.indexes)),
    }


def _properties(owner: InterfaceType | NodeType | EdgeType) -> dict[str, object]:
    embeddings = embeddings_of(owner)
    return {
        name: {
            "type": str(item.type),
            "default": to_json(stored_default(item)),
            "annotations": _metadata(item.annotations),
            "embed": [e.source, e.model] if (e := embeddings.get(name)) else None,
        }
        for name, item in owner.properties.items()
    }


def _metadata(annotations: Iterable[Annotation]) -> list[dict[str, object]]:
    return [annotation_shape(item) for item in metadata(annotations)]


def _bound(bound: int | float | None) -> str:
    # 1 and 1.0 limit the same values; text, because an open side must sort among numbers.
    if isinstance(bound, float) and bound.is_integer():
        bound = int(bound)
    return "" if bound is None else str(bound)
