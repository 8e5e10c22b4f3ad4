"""Rows carry what is read later, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.exec.queries import plan_read
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.plan.steps import AntiJoinStep, ExpandStep, FilterStep, OptionalStep
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.spark.query.cells import Cell
from omnigraph_core.spark.query.needs import needs_after, start_of, with_edge_filters
from tests.support.cases import each

if TYPE_CHECKING:
    from omnigraph_core.plan.steps import Steps

CATALOG = compile_schema("""
node Part { sku: String @key  name: String?  size: I64  text: String? }
node Bin { code: String @key }
edge Needs: Part -> Part { amount: I32? }
edge Holds: Bin -> Part
""")


def steps_of(match: str) -> Steps:
    text = f"query q() {{ match {{ {match} }} return {{ $p.sku }} }}"
    return plan_read(compile_one(text, CATALOG), CATALOG).plan.steps


def names(cells: frozenset[Cell]) -> list[str]:
    return sorted(cell.name for cell in cells)


SKU = frozenset({Cell("p", "sku")})


def test_what_a_filter_reads_is_dropped_after_it() -> None:
    steps = steps_of("$p: Part $b holds $p $b.code != $p.name")
    after = [names(cells) for cells in needs_after(steps, SKU)]
    assert after[-1] == ["p:sku"]
    assert after[-2] == ["b:code", "p:name", "p:sku"]
    assert "b:id" not in {name for cells in after[-2:] for name in cells}


def test_ends_of_later_expands_are_carried() -> None:
    steps = steps_of("$p: Part $p needs $q $q needs $r $r needs $p")
    after = [names(cells) for cells in needs_after(steps, SKU)]
    assert after[-1] == ["p:sku"]
    assert after[0] == ["p:id", "p:sku"]
    assert all(isinstance(step, ExpandStep) for step in steps[1:])


@each(
    ("block", "start"),
    [
        ("not { $p needs $q $q.size > $p.size }", ["p:id", "p:size"]),
        ("not { $p.size > 3 or $p.name is null }", ["p:name", "p:size"]),
        ("optional { $p needs $q $b holds $q }", ["p:id"]),
        ("optional { $p needs $q not { $b holds $q $b.code = $p.name } }", ["p:id", "p:name"]),
    ],
)
def test_inner_steps_start_with_what_they_read_of_the_row(block: str, start: list[str]) -> None:
    *_, last = steps_of(f"$p: Part {block}")
    assert isinstance(last, AntiJoinStep | OptionalStep)
    assert names(start_of(last, SKU)) == start


def test_conditions_on_an_edge_go_where_edges_are_read() -> None:
    steps = steps_of('$p: Part $p $n:needs $q $n.amount > 1 $n.amount < $q.size $n.id != "x"')
    (_, none), (expand, on_edge), (rest, _) = with_edge_filters(steps)
    assert none == ()
    assert isinstance(expand, ExpandStep)
    assert len(on_edge) == 2
    assert isinstance(rest, FilterStep)


def test_names_that_differ_in_case_are_different_columns() -> None:
    cells = [Cell("ab", "id"), Cell("aB", "id"), Cell("a", "Bid"), Cell("a", "b:id")]
    lowered = {cell.name.lower() for cell in cells}
    assert len(lowered) == len(cells)
