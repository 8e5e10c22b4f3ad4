"""Which rows of a result are asked for: those between offset and limit, those a ranking reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.errors import ParameterError
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import Bm25, Nearest, ParamValue, Rrf

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import RankExpr, TypedExpr


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows of the ordered result are wanted; `end` None means all from `start`."""

    start: int
    end: int | None


def window_of(ir: QueryIR, values: Values) -> Window:
    """
    Raises:
        ParameterError: a limit or offset is negative.
    """
    if ir.limit is None and ir.offset is None:
        return Window(0, None)
    start = _row_count(values, ir.offset, "offset") or 0
    limit = _row_count(values, ir.limit, "limit")
    return Window(start, None if limit is None else start + limit)


def _row_count(values: Values, expr: TypedExpr | None, clause: str) -> int | None:
    if expr is None or not is_given(expr):
        return None
    count = values.of(expr)
    if not isinstance(count, int):
        return None
    if count < 0:
        name = f"${expr.name}" if isinstance(expr, ParamValue) else clause
        raise ParameterError([f"{name}: {clause} is at least 0, found {count}"])
    return count


def leading_rank(ir: QueryIR) -> RankExpr | None:
    """The ranking that decides which rows take part at all."""
    first = ir.order_by[0].expr if ir.order_by else None
    return first if isinstance(first, Nearest | Bm25 | Rrf) else None


def fused_ranks(ir: QueryIR) -> tuple[Rrf, ...]:
    """Columns that need the complete match, because they rank its rows against each other."""
    return tuple(dict.fromkeys(c.expr for c in ir.columns if isinstance(c.expr, Rrf)))
