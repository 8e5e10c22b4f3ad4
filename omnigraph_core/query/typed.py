"""Expressions and conditions after checking: every name resolved, every value typed.

The checker makes them, the IR carries them unchanged, the executor evaluates them. An expression's
`type` is what the result descriptor reports. A node standing for itself has no `PropType`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.types import BOOL, DATETIME, F64, PropType

if TYPE_CHECKING:
    from omnigraph_core.values import Value

TARGET: Final = "target"
"""The variable of `PropertyValue` in a mutation's `where`: the row being matched."""


SCORE: Final = F64.nullable()
"""A rank's value; null for a row the ranking did not reach."""


class EntityKind(StrEnum):
    NODE = "node"
    EDGE = "edge"


class TypedOp(StrEnum):
    """Comparisons with `contains` decided: membership in a list, or part of a text."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    HAS_MEMBER = "has_member"
    HAS_TEXT = "has_text"
    STARTS_WITH = "starts_with"


class TextFunction(StrEnum):
    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


class AggregateFunction(StrEnum):
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of known type; dates already parsed, numbers already of the type's kind."""

    value: Value
    type: PropType


@dataclass(frozen=True, slots=True)
class ParamValue:
    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class NowValue:
    """The query's one timestamp."""

    type: PropType = DATETIME


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """A property of a bound variable, or its implicit `id`, `src` or `dst`.

    Nullable also when the variable comes from an `optional` block.
    """

    variable: str
    property: str
    type: PropType


@dataclass(frozen=True, slots=True)
class NodeValue:
    """A node as itself: an object in results, a row in `count`."""

    variable: str
    type_name: str
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class TextMatch:
    """`search`, `fuzzy` or `match_text`: an ordinary Boolean, wherever it stands."""

    function: TextFunction
    field: PropertyValue
    query: TypedExpr
    max_edits: TypedExpr | None = None
    type: PropType = BOOL


@dataclass(frozen=True, slots=True)
class Nearest:
    """Distance to a vector; `query` is a vector, or text to embed at query time."""

    field: PropertyValue
    query: TypedExpr
    type: PropType = SCORE


@dataclass(frozen=True, slots=True)
class Bm25:
    field: PropertyValue
    query: TypedExpr
    type: PropType = SCORE


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion of two rankings of one variable."""

    arms: tuple[Nearest | Bm25, Nearest | Bm25]
    k: TypedExpr
    type: PropType = SCORE


@dataclass(frozen=True, slots=True)
class Aggregate:
    function: AggregateFunction
    argument: TypedExpr
    type: PropType
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column of the result, by position: what `having` and `order` in terms of aliases mean."""

    column: int
    name: str
    type: PropType | None = field(default=None)
    """None when the column holds nodes."""


RankExpr: TypeAlias = Nearest | Bm25 | Rrf
TypedExpr: TypeAlias = (
    Constant
    | ParamValue
    | NowValue
    | PropertyValue
    | NodeValue
    | TextMatch
    | Nearest
    | Bm25
    | Rrf
    | Aggregate
    | ColumnValue
)


@dataclass(frozen=True, slots=True)
class Compare:
    left: TypedExpr
    op: TypedOp
    right: TypedExpr


@dataclass(frozen=True, slots=True)
class IsIn:
    """`item` equals one of the members of `options`, a list constant or list parameter."""

    item: TypedExpr
    options: Constant | ParamValue


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: TypedExpr
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Holds:
    """A Boolean expression as a condition."""

    operand: TypedExpr


@dataclass(frozen=True, slots=True)
class All:
    """Conjunction; the empty one is true."""

    operands: tuple[TypedCondition, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Disjunction; the empty one is false."""

    operands: tuple[TypedCondition, ...]


TypedCondition: TypeAlias = Compare | IsIn | IsNull | Holds | All | Any
