"""Matches on real tables give the rows that the oracle finds, in portions of any size."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.exec import joins, scope
from omnigraph_core.exec.match import run_match
from omnigraph_core.ir.explain import explain
from omnigraph_core.ir.lower import lower_match
from omnigraph_core.ir.nodes import QueryIR, ReturnColumn
from omnigraph_core.ir.rules import optimize
from omnigraph_core.plan.build import plan_query
from omnigraph_core.query.typed import Aggregate, AggregateFunction, Constant, PropertyValue
from omnigraph_core.types import I64, STRING
from tests.support.examples import examples
from tests.support.match_strategies import AGES, NAMES, PARAM, match_clauses, pick
from tests.support.oracle import NOW, Given
from tests.support.oracle_graph import OracleGraph
from tests.support.people import company, knows, people_catalog, person, works_at
from tests.support.plan_oracle import plan_rows
from tests.support.stored_graphs import StoredGraph, store_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn

    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.plan.steps import QueryPlan
    from omnigraph_core.values import Value
    from tests.support.oracle import Row

GRAPHS = 6


def sample_graph(seed: int) -> OracleGraph:
    """A few people, some of them unknown; parallel edges, loops and dangling ends included."""
    rng = random.Random(seed)
    names = (*NAMES, "c", "d", "e")[: 2 + seed]
    persons = [person(name, rng.choice((None, *AGES))) for name in names]
    companies = [company(name) for name in names[: seed % 3]]

    def pairs(count: int) -> list[tuple[str, str]]:
        return [(rng.choice((*names, "gone")), rng.choice((*names, "gone"))) for _ in range(count)]

    edges = [knows(i, *pair) for i, pair in enumerate(pairs(3 * seed))]
    works = [works_at(i, *pair) for i, pair in enumerate(pairs(2 * seed))]
    return OracleGraph(people_catalog(), [*persons, *companies], [*edges, *works])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredGraph, ...]:
    root = tmp_path_factory.mktemp("match")
    return tuple(store_graph(root / str(n), sample_graph(n)) for n in range(GRAPHS))


@pytest.fixture(scope="module", params=[2**18, 2], ids=["at once", "in portions"])
def portion(request: pytest.FixtureRequest) -> Iterator[int]:
    """Rows made at once: all there are, or next to none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scope, "PORTION_ROWS", request.param)
        patch.setattr(joins, "_OUTER_ROWS", request.param)
        yield request.param


@dataclass(repr=False)
class Sample:
    """A read that is shown the short way."""

    ir: QueryIR

    def __repr__(self) -> str:
        return explain(self.ir)


@st.composite
def reads(draw: DrawFn) -> Sample:
    """A match whose result needs some of its variables, as rows, as a set or counted."""
    pipeline = lower_match(draw(match_clauses()))
    names = QueryIR("random", pipeline=pipeline).variables
    wanted = [name for name in names if draw(st.booleans())]
    columns = [_column(name, PropertyValue(name, "id", STRING)) for name in wanted]
    form = pick(draw, ("rows", "set", "count", "count"))
    if form == "count" or not columns:
        count = Aggregate(AggregateFunction.COUNT, Constant(1, I64), I64)
        columns.append(ReturnColumn("n", count, I64))
        form = "count"
    ir = QueryIR(
        "random",
        pipeline=pipeline,
        columns=tuple(columns),
        is_distinct=form == "set",
        is_grouped=form == "count",
    )
    return Sample(optimize(ir, people_catalog()) if draw(st.booleans()) else ir)


def _column(name: str, value: PropertyValue) -> ReturnColumn:
    return ReturnColumn(name, replace(value, type=STRING.nullable()), STRING.nullable())


def shown(rows: list[Row], names: frozenset[str]) -> Counter[tuple[tuple[str, object], ...]]:
    return Counter(tuple((name, row[name]) for name in sorted(names)) for row in rows)


def match_rows(
    graph: StoredGraph, plan: QueryPlan, params: dict[str, Value] | None = None
) -> list[Row]:
    run = graph.run(plan, params)
    found: list[Row] = []

    def take(frame: Frame) -> bool:
        assert frame.length > 0
        assert all(len(array) == frame.length for array in frame.numbers.values())
        found.extend(graph.rows(run, frame))
        return True

    run_match(run, plan.steps, take)
    assert run.guard.held >= 0
    return found


@settings(max_examples=examples(1600))
@given(reads(), st.integers(0, GRAPHS - 1), st.sampled_from((None, *AGES)))
def test_a_match_has_the_rows_of_its_plan(
    stored: tuple[StoredGraph, ...], portion: int, read: Sample, place: int, value: int | None
) -> None:
    graph = stored[place]
    plan = plan_query(read.ir, people_catalog())
    expected = shown(plan_rows(plan, Given(graph.oracle, {PARAM: value}, NOW)), plan.row_needs)
    found = shown(match_rows(graph, plan, {PARAM: value}), plan.row_needs)
    if plan.is_set:
        assert set(found) == set(expected)
    else:
        assert found == expected
