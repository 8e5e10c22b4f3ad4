"""What a plan does, in words: a plan and counts of its tables come in, a report goes out.

It says which way the executor takes, as far as that is known before the first row, and after a run
what each step had to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.ir.explain import explain_condition, explain_op
from omnigraph_core.plan.access import (
    Access,
    access_path,
    compared_columns,
    conjuncts,
    searched_columns,
)
from omnigraph_core.plan.estimate import Estimator
from omnigraph_core.plan.explain_result import explain_result
from omnigraph_core.plan.predicates import lance_filter
from omnigraph_core.plan.report import IndexUse, PlanReport, StepReport
from omnigraph_core.plan.steps import (
    AntiJoinStep,
    ExpandStep,
    FilterStep,
    Making,
    OptionalStep,
    ScanStep,
)
from omnigraph_core.query.typed import All

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.ir.nodes import Expand
    from omnigraph_core.plan.access import AccessPath
    from omnigraph_core.plan.estimate import Stats
    from omnigraph_core.plan.report import Measured, Work
    from omnigraph_core.plan.steps import QueryPlan, Step, Steps
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.schema.catalog import Catalog

__all__ = ["PlanReport", "explain_plan"]

_MAKINGS: Final = {Making.COUNT: "count only", Making.EXISTS: "exists only"}
_KINDS: Final = {
    ScanStep: "scan",
    ExpandStep: "expand",
    FilterStep: "filter",
    AntiJoinStep: "anti-join",
    OptionalStep: "optional join",
}


def explain_plan(
    plan: QueryPlan,
    stats: Stats,
    catalog: Catalog,
    *,
    values: Values | None = None,
    measured: Measured | None = None,
    total: Work | None = None,
) -> PlanReport:
    """How a plan is carried out on tables of these sizes.

    Args:
        values: the parameters, if they are known: what the storage is asked is then shown as it is
            asked.
        measured: what the steps of a run had to do.
        total: the whole run.
    """
    explainer = _Explainer(Estimator(stats, catalog), values, measured)
    steps, rows = explainer.steps(plan.steps, 1.0)
    if plan.lookup is not None:
        steps = (replace(steps[0], notes=(*steps[0].notes, "nothing else is done")),)
    result = explain_result(plan, explainer.estimator, rows, measured)
    return PlanReport(plan.ir.name, steps, result, total)


class _Explainer:
    def __init__(
        self, estimator: Estimator, values: Values | None, measured: Measured | None
    ) -> None:
        self.estimator = estimator
        self._values = values
        self._measured = measured

    def steps(self, steps: Steps, rows: float) -> tuple[tuple[StepReport, ...], float]:
        """Reports of steps that are given so many rows, and the rows after them."""
        reports = []
        for step in steps:
            rows_in, rows = rows, self.estimator.after(step, rows)
            work = None if self._measured is None else self._measured.work_of(step)
            reports.append(replace(self._step(step, rows_in), estimated_rows=rows, work=work))
        return tuple(reports), rows

    def _step(self, step: Step, rows: float) -> StepReport:
        report = StepReport(_KINDS[type(step)], explain_op(step.op), 0.0)
        match step:
            case ScanStep(op=op):
                path = self._path(op.filters, op.type_name)
                notes = (*_path_notes(path), *_making_notes(step))
                return self._asking(replace(report, notes=notes), path, op.type_name)
            case ExpandStep(op=op):
                notes = (*_walk_notes(op), *_making_notes(step))
                if not op.dst_filters:
                    return replace(report, notes=notes)
                path = self._path(op.dst_filters, op.dst_type)
                notes = (*notes, *_path_notes(path), "few ends are checked one by one")
                return self._asking(replace(report, notes=notes), path, op.dst_type)
            case FilterStep(op=op):
                return replace(report, notes=tuple(_reading_notes((op.condition,))))
            case AntiJoinStep() | OptionalStep():
                notes = ("once for each distinct start",)
                return replace(report, notes=notes, inner=self.steps(step.inner, rows)[0])

    def _path(self, conditions: Sequence[TypedCondition], type_name: str) -> AccessPath:
        stats, node = self.estimator.stats, self.estimator.catalog.nodes[type_name]
        return access_path(conditions, node, lambda name: stats.is_kept(type_name, name))

    def _asking(self, report: StepReport, path: AccessPath, type_name: str) -> StepReport:
        """The report with what the storage is asked."""
        uses = tuple(self._index_uses(path, type_name))
        return replace(report, pushed=tuple(self._pushed(path)), indexes=uses)

    def _pushed(self, path: AccessPath) -> Iterator[str]:
        if not path.pushed:
            return
        if self._values is None:
            yield from map(explain_condition, path.pushed)
            return
        asked = lance_filter(All(path.pushed), self._values)
        yield "for every row" if asked is None else asked

    def _index_uses(self, path: AccessPath, type_name: str) -> Iterator[IndexUse]:
        stats = self.estimator.stats
        rows = stats.node_count(type_name)
        is_by_id = path.access in (Access.LOOKUP, Access.LIST) and not stats.is_kept(
            type_name, "id"
        )
        for column in ("id",) if is_by_id else compared_columns(path.pushed):
            for fact in stats.indexes(type_name, column):
                if fact.kind in _SCALAR_INDEXES:
                    yield IndexUse(column, fact, rows)


_SCALAR_INDEXES: Final = frozenset({"BTREE", "BITMAP", "LABEL_LIST"})
"""Kinds that answer comparisons."""


def _path_notes(path: AccessPath) -> Iterator[str]:
    match path.access:
        case Access.ALL:
            yield str(path.access)
        case Access.LOOKUP | Access.LIST:
            yield f"{path.access} on {', '.join(path.key)}"
            yield from (f"then {note}" for note in _reading_notes(path.rest))
        case Access.COLUMNS:
            yield from _reading_notes(path.rest)
        case Access.PUSHDOWN:
            yield from _reading_notes(path.rest)
            yield "rows found are checked again"


def _reading_notes(conditions: Sequence[TypedCondition]) -> Iterator[str]:
    """Which columns conditions compare, and whose words they search."""
    parts = conjuncts(conditions)
    compared = compared_columns(parts)
    if compared:
        yield f"{Access.COLUMNS} on {', '.join(compared)}"
    if searched := tuple(dict.fromkeys(searched_columns(parts))):
        yield f"words of {', '.join(searched)}"


def _making_notes(step: ScanStep | ExpandStep) -> tuple[str, ...]:
    notes = [_MAKINGS[step.making]] if step.making in _MAKINGS else []
    if isinstance(step, ExpandStep) and step.is_deduplicating:
        notes.append("equal rows made one")
    return tuple(notes)


def _walk_notes(op: Expand) -> Iterator[str]:
    hops = "" if op.max_hops == 1 else ", breadth first"
    which = "adjacency" if op.edge_binding is None else "stored edges"
    yield f"{which} {op.edge_type} {op.direction}{hops}"
