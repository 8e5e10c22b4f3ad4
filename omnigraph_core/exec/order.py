"""The order of result rows: total, by the sort keys and then by what tells any two rows apart.

Every key is looked at only for the rows whose order depends on it, and with a limit the rows that
cannot be among the first are left out before anything is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.exec.ordinals import array_ordinals, number_ordinals, property_ordinals
from omnigraph_core.exec.rank import rank_ties
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import ColumnValue, Nearest, NodeValue, PropertyValue, Rrf
from omnigraph_core.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.exec.project import Rows
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.query.typed import TypedExpr

_FEW: Final = 512
"""Rows that are sorted as they are, without looking for a cheaper way."""
_BLOCKS: Final = 64
_KEY_BITS: Final = 63
_SIGN: Final = np.uint64(1 << 63)
_CLAUSE: Final = "order"
_SEARCH_BYTES: Final = 24
"""What the search for the first rows takes per row, about: places, ordinals, a copy of those."""
_SORT_BYTES: Final = 56
"""The same for sorting: places, runs of equal rows and packed keys, and what is made of them."""
_ID: Final = STRING.nullable()


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key; null is smallest.

    With `is_tie_break` the expression is a ranking and the key tells rows of equal rank apart.
    """

    expr: TypedExpr
    is_descending: bool = False
    is_tie_break: bool = False


def sort_keys(ir: QueryIR) -> tuple[SortKey, ...]:
    """The keys of a query that has an order, with those that break ties."""
    keys: list[SortKey] = []
    for key in (*_written_keys(ir), *_tie_breaks(ir)):
        if not is_given(key.expr) and not any(_is_same(key, known) for known in keys):
            keys.append(key)
    return tuple(keys)


def _is_same(key: SortKey, known: SortKey) -> bool:
    return key.is_tie_break is known.is_tie_break and key.expr == known.expr


def _written_keys(ir: QueryIR) -> Iterator[SortKey]:
    for key in ir.order_by:
        expr = key.expr
        if isinstance(expr, Nearest):
            yield SortKey(expr)  # a distance: best when least
        elif isinstance(expr, ColumnValue):
            yield SortKey(ir.columns[expr.column].expr, key.is_descending)
        else:
            yield SortKey(expr, key.is_descending)


def _tie_breaks(ir: QueryIR) -> Iterator[SortKey]:
    """Ids of the bound variables in turn; of rows that were made of several, their cells.

    Nothing else: such a row stands for rows of different entities, none of them its first.
    """
    if not ir.is_grouped and not ir.is_distinct:
        leading = ir.order_by[0].expr
        if isinstance(leading, Rrf):
            yield SortKey(leading, is_tie_break=True)
        yield from (SortKey(_id_of(variable)) for variable in ir.variables)
        return
    for column in ir.columns:
        expr = column.expr
        yield SortKey(_id_of(expr.variable) if isinstance(expr, NodeValue) else expr)


def _id_of(variable: str) -> PropertyValue:
    return PropertyValue(variable, "id", _ID)


def best_rows(run: Run, rows: Rows, keys: Sequence[SortKey], count: int | None) -> Rows:
    """The rows in order, the first `count` of them.

    Raises:
        BudgetExceeded: there are too many rows to sort.
    """
    if count is not None and count < rows.length:
        run.guard.expect(rows.length * _SEARCH_BYTES, _CLAUSE)
        shortlist = _shortlist(run, rows, keys, count)
        if len(shortlist) < rows.length:
            rows = rows.take(shortlist)
    run.guard.expect(rows.length * _SORT_BYTES, _CLAUSE)
    return rows.take(sorted_places(run, rows, keys)[:count])


def _shortlist(run: Run, rows: Rows, keys: Sequence[SortKey], count: int) -> np.ndarray:
    """Places of rows that hold the first `count`, and not many others; in no order."""
    chosen: list[np.ndarray] = []
    open_places = np.arange(rows.length)
    for key in keys:
        if len(open_places) <= max(2 * count, _FEW):
            break
        is_all = len(open_places) == rows.length
        ordinals = _ordinals(run, rows if is_all else rows.take(open_places), key)
        bound = smallest_but(ordinals, count)
        near = np.flatnonzero(ordinals <= bound)
        is_tied = ordinals.take(near) == bound
        chosen.append(open_places.take(near[~is_tied]))
        open_places = open_places.take(near[is_tied])
        count -= len(chosen[-1])
    return np.concatenate((*chosen, open_places))


def smallest_but(ordinals: np.ndarray, count: int) -> int:
    """The `count`-th smallest of some numbers, of which there are at least as many.

    >>> smallest_but(np.array([5, 3, 9, 3]), 2)
    3
    """
    columns = len(ordinals) // _BLOCKS
    if count * 4 <= columns:
        # At least `count` blocks hold something up to the bound, so nothing above it matters.
        least = ordinals[: columns * _BLOCKS].reshape(_BLOCKS, columns).min(axis=0)
        ordinals = ordinals[ordinals <= np.partition(least, count - 1)[count - 1]]
    return int(np.partition(ordinals, count - 1)[count - 1])


def sorted_places(run: Run, rows: Rows, keys: Sequence[SortKey]) -> np.ndarray:
    """The places of all rows in order."""
    places = np.arange(rows.length)
    is_start = np.zeros(rows.length, np.bool_)
    is_start[:1] = True
    for key in keys:
        tied = _tied(is_start)
        if not len(tied):
            break
        waiting = places.take(tied)
        is_first = key is keys[0]
        ordinals = _ordinals(run, rows if is_first else rows.take(waiting), key)
        runs = None if is_first else np.cumsum(is_start).take(tied)
        order = _argsort_within(runs, ordinals)
        places[tied] = waiting.take(order)
        values = ordinals.take(order)
        is_start[tied[1:]] |= values[1:] != values[:-1]
    return places


def _tied(is_start: np.ndarray) -> np.ndarray:
    """Positions that share everything compared so far with a neighbour."""
    is_alone = is_start.copy()
    is_alone[:-1] &= is_start[1:]
    return np.flatnonzero(~is_alone)


def _ordinals(run: Run, rows: Rows, key: SortKey) -> np.ndarray:
    ordinals = _ascending(run, rows, key)
    return ~ordinals if key.is_descending else ordinals


def _ascending(run: Run, rows: Rows, key: SortKey) -> np.ndarray:
    expr = key.expr
    if isinstance(expr, PropertyValue):
        return property_ordinals(run, expr, rows.frame.numbers[expr.variable])
    if key.is_tie_break:
        return number_ordinals(_ties(run, expr, rows.frame), None)
    return array_ordinals(rows.column(run, expr))


def _ties(run: Run, expr: TypedExpr, frame: Frame) -> np.ndarray:
    assert isinstance(expr, Rrf)
    found = rank_ties(run, expr, frame, limit=frame.length)
    assert found is not None
    return found


def _argsort_within(runs: np.ndarray | None, ordinals: np.ndarray) -> np.ndarray:
    """Places in order of the run, which ascends already, and then of the ordinal; stable."""
    if runs is None:
        return argsort(ordinals)
    least = int(ordinals.min())
    bits = (int(ordinals.max()) - least).bit_length()
    if bits + int(runs[-1]).bit_length() > _KEY_BITS:
        return np.lexsort((ordinals, runs))
    return argsort((runs << bits) | (ordinals - least))


def argsort(ordinals: np.ndarray) -> np.ndarray:
    """Places in order; stable. Sorting number and place as one is far cheaper than by reference."""
    length = len(ordinals)
    if length <= _FEW:
        return np.argsort(ordinals, kind="stable")
    least, place_bits = int(ordinals.min()), (length - 1).bit_length()
    excess = (int(ordinals.max()) - least).bit_length() + place_bits - _KEY_BITS
    if excess > 0:
        return _argsort_wide(ordinals, excess)
    packed = ((ordinals - least) << place_bits) | np.arange(length)
    packed.sort()
    packed &= (1 << place_bits) - 1
    return packed


def _argsort_wide(ordinals: np.ndarray, excess: int) -> np.ndarray:
    """Numbers too wide to be sorted with their place: first without their lowest bits."""
    unsigned = ordinals.view(np.uint64) ^ _SIGN
    high = ((unsigned - unsigned.min()) >> np.uint64(excess)).view(np.int64)
    places = argsort(high)
    sorted_high = high.take(places)
    is_start = np.ones(len(places), np.bool_)
    np.not_equal(sorted_high[1:], sorted_high[:-1], out=is_start[1:])
    tied = _tied(is_start)
    if len(tied):
        waiting = places.take(tied)
        runs = np.cumsum(is_start).take(tied)
        places[tied] = waiting.take(np.lexsort((ordinals.take(waiting), runs)))
    return places
