"""A merged schema with room for nulls: sides come in, the schema to keep their rows goes out.

For states that are compared with and never published. Rows of one side may lack a value that the
other side has come to ask for; whoever publishes rows has them checked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.merge.sides import document_of
from omnigraph_core.schema.document import render_document, schema_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.merge.sides import Side
    from omnigraph_core.schema.document import DocumentProperty


def loosened(schema: AcceptedSchema, sides: Iterable[Side]) -> AcceptedSchema:
    """The schema, where properties that rows of a side may lack can be null.

    Args:
        sides: seen in that schema.
    """
    lacking = {found for side in sides for found in _lacking(side)}
    if not lacking:
        return schema
    document = document_of(schema)
    loose = replace(
        document,
        nodes=tuple(
            replace(item, properties=_loose(node_table_key(item.name), item.properties, lacking))
            for item in document.nodes
        ),
        edges=tuple(
            replace(item, properties=_loose(edge_table_key(item.name), item.properties, lacking))
            for item in document.edges
        ),
    )
    return AcceptedSchema(schema.source, render_document(loose), schema_hash(loose))


def _lacking(side: Side) -> Iterator[tuple[str, str]]:
    """Table keys and names of required properties that have no value in some rows, maybe."""
    for entry in side.snapshot.tables.values():
        after = side.merged_type(entry)
        if after is None:
            continue
        before, sources = side.type_of(entry).properties, side.sources(entry, after)
        for name, prop in after.properties.items():
            source = sources[name]
            is_there = source.column is not None and not before[source.column].type.is_nullable
            if not prop.type.is_nullable and source.fill is None and not is_there:
                yield after.table_key, name


def _loose(
    table_key: str, properties: Iterable[DocumentProperty], lacking: set[tuple[str, str]]
) -> tuple[DocumentProperty, ...]:
    return tuple(
        replace(item, type=item.type.nullable(is_nullable=True))
        if (table_key, item.name) in lacking
        else item
        for item in properties
    )
