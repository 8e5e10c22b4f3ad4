"""The parts of a declaration as text: properties, constraints, annotations, cardinalities.

Each part comes in as its AST value and goes out on one line, as the parser reads it back.
"""

from __future__ import annotations

from decimal import Decimal

from omnigraph_core.schema import ast
from omnigraph_core.syntax import quote


def render_cardinality(cardinality: ast.Cardinality) -> str:
    """
    >>> render_cardinality(ast.Cardinality(1))
    '@card(1..)'
    """
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"@card({cardinality.minimum}..{maximum})"


def render_property(property: ast.Property) -> str:
    """A property with its annotations, on one line."""
    annotations = map(render_annotation, property.annotations)
    return " ".join([f"{property.name}: {property.type}", *annotations])


def render_constraint(constraint: ast.Constraint) -> str:
    """A constraint as it stands in a body."""
    match constraint:
        case ast.Range(name, minimum, maximum):
            return f"@range({name}, {_bound(minimum)}..{_bound(maximum)})"
        case ast.Check(name, pattern):
            return f"@check({name}, {quote(pattern)})"
        case _:
            word = type(constraint).__name__.lower()
            return f"@{word}({', '.join(constraint.columns)})"


def _bound(value: float | None) -> str:
    """A number the grammar can read: digits all written out, and a float still a float."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else f"{text}.0"


def render_annotation(annotation: ast.Annotation) -> str:
    """An annotation with its arguments."""
    arguments = [] if annotation.value is None else [_argument(annotation.value)]
    arguments += [f"{key}={_argument(value)}" for key, value in annotation.keywords]
    return f"@{annotation.name}({', '.join(arguments)})" if arguments else f"@{annotation.name}"


def _argument(argument: ast.Argument) -> str:
    if argument.kind is ast.ArgumentKind.STRING:
        return quote(argument.text)
    if argument.kind is ast.ArgumentKind.LIST:
        return f"[{', '.join(map(_argument, argument.items))}]"
    return argument.text
