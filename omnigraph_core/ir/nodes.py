"""The intermediate form of a query: a pipeline of operators over rows of bound variables.

A pipeline starts from one row, the empty one (or, inside a join, the outer row). Every operator
works row by row, so operators may change places as long as what they use is bound. A node refuses
to exist if it is ill-formed; `QueryIR` checks its whole pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.query.checked import FRESH_MARK
from omnigraph_core.query.mentions import iter_terms, mentions
from omnigraph_core.query.typed import TARGET, Aggregate, ColumnValue, Constant, ParamValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.query.checked import CheckedParam, Direction
    from omnigraph_core.query.typed import EntityKind, TypedCondition, TypedExpr
    from omnigraph_core.types import PropType


@dataclass(frozen=True, slots=True)
class NodeScan:
    """Multiply each row by the nodes of a type; `filters` speak of the scanned node alone."""

    variable: str
    type_name: str
    filters: tuple[TypedCondition, ...] = ()

    def __post_init__(self) -> None:
        _require_only("a scan's filters", self.filters, self.variable)


@dataclass(frozen=True, slots=True)
class Expand:
    """Follow an edge type from `src_var`; one row per distinct `dst_var` within the hops.

    With an `edge_binding` it is one row per stored edge instead. When `is_closing`, `dst_var` is
    bound already and the row is only kept or dropped (with an edge binding: one row per edge that
    links the two). A null at either end yields nothing.
    """

    src_var: str
    dst_var: str
    edge_type: str
    direction: Direction
    dst_type: str
    min_hops: int = 1
    max_hops: int = 1
    dst_filters: tuple[TypedCondition, ...] = ()
    edge_binding: str | None = None
    is_closing: bool = False

    def __post_init__(self) -> None:
        _require_only("an expand's filters", self.dst_filters, self.dst_var)
        if not 1 <= self.min_hops <= self.max_hops:
            raise InvariantBroken(
                f"hops need 1 <= min <= max, found {self.min_hops} and {self.max_hops}"
            )
        if self.edge_binding is not None and self.max_hops != 1:
            raise InvariantBroken("an expand that binds its edge makes exactly one hop")
        if self.edge_binding in (self.src_var, self.dst_var):
            raise InvariantBroken(f"${self.edge_binding} cannot be both an edge and its end")
        if self.is_closing and self.dst_filters:
            raise InvariantBroken("a closing expand has no filters; its end is bound already")
        if self.src_var == self.dst_var and not self.is_closing:
            raise InvariantBroken(f"an expand from ${self.src_var} to itself must be closing")


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows where the condition is true; unknown counts as false."""

    condition: TypedCondition


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Drop each row for which `inner`, started from the row's `outer_vars`, yields anything."""

    outer_vars: tuple[str, ...]
    inner: Pipeline

    def __post_init__(self) -> None:
        _require_outer("an anti-join", self.outer_vars, self.inner)


@dataclass(frozen=True, slots=True)
class OptionalJoin:
    """Each row times what `inner` yields for it; if nothing, once with `introduced` null."""

    outer_vars: tuple[str, ...]
    inner: Pipeline
    introduced: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_outer("an optional join", self.outer_vars, self.inner)
        actual = tuple(sorted(variable for op in self.inner for variable in introduces(op)))
        if self.introduced != actual:
            raise InvariantBroken(
                f"an optional join introduces {_names(actual)}, not {_names(self.introduced)}"
            )


Op: TypeAlias = NodeScan | Expand | Filter | AntiJoin | OptionalJoin
Pipeline: TypeAlias = tuple[Op, ...]


def anti_join(inner: Pipeline) -> AntiJoin:
    """An anti-join whose outer variables are what its inner pipeline lacks."""
    return AntiJoin(tuple(sorted(lacks(inner))), inner)


def optional_join(inner: Pipeline) -> OptionalJoin:
    """An optional join with outer and introduced variables read off its inner pipeline."""
    introduced = sorted(variable for op in inner for variable in introduces(op))
    return OptionalJoin(tuple(sorted(lacks(inner))), inner, tuple(introduced))


def introduces(op: Op) -> tuple[str, ...]:
    """The variables that rows have after the operator and lacked before it."""
    match op:
        case NodeScan(variable=variable):
            return (variable,)
        case Expand():
            ends = () if op.is_closing else (op.dst_var,)
            return ends if op.edge_binding is None else (*ends, op.edge_binding)
        case OptionalJoin(introduced=introduced):
            return introduced
        case _:
            return ()


def uses(op: Op) -> frozenset[str]:
    """The variables that must be bound before the operator."""
    match op:
        case Expand():
            return frozenset((op.src_var, op.dst_var) if op.is_closing else (op.src_var,))
        case Filter(condition=condition):
            return mentions(condition)
        case AntiJoin(outer_vars=outer) | OptionalJoin(outer_vars=outer):
            return frozenset(outer)
        case _:
            return frozenset()


def lacks(pipeline: Pipeline) -> frozenset[str]:
    """The variables a pipeline uses without having introduced them."""
    missing: set[str] = set()
    bound: set[str] = set()
    for op in pipeline:
        missing |= uses(op) - bound
        bound.update(introduces(op))
    return frozenset(missing)


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """A column of the result. `type` is None when it holds nodes."""

    name: str
    expr: TypedExpr
    type: PropType | None


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A sort key; of a rank `is_descending` is always true and means best first."""

    expr: TypedExpr
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class QueryIR:
    """A read: rows from the pipeline, then columns, distinct, having, order, offset and limit."""

    name: str
    params: tuple[CheckedParam, ...] = ()
    pipeline: Pipeline = ()
    columns: tuple[ReturnColumn, ...] = ()
    is_distinct: bool = False
    is_grouped: bool = False
    having: tuple[TypedCondition, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: TypedExpr | None = None
    offset: TypedExpr | None = None
    node_types: tuple[tuple[str, str], ...] = field(default=())
    """Every node variable a row has with its type, sorted; those left anonymous too."""

    def __post_init__(self) -> None:
        bound = _walk(self.pipeline, frozenset())
        _require_bound("the result", self._result_terms(), bound)
        _require_bound_names("node_types", (name for name, _ in self.node_types), bound)
        _require_columns(self)
        for term in (self.limit, self.offset):
            if not isinstance(term, Constant | ParamValue | None):
                raise InvariantBroken(f"limit and offset are numbers or parameters, found {term}")

    @property
    def variables(self) -> tuple[str, ...]:
        """Every node and edge variable of a row: order ties break on their ids in turn.

        By name, those the author left anonymous last.
        """
        names = (variable for op in self.pipeline for variable in introduces(op))
        return tuple(sorted(names, key=lambda name: (FRESH_MARK in name, name)))

    def _result_terms(self) -> tuple[TypedExpr | TypedCondition, ...]:
        columns = (column.expr for column in self.columns)
        return (*columns, *self.having, *(key.expr for key in self.order_by))


def _walk(pipeline: Pipeline, bound: frozenset[str]) -> frozenset[str]:
    """Follow a pipeline from a set of bound variables; names are never bound twice."""
    for op in pipeline:
        kind = type(op).__name__
        _require_bound_names(kind, uses(op), bound)
        if isinstance(op, AntiJoin | OptionalJoin):
            _walk(op.inner, bound)
        if again := bound.intersection(introduces(op)):
            raise InvariantBroken(f"{kind} binds {_names(again)} a second time")
        bound = bound.union(introduces(op))
    return bound


def _require_columns(ir: QueryIR) -> None:
    names = [column.name for column in ir.columns]
    if len(names) != len(set(names)):
        raise InvariantBroken(f"result columns have distinct names, found {', '.join(names)}")
    terms = tuple(iter_terms(ir._result_terms()))
    if not ir.is_grouped and any(isinstance(term, Aggregate) for term in terms):
        raise InvariantBroken("an aggregate needs a grouped query")
    for term in terms:
        if isinstance(term, ColumnValue) and names[term.column : term.column + 1] != [term.name]:
            raise InvariantBroken(
                f"no result column {term.column} named {term.name}; columns: {', '.join(names)}"
            )


def _require_only(what: str, conditions: tuple[TypedCondition, ...], variable: str) -> None:
    if others := mentions(*conditions) - {variable}:
        raise InvariantBroken(f"{what} may mention ${variable} only, found {_names(others)}")


def _require_outer(what: str, outer_vars: tuple[str, ...], inner: Pipeline) -> None:
    if not inner:
        raise InvariantBroken(f"{what} has at least one inner operator")
    if outer_vars != tuple(sorted(lacks(inner))):
        raise InvariantBroken(
            f"{what} takes in what its inner side lacks, {_names(lacks(inner))}, "
            f"not {_names(outer_vars)}"
        )


def _require_bound(
    what: str, terms: tuple[TypedExpr | TypedCondition, ...], bound: frozenset[str]
) -> None:
    _require_bound_names(what, mentions(*terms), bound)


def _require_bound_names(what: str, names: Iterable[str], bound: frozenset[str]) -> None:
    if missing := frozenset(names) - bound:
        raise InvariantBroken(
            f"{what} uses {_names(missing)}, which is not bound; bound there: {_names(bound)}"
        )


def _names(variables: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(variables)) or "nothing"


# Mutations


@dataclass(frozen=True, slots=True)
class Insert:
    """A new node or edge; an edge's ends are assigned as `src` and `dst`."""

    kind: EntityKind
    type_name: str
    assignments: tuple[tuple[str, TypedExpr], ...]

    def __post_init__(self) -> None:
        _require_assignments("an insert", self.assignments)


@dataclass(frozen=True, slots=True)
class Update:
    """Set properties of every node or edge of the type where the condition is true."""

    kind: EntityKind
    type_name: str
    assignments: tuple[tuple[str, TypedExpr], ...]
    where: TypedCondition

    def __post_init__(self) -> None:
        _require_assignments("an update", self.assignments)
        _require_only("an update's where", (self.where,), TARGET)
        if not self.assignments:
            raise InvariantBroken("an update sets at least one property")


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove every node or edge of the type where the condition is true; nodes take their edges."""

    kind: EntityKind
    type_name: str
    where: TypedCondition

    def __post_init__(self) -> None:
        _require_only("a delete's where", (self.where,), TARGET)


MutationOp: TypeAlias = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class MutationIR:
    """Statements in order, each seeing the effects of the ones before it; all or nothing."""

    name: str
    params: tuple[CheckedParam, ...]
    ops: tuple[MutationOp, ...]

    def __post_init__(self) -> None:
        if not self.ops:
            raise InvariantBroken("a mutation has at least one statement")
        deletes = [isinstance(op, Delete) for op in self.ops]
        if any(deletes) and not all(deletes):
            raise InvariantBroken("a mutation either deletes or writes, never both")


def _require_assignments(what: str, assignments: tuple[tuple[str, TypedExpr], ...]) -> None:
    names = [name for name, _ in assignments]
    if len(names) != len(set(names)):
        raise InvariantBroken(f"{what} assigns each property once, found {', '.join(names)}")
    if used := mentions(*(value for _, value in assignments)):
        raise InvariantBroken(f"{what} assigns values, not {_names(used)}")
