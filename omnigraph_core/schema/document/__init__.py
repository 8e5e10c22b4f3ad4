"""The persisted schema document: build it from a catalog, store it, compare it, open from it."""

from omnigraph_core.schema.document.build import build_document
from omnigraph_core.schema.document.catalog import catalog_from_document
from omnigraph_core.schema.document.hashes import schema_hash, shape_hash
from omnigraph_core.schema.document.model import (
    IR_VERSION,
    ConstraintKind,
    DocumentConstraint,
    DocumentEdge,
    DocumentInterface,
    DocumentNode,
    DocumentProperty,
    DocumentType,
    Reference,
    SatisfiedProperty,
    SchemaDocument,
)
from omnigraph_core.schema.document.wire import (
    document_from_json,
    document_to_json,
    render_document,
)

__all__ = [
    "IR_VERSION",
    "ConstraintKind",
    "DocumentConstraint",
    "DocumentEdge",
    "DocumentInterface",
    "DocumentNode",
    "DocumentProperty",
    "DocumentType",
    "Reference",
    "SatisfiedProperty",
    "SchemaDocument",
    "build_document",
    "catalog_from_document",
    "document_from_json",
    "document_to_json",
    "render_document",
    "schema_hash",
    "shape_hash",
]
