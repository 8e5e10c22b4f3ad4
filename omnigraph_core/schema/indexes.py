"""Which physical indexes a type's declarations ask for.

A catalog type comes in, index specifications go out, implicit columns first and each column once.
Declared groups that no index serves (several columns, lists, edge properties) are left out: no
result depends on an index.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, NodeType
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    from omnigraph_core.schema.catalog import EdgeType
    from omnigraph_core.types import PropType


class IndexKind(StrEnum):
    BTREE = "BTREE"
    INVERTED = "INVERTED"
    VECTOR = "VECTOR"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    columns: tuple[str, ...]
    kind: IndexKind


def physical_indexes(type: NodeType | EdgeType) -> tuple[IndexSpec, ...]:
    """The indexes to build for a table.

    A free text is indexed by its words, for search; whatever has an order by a BTREE.
    """
    is_node = isinstance(type, NodeType)
    implicit = NODE_IMPLICIT if is_node else EDGE_IMPLICIT
    specs = [IndexSpec((column,), IndexKind.BTREE) for column in implicit]
    for group in type.indexes if is_node else ():
        kind = _index_kind(type.properties[group[0]].type) if len(group) == 1 else None
        if kind is not None:
            specs.append(IndexSpec(group, kind))
    return tuple(specs)


def _index_kind(type: PropType) -> IndexKind | None:
    if type.is_list or type.is_blob:
        return None
    if type.is_vector:
        return IndexKind.VECTOR
    is_free_text = type.scalar is Scalar.STRING and not type.is_enum
    return IndexKind.INVERTED if is_free_text else IndexKind.BTREE
