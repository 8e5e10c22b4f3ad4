"""What each step has to hand on, and what it can do at once: steps come in.

A row carries nothing that nobody reads any more: what is carried is shuffled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import introduces
from omnigraph_core.plan.steps import AntiJoinStep, ExpandStep, FilterStep, OptionalStep, ScanStep
from omnigraph_core.query.mentions import mentions
from omnigraph_core.spark.query.cells import cells_in, id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.plan.steps import Step, Steps
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.spark.query.cells import Cell

    Cells = frozenset[Cell]


def needs_after(steps: Sequence[Step], wanted: Cells) -> list[Cells]:
    """For each step the cells that rows carry when it is done; `wanted` after the last."""
    found: list[Cells] = []
    for step in reversed(steps):
        found.append(wanted)
        wanted = needs_before(step, wanted)
    return found[::-1]


def needs_before(step: Step, after: Cells) -> Cells:
    """The cells that a step, and all that come after it, read of the rows it is given."""
    kept = frozenset(cell for cell in after if cell.variable not in introduces(step.op))
    match step:
        case ScanStep():
            return kept
        case ExpandStep(op=op):
            ends = (op.src_var, op.dst_var) if op.is_closing else (op.src_var,)
            return kept.union(map(id_of, ends))
        case FilterStep(op=op):
            return kept.union(cells_in((op.condition,)))
        case AntiJoinStep() | OptionalStep():
            return kept | start_of(step, after)


def start_of(step: AntiJoinStep | OptionalStep, after: Cells) -> Cells:
    """The cells of outer variables that the inner steps of a join start with."""
    if isinstance(step, AntiJoinStep) and is_plain_test(step.inner):
        return frozenset(cells_in(inner.op.condition for inner in step.inner))  # type: ignore[union-attr]
    wanted = inner_wanted(step, after)
    for inner in reversed(step.inner):
        wanted = needs_before(inner, wanted)
    return wanted


def inner_wanted(step: AntiJoinStep | OptionalStep, after: Cells) -> Cells:
    """The cells that the inner steps must end with: who they belong to, and what they found."""
    found = frozenset(cell for cell in after if cell.variable in introduces(step.op))
    return found.union(map(id_of, step.op.outer_vars))


def is_plain_test(steps: Steps) -> bool:
    """Whether the inner side of an anti-join is a condition on the outer row and nothing else."""
    return len(steps) == 1 and isinstance(steps[0], FilterStep)


def with_edge_filters(
    steps: Steps,
) -> list[tuple[Step, tuple[TypedCondition, ...]]]:
    """Every step, with an expand the conditions on its edge alone that come next.

    They are checked where the edges are read.
    """
    found: list[tuple[Step, tuple[TypedCondition, ...]]] = []
    taken: set[int] = set()
    for place, step in enumerate(steps):
        if place in taken:
            continue
        if not isinstance(step, ExpandStep) or step.op.edge_binding is None:
            found.append((step, ()))
            continue
        on_edge: list[TypedCondition] = []
        for number, condition in following_filters(steps, place):
            if mentions(condition) == {step.op.edge_binding}:
                taken.add(number)
                on_edge.append(condition)
        found.append((step, tuple(on_edge)))
    return found


def following_filters(steps: Sequence[Step], place: int) -> Iterator[tuple[int, TypedCondition]]:
    """The conditions of the filters right after a step, and where they stand."""
    for number in range(place + 1, len(steps)):
        step = steps[number]
        if not isinstance(step, FilterStep):
            return
        yield number, step.op.condition
