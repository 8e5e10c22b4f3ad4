"""The accepted schema as persisted: every type and property with an identity that survives renames.

Lists are sorted by name; `position` keeps the written order. Ids come from one counter and are
never handed out twice in an identity domain: an id found in old data always means the same thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.constants import SCHEMA_DOCUMENT_VERSION

if TYPE_CHECKING:
    from omnigraph_core.schema.ast import Annotation, Cardinality
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

IR_VERSION: Final = SCHEMA_DOCUMENT_VERSION.value
FIRST_IDENTITY_ID: Final = 1


class ConstraintKind(StrEnum):
    KEY = "Key"
    UNIQUE = "Unique"
    INDEX = "Index"
    RANGE = "Range"
    CHECK = "Check"


@dataclass(frozen=True, slots=True)
class Reference:
    """Something named elsewhere in the document; `id` is None for the implicit columns of edges."""

    id: int | None
    name: str


@dataclass(frozen=True, slots=True)
class SatisfiedProperty:
    """The interface property that a node property fulfils."""

    interface: Reference
    property_id: int


@dataclass(frozen=True, slots=True)
class DocumentConstraint:
    """`columns` holds one reference for a range or a check; bounds and pattern belong to those."""

    kind: ConstraintKind
    columns: tuple[Reference, ...]
    minimum: int | float | None = None
    maximum: int | float | None = None
    pattern: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class DocumentProperty:
    name: str
    prop_id: int
    position: int
    type: PropType
    annotations: tuple[Annotation, ...] = ()
    default: Value = None
    property_constraints: tuple[ConstraintKind, ...] = ()
    """Which one-column constraints of the type stand on this property alone."""
    embed_source: Reference | None = None
    embed_model: str | None = None
    declared_directly: bool = True
    satisfies_interface_properties: tuple[SatisfiedProperty, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentInterface:
    name: str
    type_id: int
    position: int
    properties: tuple[DocumentProperty, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentNode:
    name: str
    type_id: int
    table_incarnation_id: int
    position: int
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[Reference, ...] = ()
    properties: tuple[DocumentProperty, ...] = ()
    constraints: tuple[DocumentConstraint, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentEdge:
    name: str
    type_id: int
    table_incarnation_id: int
    position: int
    from_type: Reference
    to_type: Reference
    cardinality: Cardinality
    annotations: tuple[Annotation, ...] = ()
    properties: tuple[DocumentProperty, ...] = ()
    constraints: tuple[DocumentConstraint, ...] = ()


DocumentType: TypeAlias = DocumentInterface | DocumentNode | DocumentEdge


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    schema_identity_domain: str
    """A ULID per graph: ids of two graphs never compare."""
    next_identity_id: int
    interfaces: tuple[DocumentInterface, ...] = ()
    nodes: tuple[DocumentNode, ...] = ()
    edges: tuple[DocumentEdge, ...] = ()
    ir_version: int = IR_VERSION

    @property
    def types(self) -> tuple[DocumentType, ...]:
        """Every type: interfaces, nodes, edges."""
        return (*self.interfaces, *self.nodes, *self.edges)
