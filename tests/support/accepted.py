"""Accepted schemas as branches hold them: a first one, and those that follow it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.merge.schema_parts import document_of
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import next_document
from omnigraph_core.schema.document import build_document, render_document, schema_hash
from omnigraph_core.schema.migrate import plan_migration

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.document import SchemaDocument


def first(source: str) -> AcceptedSchema:
    """The schema of a new graph."""
    document = build_document(_compiled(source), accepted=None, domain="domain")
    return _accepted(source, document)


def then(before: AcceptedSchema, *sources: str) -> AcceptedSchema:
    """What a branch has after it took these schemas, one after the other."""
    for source in sources:
        catalog = _compiled(source)
        plan_migration(document_of(before), catalog).require_supported()
        before = _accepted(source, next_document(catalog, document_of(before)))
    return before


@cache
def _compiled(source: str) -> Catalog:
    return compile_schema(source)


def _accepted(source: str, document: SchemaDocument) -> AcceptedSchema:
    return AcceptedSchema(source, render_document(document), schema_hash(document))
