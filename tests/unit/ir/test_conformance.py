"""The conformance set: what each query compiles to, and the rows it means on a small graph.

Sections: graph (`people`, or load records; then `params {…}`), query, expected rows, explain text.
A `-` for the rows marks a mutation, which only the engine can carry out.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from omnigraph_core.errors import CompileError
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.explain import explain
from omnigraph_core.ir.lower import lower_query
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.query.checked import CheckedRead
from omnigraph_core.query.params import coerce_params
from omnigraph_core.values import Value, to_json
from tests.support.cases import each
from tests.support.corpus import Case, check_case, load_cases
from tests.support.denotation import matches
from tests.support.oracle import NOW, Cell, Given, run, solutions
from tests.support.people import graph_from_records, people_catalog, people_graph

if TYPE_CHECKING:
    from tests.support.oracle_graph import OracleGraph

CASES = load_cases("conformance")


@each("case", CASES, ids=str)
def test_compiles(case: Case) -> None:
    try:
        actual = explain(compile_one(case.sections[1], people_catalog()).ir)
    except CompileError as refused:
        actual = str(refused)
    check_case(case, actual)


@each("case", [c for c in CASES if c.sections[2] != "-"], ids=str)
def test_means(case: Case) -> None:
    compiled = compile_one(case.sections[1], people_catalog())
    lowered = lower_query(compiled.checked)
    assert isinstance(lowered, QueryIR)
    assert isinstance(compiled.ir, QueryIR)
    graph, given = _graph_and_params(case.sections[0])
    params = coerce_params(compiled.checked.params, given)
    assert isinstance(compiled.checked.body, CheckedRead)
    matched = matches(compiled.checked.body.clauses, {}, Given(graph, params, NOW))
    expected = [json.loads(line) for line in case.sections[2].splitlines()]
    for ir in (lowered, compiled.ir):
        assert len(solutions(ir, graph, params)) == len(matched)
        rows = [{name: _json(cell) for name, cell in row.items()} for row in run(ir, graph, params)]
        if ir.order_by:
            assert rows == expected
        else:
            assert Counter(map(repr, rows)) == Counter(map(repr, expected))


def _graph_and_params(section: str) -> tuple[OracleGraph, dict[str, object] | None]:
    lines = section.splitlines()
    given = [
        json.loads(line.removeprefix("params ")) for line in lines if line.startswith("params")
    ]
    records = [line for line in lines if line.startswith("{")]
    graph = graph_from_records(records) if records else people_graph()
    return graph, given[0] if given else None


def _json(cell: Cell) -> object:
    if isinstance(cell, dict):
        return {name: to_json(value) for name, value in cell.items()}
    value: Value = cell  # type: ignore[assignment]
    return to_json(value)
