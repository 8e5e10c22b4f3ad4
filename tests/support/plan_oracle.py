"""What the steps of a plan mean, in dicts and loops: to hold the planner to its word.

A row has exactly the variables the step before it was told somebody needs, so a planner that drops
one too early is found out; and it counts as often as the steps say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from omnigraph_core.plan.steps import (
    AntiJoinStep,
    ExpandStep,
    FilterStep,
    Making,
    OptionalStep,
    ScanStep,
)
from tests.support.oracle import Given, Row, finish, iter_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.plan.steps import QueryPlan, Step, Steps
    from tests.support.oracle import Cell

Weighted: TypeAlias = tuple[Row, int]


def run_plan(plan: QueryPlan, given: Given) -> list[dict[str, Cell]]:
    """The result rows of a plan, in order when the query has one."""
    return finish(plan.ir, plan_rows(plan, given), given)


def plan_rows(plan: QueryPlan, given: Given) -> list[Row]:
    """The rows the result is made from, each as often as it counts."""
    weighted = _run(plan.steps, [({}, 1)], given)
    return [row for row, weight in weighted for _ in range(weight)]


def _run(steps: Steps, rows: list[Weighted], given: Given) -> list[Weighted]:
    for step in steps:
        made = [new for row in rows for new in _apply(step, row, given)]
        rows = [({name: row[name] for name in step.needed}, weight) for row, weight in made]
        if isinstance(step, ExpandStep) and step.is_deduplicating:
            rows = _without_repeats(rows)
    return rows


def _apply(step: Step, weighted: Weighted, given: Given) -> Iterator[Weighted]:
    row, weight = weighted
    match step:
        case ScanStep() | ExpandStep():
            found = list(iter_rows((step.op,), row, given))
            if step.making is Making.ROWS:
                yield from ((new, weight) for new in found)
            elif found:
                yield row, weight * (len(found) if step.making is Making.COUNT else 1)
        case FilterStep():
            yield from ((new, weight) for new in iter_rows((step.op,), row, given))
        case AntiJoinStep():
            if not _run(step.inner, [(_outer(step, row), 1)], given):
                yield weighted
        case OptionalStep():
            inner = _run(step.inner, [(_outer(step, row), 1)], given)
            for new, factor in inner or [(dict.fromkeys(step.op.introduced), 1)]:
                yield {**row, **new}, weight * factor


def _outer(step: AntiJoinStep | OptionalStep, row: Row) -> Row:
    return {name: row[name] for name in step.op.outer_vars}


def _without_repeats(rows: list[Weighted]) -> list[Weighted]:
    assert all(weight == 1 for _, weight in rows), "what is counted is never made one"
    return list({tuple(sorted(row.items())): (row, weight) for row, weight in rows}.values())
