"""Which physical indexes a type's declarations ask for.

A catalog type comes in, index specifications go out, implicit columns first. A column has one index
of a kind at most. Declared groups of several columns, which no index serves, are left out: no
result depends on an index.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph_core.schema.catalog import EDGE_IMPLICIT, NODE_IMPLICIT, NodeType
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    bitmap for each; whatever else has an order by a BTREE. What is unique by itself has a BTREE
    also if it is a text: every write looks for those that have its values.
    """
    implicit = NODE_IMPLICIT if isinstance(type, NodeType) else EDGE_IMPLICIT
    specs = [IndexSpec((column,), IndexKind.BTREE) for column in implicit]
    for group in _single(type, type.indexes):
        kind = _index_kind(type.properties[group[0]].type)
        if kind is not None:
            specs.append(IndexSpec(group, kind))
    for group in _single(type, type.unique):
        if _is_looked_up(type.properties[group[0]].type):
            specs.append(IndexSpec(group, IndexKind.BTREE))
    return tuple(dict.fromkeys(specs))


def _single(type: NodeType | EdgeType, groups: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Groups of one property; those of one implicit column have their index anyway."""
    return [group for group in groups if len(group) == 1 and group[0] in type.properties]


def _is_looked_up(type: PropType) -> bool:
    kind = _index_kind(type)
    return kind is IndexKind.BTREE or (kind is IndexKind.INVERTED and not type.is_list)


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
