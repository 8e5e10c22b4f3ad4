"""AST to canonical text, the inverse of `parse`.

Parsing what this writes gives an equal AST: declarations, properties and constraints keep their
order, each on its own line. Headers write `@card`, then annotations, then `implements`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.schema import ast
from omnigraph_core.schema.render_parts import (
    render_annotation,
    render_cardinality,
    render_constraint,
    render_property,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def render_schema(schema: ast.Schema) -> str:
    """The schema as canonical text; empty for an empty schema.

    >>> from omnigraph_core.schema.parse import parse_schema
    >>> print(render_schema(parse_schema("node Part{id_:String@key,mass:F64?@range(mass,0..)}")))
    node Part {
      id_: String @key
      mass: F64?
      @range(mass, 0..)
    }
    <BLANKLINE>
    """
    return "\n".join(f"{_declaration(item)}\n" for item in schema.declarations)


def _declaration(declaration: ast.Declaration) -> str:
    match declaration:
        case ast.Interface():
            return _with_body(f"interface {declaration.name}", _lines(declaration.properties))
        case ast.Node():
            lines = _lines(declaration.properties, declaration.constraints)
            return _with_body(_node_header(declaration), lines)
        case ast.Edge():
            lines = _lines(declaration.properties, declaration.constraints)
            header = _edge_header(declaration)
            return _with_body(header, lines) if lines else header


def _with_body(header: str, lines: list[str]) -> str:
    if not lines:
        return f"{header} {{}}"
    return "\n".join([f"{header} {{", *(f"  {line}" for line in lines), "}"])


def _lines(
    properties: Iterable[ast.Property], constraints: Iterable[ast.Constraint] = ()
) -> list[str]:
    return [*map(render_property, properties), *map(render_constraint, constraints)]


def _node_header(node: ast.Node) -> str:
    parts = [f"node {node.name}", *map(render_annotation, node.annotations)]
    if node.implements:
        parts.append(f"implements {', '.join(node.implements)}")
    return " ".join(parts)


def _edge_header(edge: ast.Edge) -> str:
    parts = [f"edge {edge.name}: {edge.source} -> {edge.target}"]
    if edge.cardinality is not None:
        parts.append(render_cardinality(edge.cardinality))
    return " ".join([*parts, *map(render_annotation, edge.annotations)])
