"""Copies interface properties onto the nodes that implement them.

A node and the declared interfaces come in; the effective properties and constraints go out, direct
ones first. Property-level `@key`, `@unique` and `@index` become one-column constraints here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Diagnostics, Name, did_you_mean
from omnigraph_core.schema.assemble import COLUMN_CONSTRAINTS
from omnigraph_core.schema.type_names import is_unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.schema import ast


@dataclass(frozen=True, slots=True)
class Effective:
    """A property as its type has it: where it was written, and which interfaces it satisfies."""

    property: ast.Property
    is_direct: bool = True
    satisfies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expanded:
    """A node or edge with all its properties, and all its constraints without repetition."""

    properties: Mapping[str, Effective]
    constraints: tuple[ast.Constraint, ...]


def expand_node(
    node: ast.Node, interfaces: Mapping[str, ast.Interface], problems: Diagnostics
) -> Expanded:
    """The node with the properties of its interfaces, in written order."""
    effective = {str(item.name): Effective(item) for item in first_of_each_name(node.properties)}
    for name in dict.fromkeys(node.implements):
        if interface := interfaces.get(name):
            for item in first_of_each_name(interface.properties):
                _contribute(effective, interface, item, node, problems)
        else:
            hint = did_you_mean(name, interfaces)
            problems.add("P6", f"unknown interface `{name}`", name.span, hint=hint)
    return Expanded(effective, _all_constraints(effective.values(), node.constraints))


def expand_edge(edge: ast.Edge) -> Expanded:
    """The edge as written; edges implement nothing."""
    effective = {str(item.name): Effective(item) for item in first_of_each_name(edge.properties)}
    return Expanded(effective, _all_constraints(effective.values(), edge.constraints))


def first_of_each_name(properties: Iterable[ast.Property]) -> tuple[ast.Property, ...]:
    """The properties without those that repeat a name, which are reported elsewhere."""
    first: dict[str, ast.Property] = {}
    for item in properties:
        first.setdefault(item.name, item)
    return tuple(first.values())


def _contribute(
    effective: dict[str, Effective],
    interface: ast.Interface,
    item: ast.Property,
    node: ast.Node,
    problems: Diagnostics,
) -> None:
    name, giver = str(item.name), str(interface.name)
    known = effective.get(name)
    if known is None:
        effective[name] = Effective(item, is_direct=False, satisfies=(giver,))
        return
    effective[name] = replace(known, satisfies=(*known.satisfies, giver))
    if is_unknown(known.property.type) or is_unknown(item.type):
        return
    if known.property.type != item.type:
        _report_type_conflict(known, interface, item, node, problems)
    elif not known.is_direct and set(known.property.annotations) != set(item.annotations):
        message = f"`{known.satisfies[0]}` and `{giver}` annotate `{name}` differently"
        hint = f"declare `{name}` on `{node.name}` with the annotations it should have"
        problems.add("C4", message, _clause(node, interface).span, hint=hint)


def _report_type_conflict(
    known: Effective,
    interface: ast.Interface,
    item: ast.Property,
    node: ast.Node,
    problems: Diagnostics,
) -> None:
    if known.is_direct:
        message = f"`{item.name}` is {item.type} in `{interface.name}`, not {known.property.type}"
        hint = f"declare it as {item.type}, or leave it out to inherit it"
        problems.add("P7", message, known.property.type_span, hint=hint)
    else:
        message = (
            f"`{item.name}` of `{node.name}` is {known.property.type} in `{known.satisfies[0]}`"
            f" but {item.type} in `{interface.name}`"
        )
        problems.add("P7", message, _clause(node, interface).span)


def _clause(node: ast.Node, interface: ast.Interface) -> Name:
    """The name of the interface as the node wrote it."""
    return next(name for name in node.implements if name == interface.name)


def _all_constraints(
    properties: Iterable[Effective], body: Iterable[ast.Constraint]
) -> tuple[ast.Constraint, ...]:
    found: dict[ast.Constraint, None] = {}  # equality leaves out spans, so repetition collapses
    for effective in properties:
        for annotation in effective.property.annotations:
            if make := COLUMN_CONSTRAINTS.get(annotation.name):
                column = Name(effective.property.name, annotation.span)
                found.setdefault(make((column,), span=annotation.span))
    for constraint in body:
        found.setdefault(constraint)
    return tuple(found)
