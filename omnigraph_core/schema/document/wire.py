"""The document as JSON and back, an exact round trip.

Reading is strict: a field too many or too few is damage, not something to guess around. A newer
format is refused before anything else in it is looked at.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from omnigraph_core.errors import FormatTooNew
from omnigraph_core.schema.ast import Cardinality
from omnigraph_core.schema.document.check import check_document
from omnigraph_core.schema.document.cursor import Cursor
from omnigraph_core.schema.document.model import (
    IR_VERSION,
    DocumentEdge,
    DocumentInterface,
    DocumentNode,
    SchemaDocument,
)
from omnigraph_core.schema.document.parts import (
    annotation_from_json,
    annotation_to_json,
    constraint_from_json,
    constraint_to_json,
    property_from_json,
    property_to_json,
    reference_from_json,
    reference_to_json,
)

_DOCUMENT = (
    "ir_version",
    "schema_identity_domain",
    "next_identity_id",
    "interfaces",
    "nodes",
    "edges",
)
_INTERFACE = ("name", "type_id", "position", "properties")
_NODE = (
    "name",
    "type_id",
    "table_incarnation_id",
    "position",
    "annotations",
    "implements",
    "properties",
    "constraints",
)
_EDGE = (
    "name",
    "type_id",
    "table_incarnation_id",
    "position",
    "from_type",
    "to_type",
    "cardinality",
    "annotations",
    "properties",
    "constraints",
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def document_to_json(document: SchemaDocument) -> dict[str, object]:
    """The document as a JSON value."""
    return {
        "ir_version": document.ir_version,
        "schema_identity_domain": document.schema_identity_domain,
        "next_identity_id": document.next_identity_id,
        "interfaces": [_interface_to_json(item) for item in document.interfaces],
        "nodes": [_node_to_json(item) for item in document.nodes],
        "edges": [_edge_to_json(item) for item in document.edges],
    }


def document_from_json(value: object) -> SchemaDocument:
    """Read a document back.

    Raises:
        FormatTooNew: written by a newer release.
        ConfigError: not a schema document, or one whose parts contradict each other.
    """
    root = Cursor(value, "schema document")
    _refuse_other_versions(root)
    fields = root.fields(*_DOCUMENT)
    document = SchemaDocument(
        schema_identity_domain=fields["schema_identity_domain"].text(),
        next_identity_id=fields["next_identity_id"].whole(),
        interfaces=tuple(_interface_from_json(item) for item in fields["interfaces"].items()),
        nodes=tuple(_node_from_json(item) for item in fields["nodes"].items()),
        edges=tuple(_edge_from_json(item) for item in fields["edges"].items()),
    )
    check_document(document)
    return document


def render_document(document: SchemaDocument) -> str:
    """The document as it is stored: indented JSON with a final newline."""
    return json.dumps(document_to_json(document), indent=2, ensure_ascii=False) + "\n"


def _refuse_other_versions(root: Cursor) -> None:
    value = root.value
    version = Cursor(
        value.get("ir_version") if isinstance(value, dict) else None, f"{root.path}.ir_version"
    )
    if version.whole() > IR_VERSION:
        raise FormatTooNew(
            f"the schema document has ir_version {version.value}, this release reads {IR_VERSION}",
            hint="upgrade OmniGraph to open this graph",
        )
    if version.whole() != IR_VERSION:
        raise version.problem(f"expected {IR_VERSION}, found {version.whole()}")


def _interface_to_json(interface: DocumentInterface) -> dict[str, object]:
    return {
        "name": interface.name,
        "type_id": interface.type_id,
        "position": interface.position,
        "properties": [property_to_json(item) for item in interface.properties],
    }


def _interface_from_json(cursor: Cursor) -> DocumentInterface:
    fields = cursor.fields(*_INTERFACE)
    return DocumentInterface(
        name=fields["name"].text(),
        type_id=fields["type_id"].whole(),
        position=fields["position"].whole(),
        properties=tuple(property_from_json(item) for item in fields["properties"].items()),
    )


def _node_to_json(node: DocumentNode) -> dict[str, object]:
    return {
        "name": node.name,
        "type_id": node.type_id,
        "table_incarnation_id": node.table_incarnation_id,
        "position": node.position,
        "annotations": [annotation_to_json(item) for item in node.annotations],
        "implements": [reference_to_json(item) for item in node.implements],
        "properties": [property_to_json(item) for item in node.properties],
        "constraints": [constraint_to_json(item) for item in node.constraints],
    }


def _node_from_json(cursor: Cursor) -> DocumentNode:
    fields = cursor.fields(*_NODE)
    return DocumentNode(
        name=fields["name"].text(),
        type_id=fields["type_id"].whole(),
        table_incarnation_id=fields["table_incarnation_id"].whole(),
        position=fields["position"].whole(),
        annotations=tuple(annotation_from_json(item) for item in fields["annotations"].items()),
        implements=tuple(reference_from_json(item) for item in fields["implements"].items()),
        properties=tuple(property_from_json(item) for item in fields["properties"].items()),
        constraints=tuple(constraint_from_json(item) for item in fields["constraints"].items()),
    )


def _edge_to_json(edge: DocumentEdge) -> dict[str, object]:
    return {
        "name": edge.name,
        "type_id": edge.type_id,
        "table_incarnation_id": edge.table_incarnation_id,
        "position": edge.position,
        "from_type": reference_to_json(edge.from_type),
        "to_type": reference_to_json(edge.to_type),
        "cardinality": {"min": edge.cardinality.minimum, "max": edge.cardinality.maximum},
        "annotations": [annotation_to_json(item) for item in edge.annotations],
        "properties": [property_to_json(item) for item in edge.properties],
        "constraints": [constraint_to_json(item) for item in edge.constraints],
    }


def _edge_from_json(cursor: Cursor) -> DocumentEdge:
    fields = cursor.fields(*_EDGE)
    return DocumentEdge(
        name=fields["name"].text(),
        type_id=fields["type_id"].whole(),
        table_incarnation_id=fields["table_incarnation_id"].whole(),
        position=fields["position"].whole(),
        from_type=reference_from_json(fields["from_type"]),
        to_type=reference_from_json(fields["to_type"]),
        cardinality=_cardinality_from_json(fields["cardinality"]),
        annotations=tuple(annotation_from_json(item) for item in fields["annotations"].items()),
        properties=tuple(property_from_json(item) for item in fields["properties"].items()),
        constraints=tuple(constraint_from_json(item) for item in fields["constraints"].items()),
    )


def _cardinality_from_json(cursor: Cursor) -> Cardinality:
    fields: Mapping[str, Cursor] = cursor.fields("min", "max")
    maximum = None if fields["max"].is_null else fields["max"].whole()
    return Cardinality(fields["min"].whole(), maximum)
