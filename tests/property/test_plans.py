"""A plan says what its query says, on random matches, results and small graphs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.ir.lower import lower_match
from omnigraph_core.ir.nodes import OptionalJoin, OrderKey, QueryIR, ReturnColumn
from omnigraph_core.ir.rules import optimize
from omnigraph_core.plan.build import plan_query
from omnigraph_core.query.typed import (
    Aggregate,
    AggregateFunction,
    ColumnValue,
    Constant,
    NodeValue,
    PropertyValue,
)
from omnigraph_core.types import F64, I64, STRING, PropType, Scalar
from tests.support.examples import examples
from tests.support.match_strategies import (
    AGES,
    EDGE_TYPES,
    PARAM,
    graphs,
    match_clauses,
    node_type,
    pick,
)
from tests.support.oracle import NOW, Given, run
from tests.support.people import people_catalog
from tests.support.plan_oracle import run_plan

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from omnigraph_core.ir.nodes import Pipeline
    from omnigraph_core.query.typed import TypedExpr
    from tests.support.oracle_graph import OracleGraph

Column: TypeAlias = PropertyValue | NodeValue | Aggregate
AGE = PropType(Scalar.I32, is_nullable=True)


@dataclass
class Result:
    """Columns to return over the variables of a match."""

    draw: DrawFn
    pipeline: Pipeline

    def variable(self, *, is_node: bool = False) -> str:
        names = QueryIR("random", pipeline=self.pipeline).variables
        nodes = tuple(name for name in names if name not in EDGE_TYPES)
        return pick(self.draw, nodes if is_node else names)

    def is_nullable(self, name: str) -> bool:
        joins = (op for op in self.pipeline if isinstance(op, OptionalJoin))
        return any(name in join.introduced for join in joins)

    def text(self, name: str) -> PropertyValue:
        return PropertyValue(name, "id", STRING.nullable(is_nullable=self.is_nullable(name)))

    def node(self) -> NodeValue:
        name = self.variable(is_node=True)
        return NodeValue(name, node_type(name), self.is_nullable(name))

    def plain(self) -> PropertyValue | NodeValue:
        return self.text(self.variable()) if self.draw(st.booleans()) else self.node()

    def aggregate(self) -> Aggregate:
        count = AggregateFunction.COUNT
        name = self.variable(is_node=True)
        match pick(self.draw, ("rows", "distinct", "number", "text")):
            case "rows":
                return Aggregate(count, self.plain(), I64)
            case "distinct":
                return Aggregate(count, self.plain(), I64, is_distinct=True)
            case "number" if node_type(name) == "Person":
                function = pick(self.draw, tuple(AggregateFunction))
                return Aggregate(function, PropertyValue(name, "age", AGE), F64.nullable())
            case _:
                function = pick(self.draw, (AggregateFunction.MIN, AggregateFunction.MAX))
                return Aggregate(function, self.text(self.variable()), STRING.nullable())


@st.composite
def reads(draw: DrawFn) -> QueryIR:
    """A read with plain, distinct or grouped rows, in an order or none."""
    pipeline = lower_match(draw(match_clauses()))
    result = Result(draw, pipeline)
    form = pick(draw, ("plain", "distinct", "grouped", "grouped"))
    exprs: list[Column] = [result.plain() for _ in range(draw(st.integers(1, 2)))]
    if form == "grouped":
        exprs = [*exprs[draw(st.integers(0, 1)) :], result.aggregate(), result.aggregate()]
    columns = tuple(
        ReturnColumn(f"c{i}", e, None if isinstance(e, NodeValue) else e.type)
        for i, e in enumerate(exprs)
    )
    ir = QueryIR(
        "random",
        pipeline=pipeline,
        columns=columns,
        is_distinct=form == "distinct",
        is_grouped=form == "grouped",
    )
    return optimize(_ordered(draw, ir, result), people_catalog())


def _ordered(draw: DrawFn, ir: QueryIR, result: Result) -> QueryIR:
    if draw(st.booleans()):
        return ir
    texts = [i for i, c in enumerate(ir.columns) if not isinstance(c.expr, NodeValue)]
    key: TypedExpr
    if ir.is_distinct or ir.is_grouped:
        if not texts:
            return ir
        place = pick(draw, texts)
        key = ColumnValue(place, f"c{place}", ir.columns[place].type)
    else:
        key = result.text(result.variable())
    order = (OrderKey(key, is_descending=draw(st.booleans())),)
    return replace(ir, order_by=order, limit=Constant(draw(st.integers(0, 4)), I64))


def shown(rows: list[dict[str, object]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


@settings(max_examples=examples(1000))
@given(reads(), graphs(), st.sampled_from((None, *AGES)))
def test_a_plan_gives_what_the_query_means(
    ir: QueryIR, graph: OracleGraph, value: int | None
) -> None:
    params = {PARAM: value}
    expected = run(ir, graph, params)
    found = run_plan(plan_query(ir, people_catalog()), Given(graph, params, NOW))
    if ir.order_by:
        assert found == expected
    else:
        assert shown(found) == shown(expected)
