"""The accepted meaning of a schema: effective types after interface expansion, ready to look up.

Built by `build.build_catalog`; immutable. Properties keep declaration order, directly declared ones
first, then those copied from interfaces in written order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from omnigraph_core.ids import edge_table_key, node_table_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.schema.ast import Annotation, Cardinality, Check, Range
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

NODE_IMPLICIT: Final = ("id",)
EDGE_IMPLICIT: Final = ("id", "src", "dst")
EDGE_ENDS: Final = {"from": "src", "to": "dst"}
"""How authors write the ends of an edge → the columns that hold them."""


@dataclass(frozen=True, slots=True)
class PropertyDef:
    """A property of a node, edge or interface.

    `annotations` leaves out `@key`, `@unique` and `@index`, which are constraints of the type.
    `default` is None both for no default and never for a null one: null is what omission means.
    """

    name: str
    type: PropType
    annotations: tuple[Annotation, ...] = ()
    default: Value = None
    is_direct: bool = True
    satisfies: tuple[str, ...] = ()
    """Interfaces that declare this property too."""

    @property
    def has_default(self) -> bool:
        return self.default is not None


@dataclass(frozen=True, slots=True)
class Embedding:
    """Which text fills a vector property, and with which recorded model."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class InterfaceType:
    name: str
    properties: Mapping[str, PropertyDef]


@dataclass(frozen=True, slots=True)
class NodeType:
    name: str
    properties: Mapping[str, PropertyDef]
    implements: tuple[str, ...] = ()
    key: tuple[str, ...] | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    """Index groups, the key group among them."""
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    embeddings: Mapping[str, Embedding] = field(default_factory=dict)
    annotations: tuple[Annotation, ...] = ()

    @property
    def table_key(self) -> str:
        return node_table_key(self.name)

    @property
    def key_property(self) -> str | None:
        """The first key column."""
        return self.key[0] if self.key else None

    @property
    def blob_properties(self) -> frozenset[str]:
        return frozenset(name for name, prop in self.properties.items() if prop.type.is_blob)


@dataclass(frozen=True, slots=True)
class EdgeType:
    name: str
    source: str
    target: str
    cardinality: Cardinality
    properties: Mapping[str, PropertyDef]
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    annotations: tuple[Annotation, ...] = ()

    @property
    def table_key(self) -> str:
        return edge_table_key(self.name)

    @property
    def blob_properties(self) -> frozenset[str]:
        return frozenset(name for name, prop in self.properties.items() if prop.type.is_blob)


@dataclass(frozen=True, slots=True)
class Catalog:
    interfaces: Mapping[str, InterfaceType]
    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    edge_names: Mapping[str, str]
    """Lower-cased edge name → declared name."""

    def try_edge(self, word: str) -> EdgeType | None:
        """The edge a traversal or record names, whatever its case."""
        name = self.edge_names.get(word.lower())
        return self.edges[name] if name is not None else None
