"""Estimates: in the right order of magnitude where the counts say so, and never absurd."""

from __future__ import annotations

import pytest

from omnigraph_core.ir.compile import compile_one
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.build import plan_query
from omnigraph_core.plan.estimate import Estimator
from omnigraph_core.schema.build import compile_schema
from tests.support.cases import each
from tests.support.plan_stats import FixedStats

CATALOG = compile_schema(
    """
    node Part {
        name: String @key  code: String @unique  size: I32?  about: String?
        kind: enum(bolt, nut, cog, pin)  spare: Bool
    }
    node Maker { name: String @key }
    edge Uses: Part -> Part
    edge MadeBy: Part -> Maker
    """
)


def rows(match: str, stats: FixedStats | None = None, result: str = "{ $p.name }") -> float:
    text = f"query q($n: String, $ns: [String]) {{ match {{ {match} }} return {result} }}"
    ir = compile_one(text, CATALOG).ir
    assert isinstance(ir, QueryIR)
    found = Estimator(stats or FixedStats(), CATALOG)
    return found.of_steps(plan_query(ir, CATALOG).steps)


@each(
    ("conditions", "expected"),
    [
        ("", 1_000),
        ("$p.name = $n", 1),
        ("$p.id = $n", 1),
        ("$p.code = $n", 1),
        ("$p.name = $n $p.size > 3", 0.3),
        ("$p.name in $ns", 5),
        ('$p.name in ["a", "b", "c"]', 3),
        ("$p.size = 3", 100),
        ("$p.size != 3", 900),
        ("$p.size > 3", 300),
        ("$p.size > 3 $p.size < 9", 90),
        ("$p.size > 3 or $p.size = 1", 370),
        ('$p.kind = "nut"', 250),
        ("$p.spare = true", 500),
        ("$p.size is null", 100),
        ("$p.size is not null", 900),
        ("search($p.about, $n)", 50),
        ("search($p.about, $n) = false", 950),
        ("$p.about contains $n", 100),
        ("$p.size = $p.size", 100),
        ("$n = $n", 1_000),
        ("$n < $n", 1_000),
        ("1 = 2", 0),
    ],
)
def test_conditions(conditions: str, expected: float) -> None:
    assert rows(f"$p: Part {conditions}") == pytest.approx(expected)


def test_known_numbers_of_values_count() -> None:
    stats = FixedStats(distinct={"size": 20})
    assert rows("$p: Part $p.size = 3", stats) == pytest.approx(50)
    assert rows("$p: Part $p.size in [3, 4]", stats) == pytest.approx(100)


@each(
    ("match", "expected"),
    [
        ("$p: Part $p uses $q", 10_000),
        ("$p: Part $q uses $p", 10_000),
        ("$p: Part $p <uses> $q", 20_000),
        ("$p: Part $p uses $q $q.size > 3", 3_000),
        ("$p: Part {name: $n} $p uses{1,2} $q", 110),
        ("$p: Part {name: $n} $p uses{1,900000000} $q", 1_000),
        ("$p: Part {name: $n} $p uses{2000000000,2000000001} $q", 1_000),
        ("$p: Part $p madeBy{1,3} $m", 10_000),
        ("$p: Part $p madeBy{2,3} $m", 0),
        ("$p: Part $q: Part {name: $n}", 1_000),
        ("$p: Part optional { $p uses $q }", 10_000),
        ("$p: Part optional { $p madeBy{2,3} $m }", 1_000),
    ],
)
def test_steps(match: str, expected: float) -> None:
    assert rows(match) == pytest.approx(expected)


def test_steps_that_only_keep_or_drop_add_no_rows() -> None:
    assert rows("$p: Part $p uses $q $q uses $p") <= 10_000
    assert 0 < rows("$p: Part not { $p uses $q }") < 1_000
    assert rows("$p: Part $p uses $q", result="{ $p.name, count($q) as n }") <= 1_000


def test_an_empty_graph_has_no_rows() -> None:
    nothing = FixedStats(nodes=0, edges=0)
    assert rows("$p: Part $p uses{1,3} $q $q uses $p not { $q madeBy $m }", nothing) == 0
    assert rows('$p: Part {name: "a", size: 3}', nothing) == 0
