"""A schema as boxes and arrows: a catalog comes in, what any picture of it shows goes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.schema.ast import Cardinality
    from omnigraph_core.schema.catalog import Catalog, NodeType, PropertyDef
    from omnigraph_core.types import PropType


@dataclass(frozen=True, slots=True)
class Line:
    """A property in a box."""

    name: str
    type: PropType
    is_key: bool = False
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A type of nodes, or an interface."""

    name: str
    lines: tuple[Line, ...]
    is_interface: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """A type of edges; `cardinality` None: a node type and an interface it implements."""

    source: str
    target: str
    name: str = ""
    lines: tuple[Line, ...] = ()
    cardinality: Cardinality | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def drawing_of(catalog: Catalog) -> Drawing:
    """Node types, interfaces and edge types, in the order of the schema."""
    interfaces = tuple(
        Box(item.name, _lines(item.properties), is_interface=True)
        for item in catalog.interfaces.values()
    )
    nodes = tuple(Box(item.name, _node_lines(item)) for item in catalog.nodes.values())
    edges = tuple(
        Arrow(item.source, item.target, item.name, _lines(item.properties), item.cardinality)
        for item in catalog.edges.values()
    )
    implemented = tuple(
        Arrow(item.name, interface)
        for item in catalog.nodes.values()
        for interface in item.implements
    )
    return Drawing((*nodes, *interfaces), (*edges, *implemented))


def _lines(properties: Mapping[str, PropertyDef]) -> tuple[Line, ...]:
    return tuple(Line(item.name, item.type) for item in properties.values())


def _node_lines(node: NodeType) -> tuple[Line, ...]:
    single = {group[0] for group in node.unique if len(group) == 1}
    key = frozenset(node.key or ())
    return tuple(
        Line(item.name, item.type, is_key=item.name in key, is_unique=item.name in single)
        for item in node.properties.values()
    )
