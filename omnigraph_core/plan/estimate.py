"""How many rows to expect after each step: a plan and a few counts come in, estimates go out.

Estimates are for people who read a plan, and for choosing where a query runs. No answer depends on
them, so they may be wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from omnigraph_core.plan.access import Access, access_path, equality
from omnigraph_core.plan.steps import (
    AntiJoinStep,
    ExpandStep,
    FilterStep,
    Making,
    OptionalStep,
    ScanStep,
)
from omnigraph_core.query.checked import Direction
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.typed import (
    All,
    Any,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    PropertyValue,
    TextMatch,
    TypedOp,
)
from omnigraph_core.types import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.plan.steps import Step, Steps
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.schema.catalog import Catalog

_EQUAL: Final = 0.1
"""Of rows that equal a value when nobody knows how many values there are."""
_RANGE: Final = 0.3
_PART_OF_TEXT: Final = 0.1
_WORDS: Final = 0.05
_NULLS: Final = 0.1
_LISTED: Final = 5
"""Members of a list that is not known."""
_FEW_HOPS: Final = 16
"""Beyond these the numbers of a traversal no longer change."""
_LEAST_KEPT: Final = 0.05
"""Of rows an anti-join keeps, however many matches there are on average."""


@dataclass(frozen=True, slots=True)
class IndexFact:
    """An index of a column and how many of the table's rows it covers."""

    kind: str
    covered_rows: int


class Stats(Protocol):
    """What is known about the tables of a snapshot without reading them."""

    def node_count(self, type_name: str) -> int: ...

    def edge_count(self, edge_type: str) -> int: ...

    def distinct_count(self, type_name: str, property: str) -> int | None:
        """Distinct values of a node's property, if somebody has counted them already."""
        ...

    def is_kept(self, type_name: str, property: str) -> bool:
        """Whether the column of a node's property is in memory, or small enough to be."""
        ...

    def indexes(self, type_name: str, property: str) -> tuple[IndexFact, ...]: ...


@dataclass(frozen=True, slots=True)
class Largest:
    """The step of a plan that is expected to have the most rows to do with."""

    rows: float
    label: str


class Estimator:
    """Expected rows of the steps of one plan."""

    def __init__(self, stats: Stats, catalog: Catalog) -> None:
        self.stats = stats
        self.catalog = catalog

    def after(self, step: Step, rows: float) -> float:
        """The rows after a step that is given so many."""
        match step:
            case ScanStep():
                found = self.scanned(step)
                return rows * (found if step.making is Making.ROWS else _presence(found))
            case ExpandStep():
                found = self.reached(step.op)
                is_made = step.making is Making.ROWS and not step.op.is_closing
                return rows * (found if is_made else _presence(found))
            case FilterStep():
                return rows * self.selectivity((step.op.condition,), None)
            case AntiJoinStep():
                return rows * max(1 - _presence(self.of_steps(step.inner)), _LEAST_KEPT)
            case OptionalStep():
                return rows * max(1.0, self.of_steps(step.inner))

    def of_steps(self, steps: Steps) -> float:
        """The rows that steps make of one."""
        rows = 1.0
        for step in steps:
            rows = self.after(step, rows)
        return rows

    def largest(self, steps: Steps, rows: float = 1.0) -> Largest:
        """Where the most rows are read or made; steps inside a join count like any other."""
        most = Largest(rows, "nothing")
        for step in steps:
            found = [Largest(self._read_by(step), f"{step.label} reads")]
            if isinstance(step, AntiJoinStep | OptionalStep):
                found.append(self.largest(step.inner, rows))
            rows = self.after(step, rows)
            found.append(Largest(rows, f"{step.label} makes"))
            most = max(most, *found, key=lambda part: part.rows)
        return most

    def _read_by(self, step: Step) -> float:
        """The rows of the table that a step goes through; few if it knows which it wants."""
        if not isinstance(step, ScanStep) or (
            step.making is not Making.ROWS and not step.op.filters
        ):
            return 0.0  # or it is known how many there are
        node = self.catalog.nodes[step.op.type_name]
        path = access_path(step.op.filters, node, lambda _: True)
        is_lookup = path.access in (Access.LOOKUP, Access.LIST)
        return self.scanned(step) if is_lookup else self.stats.node_count(node.name)

    def scanned(self, step: ScanStep) -> float:
        """The nodes a scan finds."""
        count = self.stats.node_count(step.op.type_name)
        return count * self.selectivity(step.op.filters, step.op.type_name)

    def reached(self, op: Expand) -> float:
        """The matches an expand has for one row."""
        declared = self.catalog.edges[op.edge_type]
        is_in = op.direction is Direction.IN
        source, target = (declared.source, declared.target)[:: -1 if is_in else 1]
        edges = self.stats.edge_count(op.edge_type) * (1 + (op.direction is Direction.BOTH))
        target_count = max(self.stats.node_count(target), 1)
        degree = edges / max(self.stats.node_count(source), 1)
        most = op.max_hops if declared.source == declared.target else 1
        found = _within(degree, op.min_hops, most, target_count)
        if op.is_closing:
            return found / target_count
        return found * self.selectivity(op.dst_filters, op.dst_type)

    def selectivity(self, conditions: Iterable[TypedCondition], type_name: str | None) -> float:
        """The share of rows that satisfy conditions; of a node type's rows, if one is named."""
        given = tuple(conditions)
        if type_name is not None and given:
            count = max(self.stats.node_count(type_name), 1)
            path = access_path(given, self.catalog.nodes[type_name], lambda _: True)
            if path.access is Access.LOOKUP:
                return self.selectivity(path.rest, None) / count
        return math.prod(self._share(condition, type_name) for condition in given)

    def _share(self, condition: TypedCondition, type_name: str | None) -> float:
        match condition:
            case All(operands):
                return self.selectivity(operands, None)
            case Any(operands):
                return 1 - math.prod(1 - self._share(part, type_name) for part in operands)
            case IsNull(is_negated=is_negated):
                return 1 - _NULLS if is_negated else _NULLS
            case Holds(operand):
                return _WORDS if isinstance(operand, TextMatch) else 0.5
            case IsIn() | Compare(op=TypedOp.EQ | TypedOp.NE):
                return self._equal_share(condition, type_name)
            case Compare(op=TypedOp.HAS_TEXT | TypedOp.STARTS_WITH | TypedOp.HAS_MEMBER):
                return _PART_OF_TEXT
            case Compare():
                return _RANGE if mentions(condition) else 1.0

    def _equal_share(self, condition: Compare | IsIn, type_name: str | None) -> float:
        if not mentions(condition):
            return 1.0
        if isinstance(condition, IsIn):
            return min(1.0, _member_count(condition) * self._one_value(condition, type_name))
        share = self._one_value(condition, type_name)
        return share if condition.op is TypedOp.EQ else 1 - share

    def _one_value(self, condition: Compare | IsIn, type_name: str | None) -> float:
        """The share of rows that have one value."""
        compared = condition.item if isinstance(condition, IsIn) else condition.left
        if isinstance(compared, TextMatch):
            return 1 - _WORDS  # what must hold has no comparison any more: this must not
        found = equality(condition)
        column = found.property if found is not None else compared
        if not isinstance(column, PropertyValue):
            return _EQUAL
        if type_name is not None:
            distinct = self.distinct_count(type_name, column.property)
            if distinct is not None:
                return 1 / max(distinct, 1)
        if column.type.enum_values is not None:
            return 1 / max(len(column.type.enum_values), 1)
        return 0.5 if column.type.scalar is Scalar.BOOL else _EQUAL

    def distinct_count(self, type_name: str, property: str) -> int | None:
        """Distinct values of a node's property, if that is known."""
        node = self.catalog.nodes[type_name]
        if property == "id" or (property,) in (node.key, *node.unique):
            return self.stats.node_count(type_name)
        return self.stats.distinct_count(type_name, property)


def _within(degree: float, low: int, high: int, most: int) -> float:
    """Nodes at a distance in a range, if each has so many neighbours; `most` of them at most."""
    if degree <= 0 or low > high:
        return 0.0
    found = 0.0
    for hop in range(low, min(high, low + _FEW_HOPS) + 1):
        found += math.exp(min(hop * math.log(degree), math.log(most)))
        if found >= most:
            return most
    return found


def _member_count(condition: IsIn) -> int:
    options = condition.options
    if isinstance(options, Constant) and isinstance(options.value, tuple):
        return len(options.value)
    return _LISTED


def _presence(matches: float) -> float:
    """The share of rows that have a match, when they have so many on average."""
    return 1 - math.exp(-matches)
