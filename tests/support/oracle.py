"""A second opinion on queries: the meaning of the IR in dicts and loops, as plain as can be.

`run(ir, graph, params)` gives the result rows of a read over an `OracleGraph`. Nothing is shared
with the engine but the IR itself. Text search and ranking are left to the engine's own tests.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from omnigraph_core.ir.nodes import (
    AntiJoin,
    Expand,
    Filter,
    NodeScan,
    OptionalJoin,
    Pipeline,
    QueryIR,
)
from omnigraph_core.query.typed import (
    Aggregate,
    AggregateFunction,
    All,
    Any,
    ColumnValue,
    Compare,
    Constant,
    Holds,
    IsIn,
    IsNull,
    NodeValue,
    NowValue,
    ParamValue,
    PropertyValue,
    TypedCondition,
    TypedExpr,
    TypedOp,
)
from omnigraph_core.values import Value
from tests.support.oracle_graph import Edge, Node, OracleGraph

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


Row: TypeAlias = Mapping[str, Node | Edge | None]
Cell: TypeAlias = Value | Mapping[str, Value]
"""A result value; a node is shown as a mapping of its id and properties."""


@dataclass(frozen=True)
class Given:
    """What stays the same for a whole run."""

    graph: OracleGraph
    params: Mapping[str, Value]
    now: dt.datetime


def run(
    ir: QueryIR,
    graph: OracleGraph,
    params: Mapping[str, Value] | None = None,
    *,
    now: dt.datetime = NOW,
) -> list[dict[str, Cell]]:
    """The result rows of a read, in order when the query has one."""
    given = Given(graph, params or {}, now)
    return finish(ir, list(iter_rows(ir.pipeline, {}, given)), given)


def finish(ir: QueryIR, rows: list[Row], given: Given) -> list[dict[str, Cell]]:
    """What a read makes of the rows of its match."""
    results = (
        _grouped(ir, rows, given) if ir.is_grouped else [_Result(ir, [r], given) for r in rows]
    )
    results = [r for r in results if all(_truth(c, r.value) for c in ir.having)]
    if ir.is_distinct:
        results = _without_repeats(results)
    if ir.order_by:
        results.sort(key=_Result.tie_break)
        for key in reversed(ir.order_by):
            results.sort(key=partial(_sort_key, key.expr), reverse=key.is_descending)
    return [result.shown() for result in _cut(ir, results, given)]


def solutions(
    ir: QueryIR,
    graph: OracleGraph,
    params: Mapping[str, Value] | None = None,
    *,
    now: dt.datetime = NOW,
) -> list[Row]:
    """What the match binds, before anything is returned."""
    return list(iter_rows(ir.pipeline, {}, Given(graph, params or {}, now)))


# Match


def iter_rows(pipeline: Pipeline, start: Row, given: Given) -> Iterator[Row]:
    """The rows a pipeline makes of one row."""
    if not pipeline:
        yield start
        return
    for row in _apply(pipeline, start, given):
        yield from iter_rows(pipeline[1:], row, given)


def _apply(pipeline: Pipeline, row: Row, given: Given) -> Iterator[Row]:
    op = pipeline[0]
    match op:
        case NodeScan():
            for node in given.graph.nodes[op.type_name].values():
                new = {**row, op.variable: node}
                if _all_true(op.filters, new, given):
                    yield new
        case Expand():
            yield from _expand(op, row, given)
        case Filter():
            if _all_true((op.condition,), row, given):
                yield row
        case AntiJoin():
            if next(iter_rows(op.inner, row, given), None) is None:
                yield row
        case OptionalJoin():
            found = list(iter_rows(op.inner, row, given))
            yield from found or [{**row, **dict.fromkeys(op.introduced)}]


def _expand(op: Expand, row: Row, given: Given) -> Iterator[Row]:
    for node, edge in _neighbours(op, row[op.src_var], given.graph):
        if op.is_closing and row[op.dst_var] != node:
            continue
        assert node.type == op.dst_type
        new = {**row, op.dst_var: node}
        if op.edge_binding is not None:
            new[op.edge_binding] = edge
        if _all_true(op.dst_filters, new, given):
            yield new


def _neighbours(
    op: Expand, start: Node | Edge | None, graph: OracleGraph
) -> Iterator[tuple[Node, Edge | None]]:
    """Distinct nodes within the hops, or one (node, edge) per stored edge if it is bound."""
    if not isinstance(start, Node):
        return
    if op.edge_binding is not None:
        for near, far, edge in graph.hops(op.edge_type, op.direction):
            if near == start:
                yield far, edge
        return
    for node in graph.reached(start, op.edge_type, op.direction, op.min_hops, op.max_hops):
        yield node, None


# Conditions and expressions


def _all_true(conditions: Iterable[TypedCondition], row: Row, given: Given) -> bool:
    def value(expr: TypedExpr) -> object:
        return evaluate(expr, row, given.params, given.now)

    return all(_truth(condition, value) for condition in conditions)


def _truth(condition: TypedCondition, value: Callable[[TypedExpr], object]) -> bool | None:
    """True, false, or None for unknown."""
    match condition:
        case Compare(left, op, right):
            return compare(value(left), op, value(right))
        case IsIn(item, options):
            return _is_in(value(item), value(options))
        case IsNull(operand, is_negated):
            return (value(operand) is None) is not is_negated
        case Holds(operand):
            found = value(operand)
            return None if found is None else bool(found)
        case All(operands):
            truths = [_truth(part, value) for part in operands]
            return False if False in truths else None if None in truths else True
        case Any(operands):
            truths = [_truth(part, value) for part in operands]
            return True if True in truths else None if None in truths else False


def _is_in(item: object, options: object) -> bool | None:
    if item is None or options is None:
        return None
    assert isinstance(options, tuple)
    return any(compare(item, TypedOp.EQ, option) for option in options)


def compare(left: object, op: TypedOp, right: object) -> bool | None:
    """A comparison of two values; unknown when either is null."""
    if left is None or right is None:
        return None
    found: object
    match op:
        case TypedOp.EQ:
            found = left == right
        case TypedOp.NE:
            found = left != right
        case TypedOp.LT:
            found = left < right  # type: ignore[operator]
        case TypedOp.LE:
            found = left <= right  # type: ignore[operator]
        case TypedOp.GT:
            found = left > right  # type: ignore[operator]
        case TypedOp.GE:
            found = left >= right  # type: ignore[operator]
        case TypedOp.HAS_MEMBER | TypedOp.HAS_TEXT:
            found = right in left  # type: ignore[operator]
        case TypedOp.STARTS_WITH:
            found = str(left).startswith(str(right))
    return bool(found)


def evaluate(
    expr: TypedExpr, row: Row, params: Mapping[str, Value], now: dt.datetime
) -> Value | Node | Edge:
    """The value of an expression that needs one row only."""
    match expr:
        case Constant(value=value):
            return value
        case ParamValue(name=name):
            return params[name]
        case NowValue():
            return now
        case PropertyValue(variable, name):
            entity = row[variable]
            return None if entity is None else entity.get(name)
        case NodeValue(variable=variable):
            return row[variable]
        case _:
            raise TypeError(f"the oracle does not search or rank: {expr}")


# Results


class _Result:
    """One result row on its way: the match rows behind it and the cells of its columns."""

    def __init__(self, ir: QueryIR, rows: list[Row], given: Given) -> None:
        self.ir = ir
        self.rows = rows
        self.given = given
        self.cells = [self.value(column.expr) for column in ir.columns]

    def value(self, expr: TypedExpr) -> Value | Node | Edge:
        match expr:
            case ColumnValue(column=index):
                return self.cells[index]
            case Aggregate():
                return _aggregate(expr, [self._of_row(expr.argument, row) for row in self.rows])
            case _:
                return self._of_row(expr, self.rows[0] if self.rows else {})

    def _of_row(self, expr: TypedExpr, row: Row) -> Value | Node | Edge:
        return evaluate(expr, row, self.given.params, self.given.now)

    def tie_break(self) -> tuple[object, ...]:
        """Ids of the bound variables in name order; of a made row, its cells."""
        if self.ir.is_grouped or self.ir.is_distinct:
            return tuple(map(_rank, self.cells))
        return tuple(_rank(self.rows[0][variable]) for variable in self.ir.variables)

    def shown(self) -> dict[str, Cell]:
        return {c.name: self._cell(v) for c, v in zip(self.ir.columns, self.cells, strict=True)}

    def _cell(self, value: Value | Node | Edge) -> Cell:
        if not isinstance(value, Node):
            assert not isinstance(value, Edge), "an edge is never a column"
            return value
        declared = self.given.graph.catalog.nodes[value.type].properties
        shown = [n for n, p in declared.items() if not p.type.is_blob and not p.type.is_vector]
        return {"id": value.id, **{name: value.get(name) for name in shown}}


def _grouped(ir: QueryIR, rows: list[Row], given: Given) -> list[_Result]:
    """One result per distinct value of the group columns; constants group nothing.

    Without group columns there is one group, even of no rows.
    """
    group_by = [c.expr for c in ir.columns if isinstance(c.expr, PropertyValue | NodeValue)]
    if not group_by:
        return [_Result(ir, rows, given)]
    groups: dict[object, list[Row]] = {}
    for row in rows:
        cells = [evaluate(expr, row, given.params, given.now) for expr in group_by]
        groups.setdefault(_key(cells), []).append(row)
    return [_Result(ir, members, given) for members in groups.values()]


def _without_repeats(results: list[_Result]) -> list[_Result]:
    kept: dict[object, _Result] = {}
    for result in results:
        kept.setdefault(_key(result.cells), result)
    return list(kept.values())


def _sort_key(expr: TypedExpr, result: _Result) -> tuple[object, ...]:
    return _rank(result.value(expr))


def _aggregate(aggregate: Aggregate, values: list[Value | Node | Edge]) -> Value:
    present = [value for value in values if value is not None]
    if aggregate.function is AggregateFunction.COUNT:
        return len({_key([v]) for v in present}) if aggregate.is_distinct else len(present)
    if not present:
        return None
    numbers: list[float] = present  # type: ignore[assignment]
    match aggregate.function:
        case AggregateFunction.SUM:
            return sum(numbers)
        case AggregateFunction.AVG:
            return sum(numbers) / len(numbers)
        case AggregateFunction.MIN:
            return min(numbers)
        case _:
            return max(numbers)


def _key(cells: Iterable[object]) -> tuple[object, ...]:
    return tuple(cells)


def _rank(value: object) -> tuple[object, ...]:
    """A sort key with null as the smallest; nodes and edges sort by id."""
    if value is None:
        return (0,)
    return (1, value.id) if isinstance(value, Node | Edge) else (1, value)


def _cut(ir: QueryIR, results: list[_Result], given: Given) -> list[_Result]:
    def number(expr: TypedExpr | None, default: int) -> int:
        if expr is None:
            return default
        found = evaluate(expr, {}, given.params, given.now)
        assert isinstance(found, int)
        return found

    start = number(ir.offset, 0)
    return results[start : start + number(ir.limit, len(results))]
