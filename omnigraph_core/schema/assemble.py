"""Sorts the items of a header or body into the parts of a declaration.

Items come in written order; annotations join the property before them, constraints get their
checked shape. Whatever stands where it cannot is reported here, with the place it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.diagnostics import Diagnostics, Name, Span
from omnigraph_core.schema import ast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Bounds:
    """`lo..hi` as written; both sides open is refused by whoever uses it."""

    minimum: int | float | None
    maximum: int | float | None
    span: Span


@dataclass(frozen=True, slots=True)
class RawConstraint:
    """`@name(…)` before its arguments are looked at."""

    name: Name
    arguments: tuple[Name | ast.Argument | Bounds, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Implements:
    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Comma:
    """A separator between body items: allowed, never needed."""


COLUMN_CONSTRAINTS: Final[Mapping[str, type[ast.Key | ast.Unique | ast.Index]]] = {
    "key": ast.Key,
    "unique": ast.Unique,
    "index": ast.Index,
}
"""Constraints over columns; without columns they are annotations of the property before them."""

_INTERFACE_HINT: Final = (
    "write `@key`, `@unique` or `@index` after a property, or put it on the nodes"
)

HeaderItem: TypeAlias = ast.Annotation | ast.Cardinality | RawConstraint | Implements
BlockItem: TypeAlias = ast.Property | ast.Annotation | ast.Cardinality | RawConstraint | Comma


@dataclass(frozen=True, slots=True)
class Header:
    annotations: tuple[ast.Annotation, ...]
    implements: tuple[Name, ...]
    cardinality: ast.Cardinality | None


@dataclass(frozen=True, slots=True)
class Block:
    properties: tuple[ast.Property, ...]
    constraints: tuple[ast.Constraint, ...]


def assemble_header(kind: str, items: Sequence[HeaderItem], problems: Diagnostics) -> Header:
    """The parts of a header, in any order; `kind` is the declaring keyword."""
    annotations: list[ast.Annotation] = []
    implements: list[Name] = []
    cardinality: ast.Cardinality | None = None
    for item in items:
        if isinstance(item, RawConstraint):
            _refuse_header_constraint(kind, item, problems)
        elif isinstance(item, ast.Annotation):
            annotations.append(item)
        elif isinstance(item, ast.Cardinality):
            _check_cardinality_place(kind, item, cardinality, problems)
            cardinality = item
        else:
            _check_implements_place(kind, item, problems)
            implements += item.names
    if kind == "interface":
        _refuse_interface_annotations(annotations, problems)
    return Header(tuple(annotations), tuple(dict.fromkeys(implements)), cardinality)


def _refuse_header_constraint(kind: str, item: RawConstraint, problems: Diagnostics) -> None:
    message = f"`@{item.name}` cannot stand in the header of the {kind}"
    if kind == "interface":
        problems.add("P26", message, item.span, hint=_INTERFACE_HINT)
    else:
        problems.add("P8", message, item.span, hint="move it between the braces")


def _check_cardinality_place(
    kind: str, item: ast.Cardinality, earlier: ast.Cardinality | None, problems: Diagnostics
) -> None:
    if kind != "edge":
        hint = "it counts the edges of one type: put it after `edge Name: A -> B`"
        problems.add("P1", f"`@card` belongs to an edge, not to the {kind}", item.span, hint=hint)
    elif earlier is not None:
        problems.add("P4", "`@card` is given twice", item.span)


def _check_implements_place(kind: str, item: Implements, problems: Diagnostics) -> None:
    if kind == "interface":
        hint = "list every interface on the node instead"
        problems.add("P26", "an interface cannot extend another", item.span, hint=hint)
    elif kind == "edge":
        problems.add("P1", "an edge cannot implement an interface; only nodes can", item.span)


def _refuse_interface_annotations(
    annotations: Iterable[ast.Annotation], problems: Diagnostics
) -> None:
    for annotation in annotations:
        message = f"an interface takes no annotations, found `@{annotation.name}`"
        hint = "annotate its properties or the nodes that implement it"
        problems.add("P26", message, annotation.span, hint=hint)


def assemble_block(kind: str, items: Sequence[BlockItem], problems: Diagnostics) -> Block:
    """The properties and constraints of a body."""
    properties: list[tuple[ast.Property, list[ast.Annotation]]] = []
    constraints: list[ast.Constraint] = []
    is_open = False  # whether an annotation found next belongs to the last property
    for item in items:
        if isinstance(item, ast.Annotation):
            if is_open:
                properties[-1][1].append(item)
            else:
                _refuse_loose_annotation(item, problems)
            continue
        is_open = isinstance(item, ast.Property)
        if isinstance(item, ast.Property):
            properties.append((item, []))
        elif isinstance(item, RawConstraint):
            before = properties[-1][0].name if properties else None
            if constraint := _block_constraint(kind, item, before, problems):
                constraints.append(constraint)
        elif isinstance(item, ast.Cardinality):
            hint = "put it in the header, after the target type"
            problems.add("P1", "`@card` belongs to the header of an edge", item.span, hint=hint)
    return Block(tuple(_annotated(*pair) for pair in properties), tuple(constraints))


def _annotated(item: ast.Property, annotations: Sequence[ast.Annotation]) -> ast.Property:
    if not annotations:
        return item
    span = item.span.to(annotations[-1].span)
    return replace(item, annotations=tuple(annotations), span=span)


def _refuse_loose_annotation(item: ast.Annotation, problems: Diagnostics) -> None:
    message = f"`@{item.name}` does not follow a property"
    hint = "annotations come directly after the type of their property"
    if item.name in COLUMN_CONSTRAINTS:
        hint = f"name its properties: `@{item.name}(a, b)`"
    problems.add("P1", message, item.span, hint=hint)


def _block_constraint(
    kind: str, item: RawConstraint, before: Name | None, problems: Diagnostics
) -> ast.Constraint | None:
    if kind == "interface":
        message = f"an interface takes no constraints, found `@{item.name}`"
        problems.add("P26", message, item.span, hint=_INTERFACE_HINT)
        return None
    if item.name in COLUMN_CONSTRAINTS:
        return _column_constraint(item, problems)
    if item.name == "range":
        return _range(item, before, problems)
    return _check(item, before, problems)


def _column_constraint(item: RawConstraint, problems: Diagnostics) -> ast.Constraint | None:
    columns = tuple(name for name in item.arguments if isinstance(name, Name))
    for argument in item.arguments:
        if not isinstance(argument, Name):
            message = f"`@{item.name}` takes property names, not values"
            problems.add("P11", message, argument.span, hint=_bare_name_hint(argument))
    if not item.arguments:
        problems.add("P1", f"expected a property name in `@{item.name}()`", item.span)
    if len(columns) < max(1, len(item.arguments)):
        return None
    return COLUMN_CONSTRAINTS[item.name](columns, span=item.span)


def _bare_name_hint(argument: ast.Argument | Bounds) -> str | None:
    if isinstance(argument, ast.Argument):
        if argument.kind is ast.ArgumentKind.STRING:
            return "write the name without quotes"
        if argument.kind is ast.ArgumentKind.WORD:
            return "property names start with a lower-case letter"
    return None


def _range(item: RawConstraint, before: Name | None, problems: Diagnostics) -> ast.Range | None:
    match item.arguments:
        case (Name() as name, Bounds() as bounds):
            if bounds.minimum is not None or bounds.maximum is not None:
                return ast.Range(name, bounds.minimum, bounds.maximum, span=item.span)
            problems.add("P5", "`@range` needs a bound on at least one side", bounds.span)
        case _:
            name = _first_name(item) or before or Name("property")
            hint = f"write `@range({name}, {_bounds_example(item)})`"
            message = "`@range` takes a property name and its bounds"
            problems.add("P5", message, item.span, hint=hint)
    return None


def _bounds_example(item: RawConstraint) -> str:
    """The bounds the author meant: `@range(0, 9)` is corrected to `0..9`."""
    for argument in item.arguments:
        if isinstance(argument, Bounds):
            return f"{_shown(argument.minimum)}..{_shown(argument.maximum)}"
    numbers = [
        argument.text
        for argument in item.arguments
        if isinstance(argument, ast.Argument)
        and argument.kind in (ast.ArgumentKind.INT, ast.ArgumentKind.FLOAT)
    ]
    return "..".join(numbers) if len(numbers) == 2 else f"{numbers[0]}.." if numbers else "0..9"


def _shown(bound: float | None) -> str:
    return "" if bound is None else str(bound)


def _check(item: RawConstraint, before: Name | None, problems: Diagnostics) -> ast.Check | None:
    match item.arguments:
        case (Name() as name, ast.Argument(kind=ast.ArgumentKind.STRING) as pattern):
            return ast.Check(name, pattern.text, span=item.span)
    name = _first_name(item) or before or Name("property")
    message = "`@check` takes a property name and a quoted regular expression"
    hint = f'write `@check({name}, "^[a-z]+$")`'
    problems.add("P5", message, item.span, hint=hint)
    return None


def _first_name(item: RawConstraint) -> Name | None:
    first = item.arguments[0] if item.arguments else None
    return first if isinstance(first, Name) else None
