"""Which cells rows must carry after each step: steps and what is wanted of them come in.

A row carries nothing that nobody reads any more: what is carried is shuffled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.ir.nodes import introduces
from omnigraph_core.plan.steps import AntiJoinStep, ExpandStep, FilterStep, OptionalStep, ScanStep
from omnigraph_core.spark.query.cells import cells_in, id_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.plan.steps import Step, Steps
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
