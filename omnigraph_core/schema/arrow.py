"""The Arrow schema of each table.

A catalog type comes in; a schema goes out with the implicit columns first, then every property in
declaration order. A field is nullable exactly when its property is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT
from omnigraph_core.types import PropType, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.schema.catalog import EdgeType, NodeType, PropertyDef

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
