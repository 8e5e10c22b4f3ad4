"""The schema language as parsed: one value per declaration, in written order.

Spans never take part in equality, so `parse(render(x)) == x`. Property-level `@key`, `@unique` and
`@index` stay annotations here; `build` turns them into constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.diagnostics import NO_SPAN, Name, Span

if TYPE_CHECKING:
    from omnigraph_core.types import PropType


class ArgumentKind(StrEnum):
    """How an annotation argument was written; its text alone cannot tell `3` from `"3"`."""

    STRING = "string"
    WORD = "word"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Argument:
    """An annotation argument: unescaped text, or the members of a list."""

    kind: ArgumentKind
    text: str
    items: tuple[Argument, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(value)` or `@name(value, key=value, …)`."""

    name: Name
    value: Argument | None = None
    keywords: tuple[tuple[Name, Argument], ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Property:
    name: Name
    type: PropType
    annotations: tuple[Annotation, ...] = ()
    type_span: Span = field(default=NO_SPAN, compare=False)
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Key:
    columns: tuple[Name, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Unique:
    columns: tuple[Name, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Index:
    columns: tuple[Name, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds; None leaves a side open. An int bound stays an int."""

    property: Name
    minimum: int | float | None
    maximum: int | float | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Check:
    """An unanchored regular expression."""

    property: Name
    pattern: str
    span: Span = field(default=NO_SPAN, compare=False)


Constraint: TypeAlias = Key | Unique | Index | Range | Check


@dataclass(frozen=True, slots=True)
class Cardinality:
    """Outgoing edges per source node; `maximum` None means no upper limit."""

    minimum: int = 0
    maximum: int | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Interface:
    name: Name
    properties: tuple[Property, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Node:
    name: Name
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[Name, ...] = ()
    properties: tuple[Property, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Edge:
    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None = None
    annotations: tuple[Annotation, ...] = ()
    properties: tuple[Property, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


Declaration: TypeAlias = Interface | Node | Edge


@dataclass(frozen=True, slots=True)
class Schema:
    declarations: tuple[Declaration, ...] = ()
