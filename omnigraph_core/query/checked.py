"""A query that has passed the checker: what lowering, lint and the result descriptor work from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from omnigraph_core.query.ast import SortDirection
    from omnigraph_core.query.typed import EntityKind, TypedCondition, TypedExpr
    from omnigraph_core.types import PropType


FRESH_MARK: Final = "#"
"""In the name of every anonymous variable, and in no name that can be written."""


class Direction(StrEnum):
    """How a stored edge is followed from the left variable to the right one."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


class QueryKind(StrEnum):
    READ = "read"
    MUTATION = "mutation"


@dataclass(frozen=True, slots=True)
class CheckedParam:
    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class CheckedBinding:
    """Nodes of one type; `conditions` are the inline fields, each an equality or membership."""

    variable: str
    type_name: str
    conditions: tuple[TypedCondition, ...]


@dataclass(frozen=True, slots=True)
class CheckedTraversal:
    """`left` —edge→ `right` with both node types known. Anonymous ends carry fresh names."""

    left: str
    left_type: str
    right: str
    right_type: str
    edge_type: str
    direction: Direction
    min_hops: int = 1
    max_hops: int = 1
    edge_binding: str | None = None

    @property
    def source(self) -> tuple[str, str]:
        """Variable and type of the end where the stored edge starts; the left one if undirected."""
        if self.direction is Direction.IN:
            return self.right, self.right_type
        return self.left, self.left_type


@dataclass(frozen=True, slots=True)
class CheckedFilter:
    condition: TypedCondition


@dataclass(frozen=True, slots=True)
class CheckedNegation:
    """`outer` are the variables it shares with the rows it filters."""

    clauses: tuple[CheckedClause, ...]
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedOptional:
    """`introduced` are the variables that stay null when nothing matches."""

    clauses: tuple[CheckedClause, ...]
    outer: tuple[str, ...]
    introduced: tuple[str, ...]


CheckedClause: TypeAlias = (
    CheckedBinding | CheckedTraversal | CheckedFilter | CheckedNegation | CheckedOptional
)


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """A result column. `type` is None for a node column, whose value is an object."""

    name: str
    expr: TypedExpr
    type: PropType | None


@dataclass(frozen=True, slots=True)
class CheckedSortKey:
    expr: TypedExpr
    direction: SortDirection
    """Of a rank always `desc`: best first."""


@dataclass(frozen=True, slots=True)
class CheckedRead:
    clauses: tuple[CheckedClause, ...]
    columns: tuple[CheckedColumn, ...]
    is_distinct: bool
    is_grouped: bool
    having: tuple[TypedCondition, ...]
    order: tuple[CheckedSortKey, ...]
    limit: TypedExpr | None
    offset: TypedExpr | None


@dataclass(frozen=True, slots=True)
class CheckedInsert:
    """Assignments in schema order; properties left out are null or take their default."""

    kind: EntityKind
    type_name: str
    assignments: tuple[tuple[str, TypedExpr], ...]


@dataclass(frozen=True, slots=True)
class CheckedUpdate:
    kind: EntityKind
    type_name: str
    assignments: tuple[tuple[str, TypedExpr], ...]
    where: TypedCondition


@dataclass(frozen=True, slots=True)
class CheckedDelete:
    kind: EntityKind
    type_name: str
    where: TypedCondition


CheckedStatement: TypeAlias = CheckedInsert | CheckedUpdate | CheckedDelete


@dataclass(frozen=True, slots=True)
class CheckedMutation:
    statements: tuple[CheckedStatement, ...]


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    name: str
    params: tuple[CheckedParam, ...]
    body: CheckedRead | CheckedMutation
    description: str | None = None
    instruction: str | None = None
    node_types: tuple[tuple[str, str], ...] = field(default=())
    """Every node variable of the match with its type, sorted; order ties break on their ids."""

    @property
    def kind(self) -> QueryKind:
        return QueryKind.READ if isinstance(self.body, CheckedRead) else QueryKind.MUTATION
