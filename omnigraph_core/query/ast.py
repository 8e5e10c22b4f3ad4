"""The query language as parsed: names unresolved, nothing typed.

Spans never take part in equality, so `parse(render(x)) == x`. Shorthands are already opened here: a
text search standing alone as a clause is a `Filter` around its `Call`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.diagnostics import NO_SPAN, Name, Span

if TYPE_CHECKING:
    from omnigraph_core.types import Scalar

ANONYMOUS: Final = "_"
"""The variable `$_`: a fresh node each time it is written."""


class CompareOp(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


class SortDirection(StrEnum):
    ASC = "asc"
    DESC = "desc"


# Expressions


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, whole number, fraction or truth value; Python's type tells which."""

    value: str | int | float | bool
    span: Span = field(default=NO_SPAN, compare=False)

    def __eq__(self, other: object) -> bool:
        """Equal by value *and* kind: Python holds that 1 == 1.0 == True."""
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class TemporalLiteral:
    """`date("…")` or `datetime("…")`; the text is checked later."""

    scalar: Scalar
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Expr, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a parameter if one is declared, else a bound node or edge. Stored without `$`."""

    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Access:
    """`$variable.property`."""

    variable: Name
    property: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """A bare identifier: a result alias, or a property name in a mutation's `where`."""

    name: Name
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`; `now()` too. `is_distinct` is `count(distinct …)`."""

    function: Name
    arguments: tuple[Expr, ...]
    is_distinct: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


Expr: TypeAlias = Literal | TemporalLiteral | ListLiteral | Variable | Access | Word | Call


# Conditions


@dataclass(frozen=True, slots=True)
class Comparison:
    left: Expr
    op: CompareOp
    right: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Membership:
    """`item in options`; options is a list literal or a list parameter."""

    item: Expr
    options: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`operand is null`, or `is not null` when negated."""

    operand: Expr
    is_negated: bool
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """An expression standing as a condition: `search($x.p, $q)`."""

    operand: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Two or more conditions; an operand is never itself an `And`."""

    operands: tuple[Condition, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more conditions; an operand is never itself an `Or`."""

    operands: tuple[Condition, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Condition: TypeAlias = Comparison | Membership | NullTest | Truth | And | Or


# Match clauses


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name: value` in a binding, an insert or an update."""

    name: Name
    value: Expr
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$variable: Type { field: value, … }`."""

    variable: Name
    type_name: Name
    fields: tuple[Assignment, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """`{minimum, maximum}`; a missing maximum parses and is refused by the checker."""

    minimum: int
    maximum: int | None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$left [$edge_binding:]edge[{m,n}] $right`, the edge in angle brackets when undirected."""

    left: Name
    edge: Name
    right: Name
    is_undirected: bool = False
    edge_binding: Name | None = None
    bounds: Bounds | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Condition
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class OptionalMatch:
    """`optional { … }`: keep the row and leave the inner variables null when nothing matches."""

    clauses: tuple[Clause, ...]
    span: Span = field(default=NO_SPAN, compare=False)


Clause: TypeAlias = Binding | Traversal | Filter | Negation | OptionalMatch


# Queries


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A written parameter type; the checker resolves it, so an unknown name gets a code."""

    name: Name
    dimension: int | None = None
    is_list: bool = False
    is_nullable: bool = False
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Param:
    name: Name
    type: TypeRef
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class QueryAnnotation:
    """`@description("…")` or `@instruction("…")`; other names parse and are refused later."""

    name: Name
    text: str
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    expr: Expr
    alias: Name | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class SortKey:
    expr: Expr
    direction: SortDirection | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`match { … } return [distinct] { … } [having { … }] [order { … }] [limit n] [offset n]`.

    `limit` and `offset` are a `Literal` holding an int, or a `Variable` naming a parameter.
    """

    match: tuple[Clause, ...]
    columns: tuple[Column, ...]
    is_distinct: bool = False
    having: tuple[Condition, ...] = ()
    order: tuple[SortKey, ...] = ()
    limit: Literal | Variable | None = None
    offset: Literal | Variable | None = None
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    type_name: Name
    assignments: tuple[Assignment, ...]
    where: Condition
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    type_name: Name
    where: Condition
    span: Span = field(default=NO_SPAN, compare=False)


Statement: TypeAlias = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation:
    statements: tuple[Statement, ...]
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    name: Name
    params: tuple[Param, ...]
    annotations: tuple[QueryAnnotation, ...]
    body: Read | Mutation
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, slots=True)
class QueryFile:
    queries: tuple[Query, ...] = ()
