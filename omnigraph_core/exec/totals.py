"""Aggregates out of what was counted and summed: whole arrays of groups come in, columns go out.

Whole numbers stay exact, in Python's integers where 64 bits do not do; what does not fit the type
of the result is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import DataError
from omnigraph_core.query.mentions import iter_terms
from omnigraph_core.query.typed import Aggregate, AggregateFunction, NodeValue, PropertyValue
from omnigraph_core.schema.arrow import arrow_type
from omnigraph_core.types import INTEGER_RANGES

if TYPE_CHECKING:
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.query.typed import TypedExpr

_EXACT_FLOAT: Final = 2**53


def is_group_key(expr: TypedExpr) -> bool:
    """Whether a column of a grouped read is one that its rows are grouped by."""
    return isinstance(expr, PropertyValue | NodeValue)


def aggregates_of(ir: QueryIR) -> tuple[Aggregate, ...]:
    """Every aggregate of the result, returned or not, once."""
    columns = (column.expr for column in ir.columns)
    terms = iter_terms((*columns, *ir.having, *(key.expr for key in ir.order_by)))
    return tuple(dict.fromkeys(term for term in terms if isinstance(term, Aggregate)))


def counts_values(found: Aggregate) -> bool:
    """Whether it is a `count(distinct …)`."""
    return found.function is AggregateFunction.COUNT and found.is_distinct


def sums_of(found: Aggregate, sums: np.ndarray, counts: np.ndarray | None = None) -> pa.Array:
    """Sums of the aggregate's type, null where there was nothing to sum.

    Raises:
        DataError: a sum does not fit.
    """
    if sums.dtype.kind == "f":
        _check_finite(found, sums)
        return pa.array(sums, mask=None if counts is None else counts == 0)
    return whole_column(found, sums, counts)


def _check_finite(found: Aggregate, sums: np.ndarray) -> None:
    """
    Raises:
        DataError: a sum of floats, all of them finite, is not.
    """
    if not np.isfinite(sums).all():
        raise DataError(f"the sum for {found.function} of {_shown(found.argument)} exceeds F64")


def whole_column(
    found: Aggregate, numbers: np.ndarray, counts: np.ndarray | None = None
) -> pa.Array:
    """Whole numbers of the aggregate's type, null where a sum is one of nothing.

    Raises:
        DataError: a number does not fit.
    """
    type = found.type
    low, high = INTEGER_RANGES[type.scalar]
    if len(numbers) and not low <= int(numbers.min()) <= int(numbers.max()) <= high:
        raise DataError(
            f"{found.function} of {_shown(found.argument)} exceeds {type.scalar}",
            hint="sum less, or use avg",
        )
    fitted = numbers.astype(np.uint64 if low == 0 else np.int64, copy=False)
    return pa.array(fitted, arrow_type(type), mask=None if counts is None else counts == 0)


def _shown(expr: TypedExpr) -> str:
    return f"${expr.variable}.{expr.property}" if isinstance(expr, PropertyValue) else "the values"


def means_of(found: Aggregate, sums: np.ndarray, counts: np.ndarray) -> pa.Array:
    """Sums over counts; a whole sum too great for a float is divided before it becomes one."""
    if sums.dtype.kind == "f":
        _check_finite(found, sums)
    is_empty = counts == 0
    divisors = np.where(is_empty, 1, counts)
    is_exact = sums.dtype.kind == "f" or (
        sums.dtype != np.object_ and int(np.abs(sums).max(initial=0)) <= _EXACT_FLOAT
    )
    if is_exact:
        return pa.array(sums / divisors, mask=is_empty)
    pairs = zip(sums.tolist(), divisors.tolist(), strict=True)
    return pa.array(np.array([total / count for total, count in pairs], np.float64), mask=is_empty)


def of_nothing(found: Aggregate) -> pa.Array:
    """An aggregate of no rows."""
    if found.function is AggregateFunction.COUNT:
        return pa.array([0], arrow_type(found.type))
    return pa.nulls(1, arrow_type(found.type))
