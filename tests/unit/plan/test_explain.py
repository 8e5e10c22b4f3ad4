"""Reports: which way is taken, what the storage is asked, and what a run had to do."""

from __future__ import annotations

import datetime as dt
import json

from omnigraph_core.exec.trace import Trace
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.build import plan_query
from omnigraph_core.plan.estimate import IndexFact
from omnigraph_core.plan.explain import PlanReport, explain_plan
from omnigraph_core.plan.report import Work
from omnigraph_core.plan.steps import AntiJoinStep, QueryPlan
from omnigraph_core.plan.values import Values
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each
from tests.support.plan_stats import FixedStats

CATALOG = compile_schema(
    """
    node Part { name: String @key  size: I32? @index  about: String?  shape: Vector(4) @index }
    edge Uses: Part -> Part
    """
)
VALUES = Values(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), {"n": 3})


def planned(match: str, result: str = "{ $p.name }") -> QueryPlan:
    text = f"query q($n: I32, $v: Vector(4)) {{ match {{ {match} }} return {result} }}"
    ir = compile_one(text, CATALOG).ir
    assert isinstance(ir, QueryIR)
    return plan_query(ir, CATALOG)


def report(match: str, result: str = "{ $p.name }", **counts: object) -> PlanReport:
    stats = FixedStats(**counts)  # type: ignore[arg-type]
    return explain_plan(planned(match, result), stats, CATALOG)


def test_a_large_column_is_asked_for_in_the_storage() -> None:
    large = frozenset({"size"})
    indexed = {"size": (IndexFact("BTREE", 900),), "name": (IndexFact("BTREE", 1_000),)}
    plan = planned('$p: Part $p.size > $n $p.about contains "x"')
    stats = FixedStats(large=large, indexed=indexed)
    (step,) = explain_plan(plan, stats, CATALOG).steps
    assert step.pushed == ("$p.size > $n",)
    assert [str(index) for index in step.indexes] == ["index BTREE(size), 90% covered"]
    assert step.notes == ("column filter on about", "rows found are checked again")
    (known,) = explain_plan(plan, stats, CATALOG, values=VALUES).steps
    assert known.pushed == ("(`size` > 3)",)


def test_an_index_that_answers_no_comparison_is_not_named() -> None:
    found = report(
        '$p: Part $p.about contains "x"',
        large=frozenset({"about"}),
        indexed={"about": (IndexFact("INVERTED", 1_000),)},
    )
    assert found.steps[0].indexes == ()


def test_columns_in_memory_need_no_index() -> None:
    found = report("$p: Part $p.size > 3", indexed={"size": (IndexFact("BTREE", 1_000),)})
    assert (found.steps[0].indexes, found.steps[0].pushed) == ((), ())


def test_ids_that_are_not_in_memory_are_looked_up_in_their_index() -> None:
    indexed = {"id": (IndexFact("BTREE", 1_000),)}
    match = '$p: Part {name: "a"}'
    assert report(match, indexed=indexed).steps[0].indexes == ()
    (index,) = report(match, indexed=indexed, large=frozenset({"id"})).steps[0].indexes
    assert index.to_json() == {
        "column": "id",
        "kind": "BTREE",
        "coverage": 1.0,
        "covered_rows": 1_000,
        "rows": 1_000,
    }


RANKED = "{ $p.name } order { nearest($p.shape, $v) } limit 3"
SHAPE = {"shape": (IndexFact("IVF_FLAT", 500),)}


@each(
    ("result", "large", "indexed", "expected"),
    [
        (RANKED, set(), SHAPE, "exact distances of shape, in memory"),
        (RANKED, {"shape"}, {}, "exact distances of shape, a portion at a time"),
        (
            RANKED,
            {"shape"},
            SHAPE,
            "exact distances of what the index finds in shape; of few rows without it",
        ),
        (
            "distinct { nearest($p.shape, $v) as d } order { nearest($p.shape, $v) } limit 3",
            {"shape"},
            SHAPE,
            "exact distances of shape, a portion at a time",
        ),
    ],
)
def test_how_the_nearest_are_found(
    result: str, large: set[str], indexed: dict[str, tuple[IndexFact, ...]], expected: str
) -> None:
    found = report("$p: Part", result, large=frozenset(large), indexed=indexed)
    (order,) = (part for part in found.result if part.kind == "order")
    assert order.notes[0] == expected
    assert bool(order.indexes) is ("index" in expected)


def test_too_many_vectors_are_not_held_in_memory() -> None:
    found = report("$p: Part", RANKED, nodes=10**9)
    assert "a portion at a time" in found.text


def test_a_limit_that_ends_the_match_says_so() -> None:
    stops = "the match stops there"
    assert stops in report("$p: Part", "{ $p.name } limit 3").text
    assert stops in report("$p: Part", "distinct { $p.size } limit 3").text
    assert stops not in report("$p: Part", "{ $p.name } order { $p.size } limit 3").text
    assert stops not in report("$p: Part", "{ $p.size, count($p) as n } limit 3").text


def test_expected_groups() -> None:
    grouped = "{ $p.size, count($p) as n }"
    assert report("$p: Part", grouped).result[0].estimated_rows == 100
    assert report("$p: Part", grouped, distinct={"size": 7}).result[0].estimated_rows == 7
    assert report("$p: Part", "{ count($p) as n }").result[0].estimated_rows == 1
    assert report("$p: Part", "{ $p, count($p) as n }").result[0].estimated_rows == 1_000
    assert report("$p: Part", "distinct { $p.name, $p.size }").result[0].estimated_rows == 1_000


def test_a_run_shows_beside_what_was_expected() -> None:
    plan = planned("$p: Part $p uses $q not { $q uses $p }", "{ $p.name } order { $p.name }")
    trace = Trace()
    scan, expand, anti = plan.steps
    assert isinstance(anti, AntiJoinStep)
    trace.add(scan, 1, 20, 0.25)
    trace.add(expand, 15, 30, 0.5)
    trace.add(expand, 5, 10, 0.125)
    trace.add(anti.inner[0], 40, 0, 0.0)
    trace.add("order", 40, 40, 0.0625)
    total = Work(0, 40, 1.0)
    found = explain_plan(plan, FixedStats(), CATALOG, measured=trace, total=total)
    assert [step.work for step in found.steps] == [
        Work(1, 20, 0.25),
        Work(20, 40, 0.625, 2),
        None,
    ]
    assert found.steps[2].inner[0].work == Work(40, 0, 0.0)
    assert found.result[0].work == Work(40, 40, 0.0625)
    assert "[~10,000 rows; 40 rows of 20 in 625.000 ms, 2 portions; adjacency Uses out]" in str(
        found
    )
    assert found.lines[-1] == "  40 rows in 1000.000 ms"


def test_equal_steps_are_told_apart() -> None:
    """Two parts of a query may look the same and do different work."""
    first, second = planned("$p: Part").steps[0], planned("$p: Part").steps[0]
    assert first == second
    trace = Trace()
    trace.add(first, 1, 2, 0.5)
    assert trace.work_of(second) is None


def test_the_same_in_json() -> None:
    plan = planned("$p: Part {size: 3} not { $p uses $q }", "{ $p.name } limit 2")
    trace = Trace()
    trace.add(plan.steps[0], 1, 20, 0.25)
    total = Work(0, 2, 0.5)
    found = explain_plan(plan, FixedStats(), CATALOG, measured=trace, total=total).to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["query"] == "q"
    assert (found["rows"], found["seconds"]) == (2, 0.5)
    steps = found["steps"]
    assert isinstance(steps, list)
    assert steps[0] == {
        "kind": "scan",
        "text": "scan $p: Part where $p.size = 3",
        "estimated_rows": 100,
        "notes": ["column filter on size"],
        "work": {"rows_in": 1, "rows_out": 20, "seconds": 0.25, "portions": 1},
    }
    assert [inner["kind"] for inner in steps[1]["inner"]] == ["expand"]


def test_a_report_of_a_plan_alone_has_no_figures_of_a_run() -> None:
    found = report("$p: Part").to_json()
    assert "rows" not in found
    assert found["steps"] == [
        {
            "kind": "scan",
            "text": "scan $p: Part",
            "estimated_rows": 1_000,
            "notes": ["all rows"],
        }
    ]
