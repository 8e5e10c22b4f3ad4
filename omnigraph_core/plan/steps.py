"""The physical plan: the operators of the IR with what the planner decided about each.

A step knows which variables somebody still needs after it, so that the executor can drop the
others, and, where only the presence or number of its rows matters, that none have to be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import AntiJoin, Expand, Filter, NodeScan, OptionalJoin, QueryIR
    from omnigraph_core.plan.values import GivenExpr
    from omnigraph_core.query.typed import PropertyValue


class Making(StrEnum):
    """What a step makes of its matches."""

    ROWS = "rows"
    """A row for each."""
    COUNT = "count"
    """The row once, counting as many times as there are matches: nobody asks which they are."""
    EXISTS = "exists"
    """The row once if there is a match: nobody asks which, or how many."""


@dataclass(frozen=True, slots=True)
class ScanStep:
    op: NodeScan
    needed: frozenset[str]
    label: str
    making: Making = Making.ROWS


@dataclass(frozen=True, slots=True)
class ExpandStep:
    op: Expand
    needed: frozenset[str]
    """Variables that are used after the step."""
    label: str
    making: Making = Making.ROWS
    is_deduplicating: bool = False
    """Equal rows may be made one: `needed` lost a variable and multiplicity does not matter."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    op: Filter
    needed: frozenset[str]
    label: str


@dataclass(frozen=True, slots=True)
class AntiJoinStep:
    op: AntiJoin
    inner: Steps
    needed: frozenset[str]
    label: str


@dataclass(frozen=True, slots=True)
class OptionalStep:
    op: OptionalJoin
    inner: Steps
    needed: frozenset[str]
    label: str


Step: TypeAlias = ScanStep | ExpandStep | FilterStep | AntiJoinStep | OptionalStep
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A read that is nothing but one node by its id or key: no row, or one, and its columns."""

    variable: str
    type_name: str
    property: PropertyValue
    """`id`, or the only key column."""
    given: GivenExpr


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """How a read is carried out; depends on the query and the schema alone, so it can be kept."""

    ir: QueryIR
    steps: Steps
    is_set: bool
    """How many times a row occurs does not change the result."""
    row_needs: frozenset[str]
    """Variables the result is made from: those of columns, order keys and tie-breaks."""
    lookup: KeyLookup | None = None
    """Set if the steps come to this; neither order nor limit then makes a difference."""
