"""Which physical indexes a type's declarations ask for.

A catalog type comes in, index specifications go out, implicit columns first and each column once.
Declared groups of several columns, which no index serves, are left out: no result depends on an
index.
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
    BITMAP = "BITMAP"
    LABEL_LIST = "LABEL_LIST"
    INVERTED = "INVERTED"
    VECTOR = "VECTOR"


@dataclass(frozen=True, slots=True)
class IndexSpec:
    columns: tuple[str, ...]
    kind: IndexKind


def physical_indexes(type: NodeType | EdgeType) -> tuple[IndexSpec, ...]:
    """The indexes to build for a table.

    A free text is indexed by its words, for search; a list by its members; what has few values by a
    bitmap for each; whatever else has an order by a BTREE.
    """
    implicit = NODE_IMPLICIT if isinstance(type, NodeType) else EDGE_IMPLICIT
    specs = {column: IndexSpec((column,), IndexKind.BTREE) for column in implicit}
    for group in type.indexes:
        if len(group) > 1 or group[0] in specs:
            continue
        kind = _index_kind(type.properties[group[0]].type)
        if kind is not None:
            specs[group[0]] = IndexSpec(group, kind)
    return tuple(specs.values())


def _index_kind(type: PropType) -> IndexKind | None:
    if type.is_blob:
        return None
    if type.is_vector:
        return IndexKind.VECTOR
    if type.is_list:
        return IndexKind.LABEL_LIST
    if type.is_enum or type.scalar is Scalar.BOOL:
        return IndexKind.BITMAP
    return IndexKind.INVERTED if type.scalar is Scalar.STRING else IndexKind.BTREE
