"""The Arrow schema of each type: as it is declared, and as its table stores it.

A catalog type comes in; a schema goes out with the implicit columns first, then every property in
declaration order. As declared, a field is nullable exactly when its property is. A table has
companion columns besides, whose names no property can have:

- `<blob>#uri` holds the address of a blob that is kept elsewhere; `<blob>` is null then.
- `<vector>#origin` holds the fingerprint of the text and model a vector was made from, null for a
  vector that was given. A vector still to be made is null even where null is not declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, NodeType
from omnigraph_core.types import PropType, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.schema.catalog import EdgeType, PropertyDef

COMPANION_MARK: Final = "#"
"""In the name of every companion column, and in no name that can be written."""

_SCALARS: Final = {
    Scalar.STRING: pa.utf8(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.date64(),
    Scalar.VECTOR: pa.float32(),
}


def node_schema(node: NodeType) -> pa.Schema:
    """`id`, then the properties."""
    return _schema(NODE_IMPLICIT, node.properties.values())


def edge_schema(edge: EdgeType) -> pa.Schema:
    """`id`, `src`, `dst`, then the properties."""
    return _schema(EDGE_IMPLICIT, edge.properties.values())


def table_schema(type: NodeType | EdgeType) -> pa.Schema:
    """The columns a type's table stores, companions right after the column they belong to."""
    declared = node_schema(type) if isinstance(type, NodeType) else edge_schema(type)
    embeddings = type.embeddings if isinstance(type, NodeType) else {}
    fields: list[pa.Field] = []
    for field in declared:
        if pa.types.is_large_binary(field.type):
            fields += [field.with_nullable(True), pa.field(uri_column(field.name), pa.utf8())]
        elif field.name in embeddings:
            fields += [field.with_nullable(True), pa.field(origin_column(field.name), pa.int64())]
        else:
            fields.append(field)
    return pa.schema(fields)


def uri_column(blob: str) -> str:
    """The column with the addresses of the blobs of a property that are kept elsewhere."""
    return f"{blob}{COMPANION_MARK}uri"


def origin_column(vector: str) -> str:
    """The column that says what the vectors of a property were made from."""
    return f"{vector}{COMPANION_MARK}origin"


def is_companion(column: str) -> bool:
    """Whether a column only accompanies a property."""
    return COMPANION_MARK in column


def _schema(implicit: Iterable[str], properties: Iterable[PropertyDef]) -> pa.Schema:
    fields = [pa.field(name, pa.utf8(), nullable=False) for name in implicit]
    fields += [
        pa.field(item.name, arrow_type(item.type), nullable=item.type.is_nullable)
        for item in properties
    ]
    return pa.schema(fields)


def arrow_type(type: PropType) -> pa.DataType:
    """The Arrow type of a declared type, whatever its nullability.

    >>> arrow_type(PropType(Scalar.VECTOR, dimension=3))
    FixedSizeListType(fixed_size_list<item: float>[3])
    """
    member = pa.field("item", _SCALARS[type.scalar], nullable=True)
    if type.is_vector:
        return pa.list_(member, type.dimension)
    return pa.list_(member) if type.is_list else _SCALARS[type.scalar]
