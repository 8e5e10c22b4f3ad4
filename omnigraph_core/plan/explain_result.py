"""The result half of a report: groups, order, rankings and limits in words.

The parts stand in the order they are carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import EXACT_VECTOR_BYTES
from omnigraph_core.ir.explain import explain_condition, explain_expr
from omnigraph_core.plan.report import IndexUse, StepReport
from omnigraph_core.query.typed import (
    Bm25,
    Constant,
    Nearest,
    NodeValue,
    PropertyValue,
    Rrf,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.ir.nodes import OrderKey, QueryIR
    from omnigraph_core.plan.estimate import Estimator, IndexFact
    from omnigraph_core.plan.report import Measured
    from omnigraph_core.plan.steps import QueryPlan
    from omnigraph_core.query.typed import TypedExpr

_GROUP_SHARE: Final = 0.1
"""Groups per row when nobody knows how many values there are."""
_HAVING_SHARE: Final = 0.3
_VECTOR_INDEX: Final = "IVF"


def explain_result(
    plan: QueryPlan, estimator: Estimator, rows: float, measured: Measured | None
) -> tuple[StepReport, ...]:
    """What is made of so many rows of the match."""
    return tuple(_Parts(plan, estimator, rows, measured).parts())


class _Parts:
    def __init__(
        self, plan: QueryPlan, estimator: Estimator, rows: float, measured: Measured | None
    ) -> None:
        self._plan = plan
        self._ir = plan.ir
        self._estimator = estimator
        self._rows = rows
        self._measured = measured

    def parts(self) -> Iterator[StepReport]:
        ir = self._ir
        if self._plan.lookup is None:
            yield from self._made()
            if ir.order_by:
                yield self._order(ir.order_by)
            if ir.limit is not None or ir.offset is not None:
                yield self._cut()
        columns = ", ".join(column.name for column in ir.columns)
        yield self._part("return", f"return {columns}", "columns are fetched for these rows only")

    def _part(
        self, kind: str, text: str, *notes: str, indexes: tuple[IndexUse, ...] = ()
    ) -> StepReport:
        work = None if self._measured is None else self._measured.work_of(kind)
        return StepReport(kind, text, self._rows, notes, (), indexes, (), work)

    def _made(self) -> Iterator[StepReport]:
        """Groups and different rows."""
        ir = self._ir
        if ir.is_grouped:
            yield self._group()
            if ir.having:
                self._rows *= _HAVING_SHARE
                conditions = " and ".join(map(explain_condition, ir.having))
                yield self._part("having", f"having {conditions}")
        if ir.is_distinct:
            self._rows = self._distinct_rows(tuple(column.expr for column in ir.columns))
            yield self._part("distinct", "distinct")

    def _group(self) -> StepReport:
        exprs = (column.expr for column in self._ir.columns)
        keys = tuple(expr for expr in exprs if isinstance(expr, PropertyValue | NodeValue))
        self._rows = self._distinct_rows(keys) if keys else 1.0
        by = ", ".join(map(explain_expr, keys)) or "nothing"
        notes = ("repeated rows change nothing",) if self._plan.is_set else ()
        return self._part("group", f"group by {by}", *notes)

    def _distinct_rows(self, exprs: tuple[TypedExpr, ...]) -> float:
        """Different combinations of values among the rows."""
        types = dict(self._ir.node_types)
        most = 1.0
        for expr in exprs:
            match expr:
                case NodeValue(type_name=type_name):
                    most *= self._estimator.stats.node_count(type_name)
                case PropertyValue(variable, name) if variable in types:
                    found = self._estimator.distinct_count(types[variable], name)
                    most *= self._rows * _GROUP_SHARE if found is None else found
                case _:
                    most *= max(self._rows, 1.0)
        return min(max(most, min(self._rows, 1.0)), self._rows)

    def _order(self, keys: tuple[OrderKey, ...]) -> StepReport:
        ir, leading = self._ir, keys[0].expr
        written = ", ".join(
            f"{explain_expr(key.expr)} {'desc' if key.is_descending else 'asc'}" for key in keys
        )
        notes = ["ties by id" if not (ir.is_grouped or ir.is_distinct) else "ties by the cells"]
        indexes: tuple[IndexUse, ...] = ()
        if isinstance(leading, Nearest | Bm25 | Rrf):
            arms = leading.arms if isinstance(leading, Rrf) else (leading,)
            ways = [self._ranking(arm) for arm in arms]
            notes = [note for note, _ in ways] + notes
            indexes = tuple(use for _, uses in ways for use in uses)
        elif ir.limit is not None:
            notes.insert(0, "the best are chosen, not all sorted")
        return self._part("order", f"order by {written}", *notes, indexes=indexes)

    def _ranking(self, rank: Nearest | Bm25) -> tuple[str, tuple[IndexUse, ...]]:
        """How a ranking finds its best rows."""
        name = rank.field.property
        if isinstance(rank, Bm25):
            return f"words of {name}", ()
        type_name = dict(self._ir.node_types)[rank.field.variable]
        stats = self._estimator.stats
        rows = stats.node_count(type_name)
        byte_count = rows * (rank.field.type.dimension or 0) * 4
        if byte_count <= EXACT_VECTOR_BYTES.value and stats.is_kept(type_name, name):
            return f"exact distances of {name}, in memory", ()
        indexes = tuple(fact for fact in stats.indexes(type_name, name) if _is_vector_index(fact))
        if not indexes or not self._may_use_index():
            return f"exact distances of {name}, a portion at a time", ()
        uses = tuple(IndexUse(name, fact, rows) for fact in indexes)
        return f"exact distances of what the index finds in {name}; of few rows without it", uses

    def _may_use_index(self) -> bool:
        """An index gives the best rows of a table: all rows of a match need all distances."""
        is_first = isinstance(self._ir.order_by[0].expr, Nearest)
        return is_first and self._ir.limit is not None and not self._ir.is_distinct

    def _cut(self) -> StepReport:
        ir = self._ir
        words = [
            f"{word} {explain_expr(expr)}"
            for word, expr in (("offset", ir.offset), ("limit", ir.limit))
            if expr is not None
        ]
        if isinstance(ir.limit, Constant) and isinstance(ir.limit.value, int):
            self._rows = min(self._rows, ir.limit.value)
        is_early = ir.limit is not None and not ir.order_by and not ir.is_grouped
        notes = ("the match stops there",) if is_early and not _has_fused_column(ir) else ()
        return self._part("limit", " ".join(words), *notes)


def _has_fused_column(ir: QueryIR) -> bool:
    return any(isinstance(column.expr, Rrf) for column in ir.columns)


def _is_vector_index(fact: IndexFact) -> bool:
    return fact.kind.startswith(_VECTOR_INDEX)
