"""Lowering and the rewrite rules keep what a match means, on random matches and small graphs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph_core.ir.lower import lower_match
from omnigraph_core.ir.nodes import OrderKey, QueryIR, ReturnColumn
from omnigraph_core.ir.rules import RULES, optimize
from omnigraph_core.ir.rules.levels import RuleContext
from omnigraph_core.query.typed import Constant, PropertyValue
from omnigraph_core.types import I64, STRING
from tests.support.denotation import matches
from tests.support.examples import examples
from tests.support.match_strategies import AGES, PARAM, graphs, match_clauses
from tests.support.oracle import NOW, Given, Row, run, solutions
from tests.support.people import people_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.query.checked import CheckedClause
    from tests.support.oracle_graph import OracleGraph

Clauses = tuple["CheckedClause", ...]
parameter = st.sampled_from((None, *AGES))


def counted(rows: Iterable[Row]) -> Counter[object]:
    return Counter(tuple(sorted(row.items(), key=lambda item: item[0])) for row in rows)


@settings(max_examples=examples(800))
@given(match_clauses(), graphs(), parameter)
def test_lowering_and_rules_keep_the_meaning(
    clauses: Clauses, graph: OracleGraph, value: int | None
) -> None:
    params = {PARAM: value}
    expected = counted(matches(clauses, {}, Given(graph, params, NOW)))
    lowered = QueryIR("random", pipeline=lower_match(clauses))
    assert counted(solutions(lowered, graph, params)) == expected
    for rule in RULES:
        alone = rule(lowered, RuleContext(people_catalog()))
        assert counted(solutions(alone, graph, params)) == expected, rule.__name__
    optimised = optimize(lowered, people_catalog())
    assert counted(solutions(optimised, graph, params)) == expected
    assert optimize(optimised, people_catalog()) == optimised


@settings(max_examples=examples(200))
@given(match_clauses(), graphs(), parameter, st.integers(0, 3), st.booleans())
def test_ordered_pages_are_equal_row_by_row(
    clauses: Clauses, graph: OracleGraph, value: int | None, limit: int, is_descending: bool
) -> None:
    """Ties break on ids, so an order is total and a page is determined."""
    pipeline = lower_match(clauses)
    variables = QueryIR("random", pipeline=pipeline).variables
    ids = [PropertyValue(name, "id", STRING.nullable()) for name in variables]
    plain = QueryIR(
        "random",
        pipeline=pipeline,
        columns=tuple(ReturnColumn(f"{i.variable}.id", i, i.type) for i in ids),
        order_by=(OrderKey(ids[0], is_descending=is_descending),),
        limit=Constant(limit, I64),
    )
    better = optimize(plain, people_catalog())
    assert run(better, graph, {PARAM: value}) == run(plain, graph, {PARAM: value})
