"""Checks nodes and edges as finished types: headers, keys, embedding sources, end points.

Declarations and their expansions come in; problems go out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import Diagnostics, Name, did_you_mean
from omnigraph_core.schema import ast
from omnigraph_core.schema.check_annotations import check_type_annotations, find_annotation
from omnigraph_core.schema.check_constraints import check_edge_constraints, check_node_constraints
from omnigraph_core.schema.check_properties import check_properties
from omnigraph_core.schema.type_names import is_unknown

if TYPE_CHECKING:
    from collections.abc import Collection

    from omnigraph_core.schema.expand import Expanded

_LARGEST_COUNT: Final = 2**32 - 1


def check_node(node: ast.Node, expanded: Expanded, problems: Diagnostics) -> None:
    """Report what is wrong with a node."""
    check_type_annotations("node", node.annotations, problems)
    check_properties("node", node.name, node.properties, problems)
    check_node_constraints(node, expanded.properties, problems)
    keys = [item for item in expanded.constraints if isinstance(item, ast.Key)]
    _check_single_key(node, keys, problems)
    for effective in expanded.properties.values():
        _check_embed_source(node, effective.property, expanded, problems)
        _check_keyless_default(node, effective.property, keys, problems)


def _check_single_key(node: ast.Node, keys: list[ast.Key], problems: Diagnostics) -> None:
    for again in keys[1:]:
        message = f"`{node.name}` has two keys: {_columns(keys[0])} and {_columns(again)}"
        if node.span.start <= again.span.start < node.span.end:
            names = ", ".join(dict.fromkeys([*keys[0].columns, *again.columns]))
            hint = f"for one key of several properties write `@key({names})`"
            problems.add("P14", message, again.span, hint=hint)
        else:
            hint = f"{_columns(again)} is the key of an interface: keep one of the two"
            problems.add("P14", message, node.name.span, hint=hint)


def _columns(key: ast.Key) -> str:
    return f"`{', '.join(key.columns)}`"


def _check_embed_source(
    node: ast.Node, property: ast.Property, expanded: Expanded, problems: Diagnostics
) -> None:
    embed = find_annotation(property, "embed")
    if embed is None or embed.value is None or not embed.value.text.strip():
        return
    source = embed.value.text
    found = expanded.properties.get(source)
    if found is None:
        message = f"unknown property `{source}` on `{node.name}`"
        hint = did_you_mean(source, expanded.properties)
        problems.add("P12", message, embed.value.span, hint=hint)
    elif not found.property.type.is_string and not is_unknown(found.property.type):
        type = found.property.type
        message = f"`@embed` reads a String; `{source}` of `{node.name}` is {type}"
        problems.add("P12", message, embed.value.span)


def _check_keyless_default(
    node: ast.Node, property: ast.Property, keys: list[ast.Key], problems: Diagnostics
) -> None:
    default = find_annotation(property, "default")
    if default is not None and any(property.name in key.columns for key in keys):
        message = f"key property `{property.name}` of `{node.name}` cannot have a default"
        problems.add("P24", message, default.span)


def check_edge(
    edge: ast.Edge,
    expanded: Expanded,
    nodes: Collection[str],
    interfaces: Collection[str],
    problems: Diagnostics,
) -> None:
    """Report what is wrong with an edge."""
    for end in (edge.source, edge.target):
        _check_end_point(end, nodes, interfaces, problems)
    if edge.cardinality is not None:
        _check_cardinality(edge.cardinality, problems)
    check_type_annotations("edge", edge.annotations, problems)
    check_properties("edge", edge.name, edge.properties, problems)
    check_edge_constraints(edge, expanded.properties, problems)


def _check_end_point(
    end: Name, nodes: Collection[str], interfaces: Collection[str], problems: Diagnostics
) -> None:
    if end in nodes:
        return
    hint = did_you_mean(end, nodes)
    if end in interfaces:
        hint = "an interface has no rows of its own: name a node type"
    problems.add("C2", f"unknown node type `{end}`", end.span, hint=hint)


def _check_cardinality(cardinality: ast.Cardinality, problems: Diagnostics) -> None:
    low, high = cardinality.minimum, cardinality.maximum
    if max(low, high or 0) > _LARGEST_COUNT:
        message = f"a cardinality is at most {_LARGEST_COUNT}"
        hint = "leave the upper side empty for no limit: `@card(0..)`"
        problems.add("P4", message, cardinality.span, hint=hint)
    elif high is not None and low > high:
        message = f"no number of edges lies in {low}..{high}"
        problems.add("P4", message, cardinality.span, hint=f"write `@card({high}..{low})`")
