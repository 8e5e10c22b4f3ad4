"""A catalog is compiled once for each schema hash."""

from __future__ import annotations

from omnigraph_core.exec.catalogs import MAX_CATALOGS, accepted_catalog
from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.document import build_document, render_document, schema_hash


def accepted(source: str) -> AcceptedSchema:
    document = build_document(compile_schema(source), accepted=None)
    return AcceptedSchema(source, render_document(document), schema_hash(document))


def test_the_same_schema_gives_the_same_catalog() -> None:
    schema = accepted("node Part { sku: String @key }")
    catalog = accepted_catalog(schema)

    assert catalog.nodes["Part"].key == ("sku",)
    assert accepted_catalog(schema) is catalog
    assert accepted_catalog(accepted("node Bin { code: String @key }")) is not catalog


def test_only_the_newest_catalogs_are_kept() -> None:
    first, second = accepted("node Old {}"), accepted("node Older {}")
    kept, dropped = accepted_catalog(first), accepted_catalog(second)
    for number in range(MAX_CATALOGS - 1):
        accepted_catalog(first)
        accepted_catalog(accepted(f"node N{number} {{}}"))

    assert accepted_catalog(first) is kept
    assert accepted_catalog(second) is not dropped
