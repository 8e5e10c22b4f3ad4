"""Random matches over the people schema, as the checker would hand them to lowering, and graphs.

Every block is well-scoped by construction: traversals end in required variables, filters speak of
visible ones, and a `not` block may reuse a name it does not share with the rows around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from hypothesis import strategies as st

from omnigraph_core.query.checked import (
    CheckedBinding,
    CheckedClause,
    CheckedFilter,
    CheckedNegation,
    CheckedOptional,
    CheckedTraversal,
    Direction,
)
from omnigraph_core.query.typed import (
    All,
    Any,
    Compare,
    Constant,
    IsIn,
    IsNull,
    NodeValue,
    ParamValue,
    PropertyValue,
    TypedCondition,
    TypedOp,
)
from omnigraph_core.types import DATE, I64, STRING, PropType, Scalar
from tests.support.oracle_graph import OracleGraph
from tests.support.people import company, knows, people_catalog, person, works_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hypothesis.strategies import DrawFn

T = TypeVar("T")
Required: TypeAlias = CheckedBinding | CheckedTraversal
"""What every row must have."""

NODE_TYPES = {"p": "Person", "q": "Person", "r": "Person", "c": "Company", "d": "Company"}
EDGE_TYPES = {"v": "Knows", "w": "Knows"}
NAMES = ("a", "b", "x")
AGES = (1, 2, 3)
PARAM = "k"
COMPARISONS = (TypedOp.EQ, TypedOp.NE, TypedOp.LT, TypedOp.LE, TypedOp.GT, TypedOp.GE)


@dataclass
class Visible:
    """The variables a clause may speak of, and which of them may be null."""

    names: tuple[str, ...]
    nullable: frozenset[str] = frozenset()
    is_negated: bool = False
    counter: list[int] = field(default_factory=lambda: [0])
    """Shared by all blocks of one match, so that anonymous nodes never meet."""

    @property
    def nodes(self) -> list[str]:
        return [name for name in self.names if name not in EDGE_TYPES]

    def anonymous(self) -> str:
        self.counter[0] += 1
        return f"_#{self.counter[0]}"


def node_type(name: str) -> str:
    return NODE_TYPES.get(name, "Person")


def pick(draw: DrawFn, options: Sequence[T]) -> T:
    """One of the options; far cheaper than a strategy per choice."""
    return options[draw(st.integers(0, len(options) - 1))]


def several(draw: DrawFn, make: Callable[[], T], low: int, high: int) -> list[T]:
    return [make() for _ in range(draw(st.integers(low, high)))]


@st.composite
def graphs(draw: DrawFn) -> OracleGraph:
    """Up to three persons and two companies; parallel edges, loops and dangling ends included."""
    ages = several(draw, lambda: pick(draw, (None, *AGES)), 1, 3)
    persons = [person(name, age) for name, age in zip(NAMES, ages, strict=False)]
    companies = [company(name) for name in NAMES[: draw(st.integers(0, 2))]]
    known = several(draw, lambda: (pick(draw, NAMES), pick(draw, NAMES)), 1, 6)
    works = several(draw, lambda: (pick(draw, NAMES), pick(draw, NAMES)), 1, 4)
    edges = [knows(i, *pair) for i, pair in enumerate(known)]
    return OracleGraph(
        people_catalog(),
        [*persons, *companies],
        [*edges, *(works_at(i, *pair) for i, pair in enumerate(works))],
    )


@st.composite
def match_clauses(draw: DrawFn) -> tuple[CheckedClause, ...]:
    """The clauses of a whole match block."""
    clauses, _ = _block(draw, Visible(()), depth=draw(st.integers(0, 2)))
    return clauses


def _block(
    draw: DrawFn, outer: Visible, depth: int
) -> tuple[tuple[CheckedClause, ...], tuple[str, ...]]:
    """A clause list and the variables it adds to the outer ones."""
    required = several(draw, lambda: _required(draw, outer), 1, 2 if outer.names else 3)
    required = _with_edges_bound_once(required, outer.names)
    added = list(dict.fromkeys(n for c in required for n in _mentioned(c) if n not in outer.names))
    visible = replace(outer, names=(*outer.names, *added))
    optionals: list[CheckedClause] = []
    for _ in range(draw(st.integers(0, 2)) if depth and not outer.is_negated else 0):
        optional = _optional(draw, visible, depth - 1)
        optionals.append(optional)
        added.extend(optional.introduced)
        nullable = visible.nullable | set(optional.introduced)
        visible = replace(visible, names=(*visible.names, *optional.introduced), nullable=nullable)
    rest: list[CheckedClause] = []
    rest += several(draw, lambda: CheckedFilter(_condition(draw, visible)), 0, 1 if depth else 2)
    if depth:
        rest += several(draw, lambda: _negation(draw, visible, depth - 1), 0, 2)
    return (*draw(st.permutations([*required, *rest])), *optionals), tuple(added)


def _with_edges_bound_once(clauses: list[Required], taken: Iterable[str]) -> list[Required]:
    seen = set(taken)
    kept: list[Required] = []
    for clause in clauses:
        if isinstance(clause, CheckedTraversal) and clause.edge_binding in seen:
            clause = replace(clause, edge_binding=None)
        elif isinstance(clause, CheckedTraversal) and clause.edge_binding is not None:
            seen.add(clause.edge_binding)
        kept.append(clause)
    return kept


def _required(draw: DrawFn, visible: Visible) -> Required:
    kind = pick(draw, ("binding", "knows", "works_at"))
    if kind == "binding":
        name = pick(draw, tuple(NODE_TYPES))
        found = (_on_node(draw, visible, name),) if pick(draw, (False, False, True)) else ()
        return CheckedBinding(name, node_type(name), found)
    return _knows(draw, visible) if kind == "knows" else _works_at(draw)


def _knows(draw: DrawFn, visible: Visible) -> CheckedTraversal:
    written = [pick(draw, ("p", "q", "r", "_")) for _ in range(2)]
    left, right = (visible.anonymous() if name == "_" else name for name in written)
    edge = pick(draw, (None, *EDGE_TYPES))
    low, high = (1, 1) if edge else pick(draw, ((1, 1), (1, 2), (2, 2), (2, 3)))
    direction = pick(draw, tuple(Direction))
    return CheckedTraversal(left, "Person", right, "Person", "Knows", direction, low, high, edge)


def _works_at(draw: DrawFn) -> CheckedTraversal:
    worker, place = (pick(draw, ("p", "q", "r")), "Person"), (pick(draw, ("c", "d")), "Company")
    direction = pick(draw, (Direction.OUT, Direction.IN))
    left, right = (worker, place) if direction is Direction.OUT else (place, worker)
    return CheckedTraversal(*left, *right, "WorksAt", direction, 1, pick(draw, (1, 2)))


def _optional(draw: DrawFn, visible: Visible, depth: int) -> CheckedOptional:
    clauses, added = _block(draw, visible, depth)
    return CheckedOptional(clauses, _shared(clauses, visible.names), added)


def _negation(draw: DrawFn, visible: Visible, depth: int) -> CheckedNegation:
    """Some visible names are hidden from the block, so that it may use them as its own."""
    shown = tuple(name for name in visible.names if draw(st.booleans()))
    clauses, _ = _block(draw, replace(visible, names=shown, is_negated=True), depth)
    return CheckedNegation(clauses, _shared(clauses, shown))


def _shared(clauses: Iterable[CheckedClause], outer: tuple[str, ...]) -> tuple[str, ...]:
    mentioned = {name for clause in clauses for name in _mentioned(clause)}
    return tuple(name for name in outer if name in mentioned)


def _mentioned(clause: CheckedClause) -> tuple[str, ...]:
    match clause:
        case CheckedBinding():
            return (clause.variable,)
        case CheckedTraversal():
            edge = (clause.edge_binding,) if clause.edge_binding else ()
            return (clause.left, clause.right, *edge)
        case CheckedFilter():
            return tuple(_variables(clause.condition))
        case _:
            return clause.outer


def _variables(condition: TypedCondition) -> set[str]:
    match condition:
        case All(operands) | Any(operands):
            return {name for part in operands for name in _variables(part)}
        case Compare(left, _, right):
            return {e.variable for e in (left, right) if isinstance(e, PropertyValue)}
        case IsIn(item):
            return {item.variable} if isinstance(item, PropertyValue) else set()
        case IsNull(operand):
            return {operand.variable} if isinstance(operand, PropertyValue | NodeValue) else set()
        case _:
            return set()


def _condition(draw: DrawFn, visible: Visible) -> TypedCondition:
    """A condition over visible variables, Boolean combinations included."""

    def simple() -> TypedCondition:
        return _simple(draw, visible)

    def either() -> TypedCondition:
        return simple() if draw(st.booleans()) else Any(tuple(several(draw, simple, 2, 3)))

    return either() if draw(st.booleans()) else All(tuple(several(draw, either, 2, 3)))


def _simple(draw: DrawFn, visible: Visible) -> TypedCondition:
    name = pick(draw, (*visible.names, ""))
    if not name:
        return Compare(_given(draw), pick(draw, COMPARISONS), Constant(pick(draw, AGES), I64))
    is_negated = draw(st.booleans())
    if name in EDGE_TYPES:
        return IsNull(PropertyValue(name, "since", DATE.nullable()), is_negated)
    match pick(draw, ("own", "own", "null", "joined")):
        case "null":
            return IsNull(NodeValue(name, node_type(name), name in visible.nullable), is_negated)
        case "joined":
            other = _text(visible, pick(draw, visible.nodes), "id")
            op = pick(draw, (TypedOp.EQ, TypedOp.NE, TypedOp.LT))
            return Compare(_text(visible, name, "id"), op, other)
        case _:
            return _on_node(draw, visible, name)


def _on_node(draw: DrawFn, visible: Visible, name: str) -> TypedCondition:
    """A condition on properties of one node alone."""
    text = _text(visible, name, pick(draw, ("name", "id")))
    age = PropertyValue(name, "age", PropType(Scalar.I32, is_nullable=True))
    kinds = ("named", "age", "listed", "null") if node_type(name) == "Person" else ("named",)
    match pick(draw, kinds):
        case "named":
            return Compare(text, TypedOp.EQ, Constant(pick(draw, NAMES), STRING))
        case "age":
            return Compare(age, pick(draw, COMPARISONS), _given(draw))
        case "listed":
            ages = tuple(several(draw, lambda: pick(draw, AGES), 0, 3))
            return IsIn(age, Constant(ages, PropType(Scalar.I64, is_list=True)))
        case _:
            return IsNull(pick(draw, (age, text)), draw(st.booleans()))


def _text(visible: Visible, name: str, property: str) -> PropertyValue:
    return PropertyValue(name, property, STRING.nullable(is_nullable=name in visible.nullable))


def _given(draw: DrawFn) -> Constant | ParamValue:
    value = pick(draw, (*AGES, None))
    return ParamValue(PARAM, I64.nullable()) if value is None else Constant(value, I64)
