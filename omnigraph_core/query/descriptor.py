"""What a read returns: one `ResultColumn` per column, known before anything runs.

The executor builds its result from the same checked columns, so data and description cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.query.typed import NodeValue
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    from omnigraph_core.query.checked import CheckedColumn, CheckedRead
    from omnigraph_core.types import PropType


class ValueKind(StrEnum):
    """The kinds of value clients distinguish; 32-bit integers are safe in every JSON reader."""

    STRING = "string"
    BOOL = "bool"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DATE = "date"
    DATETIME = "datetime"
    BLOB = "blob"
    VECTOR = "vector"
    LIST = "list"
    OBJECT = "object"


_KINDS: Final = {
    Scalar.STRING: ValueKind.STRING,
    Scalar.BLOB: ValueKind.BLOB,
    Scalar.BOOL: ValueKind.BOOL,
    Scalar.I32: ValueKind.INT,
    Scalar.U32: ValueKind.INT,
    Scalar.I64: ValueKind.BIGINT,
    Scalar.U64: ValueKind.BIGINT,
    Scalar.F32: ValueKind.FLOAT,
    Scalar.F64: ValueKind.FLOAT,
    Scalar.DATE: ValueKind.DATE,
    Scalar.DATETIME: ValueKind.DATETIME,
    Scalar.VECTOR: ValueKind.VECTOR,
}


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column as clients see it, and the type the executor builds it from.

    A node column has the kind `object`, no `type`, and the node type it holds in `node_type`.
    """

    name: str
    kind: ValueKind
    is_nullable: bool
    item_kind: ValueKind | None = None
    vector_dim: int | None = None
    type: PropType | None = None
    node_type: str | None = None

    def to_json(self) -> dict[str, object]:
        """The wire form; `item_kind` only for lists, `vector_dim` only for vectors."""
        found: dict[str, object] = {"name": self.name, "kind": str(self.kind)}
        if self.item_kind is not None:
            found["item_kind"] = str(self.item_kind)
        if self.vector_dim is not None:
            found["vector_dim"] = self.vector_dim
        found["nullable"] = self.is_nullable
        return found


def describe_columns(read: CheckedRead) -> tuple[ResultColumn, ...]:
    """The columns of a read, in written order."""
    return tuple(_describe(column) for column in read.columns)


def _describe(column: CheckedColumn) -> ResultColumn:
    if column.type is not None:
        return _describe_value(column.name, column.type)
    if not isinstance(column.expr, NodeValue):
        raise InvariantBroken(f"result column {column.name} has a type or holds a node")
    node = column.expr
    return ResultColumn(column.name, ValueKind.OBJECT, node.is_nullable, node_type=node.type_name)


def _describe_value(name: str, type: PropType) -> ResultColumn:
    kind = _KINDS[type.scalar]
    return ResultColumn(
        name=name,
        kind=ValueKind.LIST if type.is_list else kind,
        is_nullable=type.is_nullable,
        item_kind=kind if type.is_list else None,
        vector_dim=type.dimension,
        type=type,
    )
