"""The Arrow schema of a read's result, from the same description clients get.

A node column is a struct of `id` and every property but Blobs and Vectors, which are too big to
send unasked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.schema.arrow import arrow_type, node_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.query.descriptor import ResultColumn
    from omnigraph_core.schema.catalog import Catalog, NodeType


def result_schema(columns: Iterable[ResultColumn], catalog: Catalog) -> pa.Schema:
    """One field per result column, in order, named and nullable as described."""
    return pa.schema([_field(column, catalog) for column in columns])


def _field(column: ResultColumn, catalog: Catalog) -> pa.Field:
    if column.type is not None:
        return pa.field(column.name, arrow_type(column.type), nullable=column.is_nullable)
    if column.node_type is None:
        raise InvariantBroken(f"result column {column.name} has a type or holds a node")
    shown = node_object_type(catalog.nodes[column.node_type])
    return pa.field(column.name, shown, nullable=column.is_nullable)


def node_object_type(node: NodeType) -> pa.StructType:
    """The struct a node is shown as."""
    shown = ("id", *object_properties(node))
    return pa.struct([field for field in node_schema(node) if field.name in shown])


def object_properties(node: NodeType) -> tuple[str, ...]:
    """The properties a node shown as an object has, in declaration order."""
    return tuple(
        prop.name
        for prop in node.properties.values()
        if not prop.type.is_blob and not prop.type.is_vector
    )
