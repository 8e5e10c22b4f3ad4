"""AST to catalog: checks every declaration, then writes down what they mean together.

All problems are collected first; a catalog is built only from a schema that has none, so building
itself checks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from omnigraph_core.diagnostics import Diagnostics, Name, Source
from omnigraph_core.errors import SchemaError, SchemaSyntaxError
from omnigraph_core.schema import ast
from omnigraph_core.schema.assemble import COLUMN_CONSTRAINTS
from omnigraph_core.schema.catalog import (
    Catalog,
    EdgeType,
    Embedding,
    InterfaceType,
    NodeType,
    PropertyDef,
)
from omnigraph_core.schema.check_annotations import find_annotation
from omnigraph_core.schema.check_properties import check_properties
from omnigraph_core.schema.check_types import check_edge, check_node
from omnigraph_core.schema.defaults import default_value
from omnigraph_core.schema.expand import (
    Effective,
    Expanded,
    expand_edge,
    expand_node,
)
from omnigraph_core.schema.read import read_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_D = TypeVar("_D", ast.Interface, ast.Node, ast.Edge)


def build_catalog(schema: ast.Schema, source: Source | None = None) -> Catalog:
    """The catalog of a parsed schema; `source` is the text its spans point into.

    Raises:
        SchemaError: with every problem found.
    """
    problems = Diagnostics(source or Source("", "<schema>"))
    declared = _check(schema, problems)
    if problems:
        raise SchemaError(problems.found)
    return declared.catalog()


def compile_schema(text: str, name: str = "<schema>") -> Catalog:
    """Parse and build in one step; a text that parses is checked even where names are unknown.

    Raises:
        SchemaSyntaxError: the text does not follow the grammar.
        SchemaError: it does, but declares something that cannot be.
    """
    parsed = read_schema(text, name)
    if not parsed.is_complete:
        raise SchemaSyntaxError(parsed.problems.found)
    is_grammatical = not parsed.problems
    declared = _check(parsed.schema, parsed.problems)
    if parsed.problems:
        raise (SchemaError if is_grammatical else SchemaSyntaxError)(parsed.problems.found)
    return declared.catalog()


class _Declared:
    """The declarations of a schema by name, each with its effective properties."""

    def __init__(self) -> None:
        self.interfaces: dict[str, ast.Interface] = {}
        self.nodes: dict[str, tuple[ast.Node, Expanded]] = {}
        self.edges: dict[str, tuple[ast.Edge, Expanded]] = {}

    def catalog(self) -> Catalog:
        edges = {name: _edge_type(*item) for name, item in self.edges.items()}
        return Catalog(
            interfaces={name: _interface_type(item) for name, item in self.interfaces.items()},
            nodes={name: _node_type(*item) for name, item in self.nodes.items()},
            edges=edges,
            edge_names={name.lower(): name for name in edges},
        )


def _check(schema: ast.Schema, problems: Diagnostics) -> _Declared:
    """Every declaration checked, the first of each name kept."""
    declared = _Declared()
    interfaces = [item for item in schema.declarations if isinstance(item, ast.Interface)]
    nodes = [item for item in schema.declarations if isinstance(item, ast.Node)]
    edges = [item for item in schema.declarations if isinstance(item, ast.Edge)]
    declared.interfaces = _first_by_name(interfaces, "C4", "interface", problems)
    _first_by_name(nodes, "C1", "node", problems)
    _check_edge_names(_first_by_name(edges, "C1", "edge", problems).values(), problems)
    for interface in interfaces:
        check_properties("interface", interface.name, interface.properties, problems)
    for node in nodes:
        expanded = expand_node(node, declared.interfaces, problems)
        check_node(node, expanded, problems)
        declared.nodes.setdefault(str(node.name), (node, expanded))
    for edge in edges:
        expanded = expand_edge(edge)
        check_edge(edge, expanded, declared.nodes, declared.interfaces, problems)
        declared.edges.setdefault(str(edge.name), (edge, expanded))
    return declared


def _first_by_name(
    items: Iterable[_D], code: str, kind: str, problems: Diagnostics
) -> dict[str, _D]:
    first: dict[str, _D] = {}
    for item in items:
        if item.name in first:
            message = f"{kind} `{item.name}` is declared twice"
            problems.add(code, message, item.name.span)
        first.setdefault(str(item.name), item)
    return first


def _check_edge_names(edges: Iterable[ast.Edge], problems: Diagnostics) -> None:
    """Traversals and records name edges in any case, so no two may differ in case only."""
    folded: dict[str, Name] = {}
    for edge in edges:
        first = folded.setdefault(edge.name.lower(), edge.name)
        if first != edge.name:
            message = f"edge `{edge.name}` differs from `{first}` only in case"
            hint = "edges are looked up whatever their case: choose another name"
            problems.add("C3", message, edge.name.span, hint=hint)


def _interface_type(interface: ast.Interface) -> InterfaceType:
    return InterfaceType(
        name=str(interface.name),
        properties={str(item.name): _definition(Effective(item)) for item in interface.properties},
    )


def _definition(effective: Effective) -> PropertyDef:
    item = effective.property
    return PropertyDef(
        name=str(item.name),
        type=item.type,
        annotations=tuple(a for a in item.annotations if a.name not in COLUMN_CONSTRAINTS),
        default=default_value(item),
        is_direct=effective.is_direct,
        satisfies=effective.satisfies,
    )


def _definitions(expanded: Expanded) -> dict[str, PropertyDef]:
    return {name: _definition(item) for name, item in expanded.properties.items()}


def _node_type(node: ast.Node, expanded: Expanded) -> NodeType:
    constraints = expanded.constraints
    keys = [item for item in constraints if isinstance(item, ast.Key)]
    key = _columns(keys[0]) if keys else None
    indexes = [_columns(item) for item in constraints if isinstance(item, ast.Index)]
    groups = [key, *indexes] if key else indexes
    return NodeType(
        name=str(node.name),
        properties=_definitions(expanded),
        implements=tuple(map(str, node.implements)),
        key=key,
        unique=_unique_groups(constraints),
        indexes=tuple(dict.fromkeys(groups)),
        ranges=tuple(item for item in constraints if isinstance(item, ast.Range)),
        checks=tuple(item for item in constraints if isinstance(item, ast.Check)),
        embeddings=_embeddings(expanded.properties),
        annotations=node.annotations,
    )


def _edge_type(edge: ast.Edge, expanded: Expanded) -> EdgeType:
    indexes = (_columns(item) for item in expanded.constraints if isinstance(item, ast.Index))
    return EdgeType(
        name=str(edge.name),
        source=str(edge.source),
        target=str(edge.target),
        cardinality=edge.cardinality or ast.Cardinality(),
        properties=_definitions(expanded),
        unique=_unique_groups(expanded.constraints),
        indexes=tuple(indexes),
        annotations=edge.annotations,
    )


def _unique_groups(constraints: Iterable[ast.Constraint]) -> tuple[tuple[str, ...], ...]:
    return tuple(_columns(item) for item in constraints if isinstance(item, ast.Unique))


def _columns(constraint: ast.Key | ast.Unique | ast.Index) -> tuple[str, ...]:
    return tuple(map(str, constraint.columns))


def _embeddings(properties: Mapping[str, Effective]) -> dict[str, Embedding]:
    found = {}
    for name, effective in properties.items():
        embed = find_annotation(effective.property, "embed")
        if embed is not None and embed.value is not None:
            model = next((value.text for key, value in embed.keywords if key == "model"), None)
            found[name] = Embedding(embed.value.text, model)
    return found
