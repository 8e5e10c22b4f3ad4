"""Groups and their aggregates: rows of a match come in portions, one row per group goes out.

Every portion is reduced at once to its groups, and groups of several portions are added up, so that
the rows themselves are never held. What is kept of a group is one of its rows and a few numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.frame import Frame, concat
from omnigraph_core.exec.group import MERGE_BYTES, Groups, group_rows
from omnigraph_core.exec.ordinals import is_kept, plain_numbers, property_ordinals
from omnigraph_core.exec.project import Rows
from omnigraph_core.exec.scalars import arrow_column
from omnigraph_core.exec.tally import count_rows, least_numbers, sum_floats, sum_whole
from omnigraph_core.exec.totals import (
    aggregates_of,
    counts_values,
    is_group_key,
    means_of,
    of_nothing,
    sums_of,
    whole_column,
)
from omnigraph_core.exec.value_counts import ValueCounts
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.typed import Aggregate, AggregateFunction, NodeValue, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.context import Run
    from omnigraph_core.ir.nodes import QueryIR
    from omnigraph_core.query.typed import TypedExpr

_CLAUSE: Final = "return (groups)"
_PORTION_ROWS: Final = 2**18
_MOST_WAITING: Final = 2**18


class _Kind(StrEnum):
    COUNT = "count"
    SUM = "sum"
    LEAST = "least"
    GREATEST = "greatest"


@dataclass(frozen=True, slots=True)
class _Tally:
    """One number that is kept per group. A count of None counts rows."""

    kind: _Kind
    expr: TypedExpr | None = None


_ROWS: Final = _Tally(_Kind.COUNT)


@dataclass(frozen=True, slots=True)
class _Partial:
    """Groups of some of the rows: one row of each, and an array per tally."""

    frame: Frame
    tallies: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> int:
        return self.frame.nbytes + sum(array.nbytes for array in self.tallies)


class Grouping:
    """Takes the rows of a match; gives its groups when all have come."""

    def __init__(self, run: Run, ir: QueryIR) -> None:
        self._run = run
        self._keys = tuple(c.expr for c in ir.columns if is_group_key(c.expr))
        self._variables = mentions(*self._keys)
        self._aggregates = aggregates_of(ir)
        plain = [found for found in self._aggregates if not counts_values(found)]
        self._tallies = tuple(dict.fromkeys(t for found in plain for t in _tallies(found)))
        self._values = {
            found.argument: ValueCounts(run, self._keys, found.argument)
            for found in self._aggregates
            if counts_values(found) and not is_given(found.argument)
        }
        self._waiting: list[_Partial] = []
        self._held = 0
        self._most_waiting = _MOST_WAITING

    def __call__(self, frame: Frame) -> bool:
        for start in range(0, frame.length, _PORTION_ROWS):
            self._run.guard.check()
            is_whole = frame.length <= _PORTION_ROWS
            self._add(frame if is_whole else frame.slice(start, start + _PORTION_ROWS))
        return True

    @property
    def has_groups(self) -> bool:
        """Without group columns there is one group, even of no rows."""
        return bool(self._waiting) or not self._keys

    def rows(self) -> Rows:
        """The groups, of which there are some."""
        if self._waiting:
            self._merge()
            partial = self._waiting[0]
            return Rows(partial.frame, {a: self._result(a, partial) for a in self._aggregates})
        return Rows(Frame(1), {a: of_nothing(a) for a in self._aggregates})

    def _add(self, frame: Frame) -> None:
        groups = group_rows(self._run, Rows(frame), self._keys)
        tallies = tuple(self._tally(tally, frame, groups) for tally in self._tallies)
        for argument, held in self._values.items():
            self._keep_values(held, argument, frame)
        bare = Frame(frame.length, frame.numbers).keeping(self._variables)
        self._hold(_Partial(bare.take(groups.first), tallies))
        if sum(partial.frame.length for partial in self._waiting) > self._most_waiting:
            self._merge()

    def _keep_values(self, held: ValueCounts, argument: TypedExpr, frame: Frame) -> None:
        valid = _validity(self._run, argument, frame)
        wanted = self._variables | mentions(argument)
        bare = Frame(frame.length, frame.numbers).keeping(wanted)
        held.add(bare if valid is None else bare.where(valid))

    def _hold(self, partial: _Partial) -> None:
        self._run.guard.hold(partial.nbytes, _CLAUSE)
        self._held += partial.nbytes
        self._waiting.append(partial)

    def _merge(self) -> None:
        if len(self._waiting) == 1:
            return
        length = sum(partial.frame.length for partial in self._waiting)
        self._run.guard.expect(self._held + MERGE_BYTES * length, _CLAUSE)
        frame = concat([partial.frame for partial in self._waiting])
        groups = group_rows(self._run, Rows(frame), self._keys)
        columns = zip(*(partial.tallies for partial in self._waiting), strict=True)
        tallies = tuple(
            self._add_up(tally, np.concatenate(arrays), groups)
            for tally, arrays in zip(self._tallies, columns, strict=True)
        )
        self._run.guard.release(self._held)
        self._waiting, self._held = [], 0
        self._hold(_Partial(frame.take(groups.first), tallies))
        self._most_waiting = max(_MOST_WAITING, 4 * len(groups.first))

    def _add_up(self, tally: _Tally, array: np.ndarray, groups: Groups) -> np.ndarray:
        if tally.kind is _Kind.COUNT or tally.kind is _Kind.SUM:
            add = sum_floats if array.dtype.kind == "f" else sum_whole
            return add(groups.ids, groups.space, array).take(groups.present)
        return self._extreme(tally, array, groups)

    def _tally(self, tally: _Tally, frame: Frame, groups: Groups) -> np.ndarray:
        if tally.kind is _Kind.COUNT:
            return self._count(tally, frame, groups)
        if tally.kind is _Kind.SUM:
            return self._sum(tally, frame, groups)
        assert isinstance(tally.expr, PropertyValue)
        return self._extreme(tally, frame.numbers[tally.expr.variable], groups)

    def _count(self, tally: _Tally, frame: Frame, groups: Groups) -> np.ndarray:
        weights = frame.weights
        valid = None if tally.expr is None else _validity(self._run, tally.expr, frame)
        if valid is None and weights is None and groups.counts is not None:
            return groups.counts
        if valid is not None:
            weights = valid.astype(np.int64) if weights is None else weights * valid
        return count_rows(groups.ids, groups.space, frame.length, weights).take(groups.present)

    def _sum(self, tally: _Tally, frame: Frame, groups: Groups) -> np.ndarray:
        assert tally.expr is not None
        values = _summands(self._run, tally.expr, frame)
        add = sum_floats if values.dtype.kind == "f" else sum_whole
        return add(groups.ids, groups.space, values, frame.weights).take(groups.present)

    def _extreme(self, tally: _Tally, numbers: np.ndarray, groups: Groups) -> np.ndarray:
        expr = tally.expr
        assert isinstance(expr, PropertyValue)
        ids = groups.ids
        valid = _property_validity(self._run, expr, numbers)
        if valid is not None:
            chosen = np.flatnonzero(valid)
            ids, numbers = _at(ids, chosen), numbers.take(chosen)
        ordinals = property_ordinals(self._run, expr, numbers)
        if tally.kind is _Kind.GREATEST:
            ordinals = ~ordinals
        return least_numbers(ids, groups.space, ordinals, numbers).take(groups.present)

    def _result(self, found: Aggregate, partial: _Partial) -> pa.Array:
        """The aggregate's value for every group."""
        if counts_values(found):
            return self._value_counts(found, partial)
        arrays = dict(zip(self._tallies, partial.tallies, strict=True))
        needed = [arrays[tally] for tally in _tallies(found)]
        match found.function:
            case AggregateFunction.COUNT:
                return whole_column(found, needed[0])
            case AggregateFunction.SUM:
                return sums_of(found, *needed)
            case AggregateFunction.AVG:
                return means_of(found, *needed)
        argument = found.argument
        if is_given(argument):
            return arrow_column(self._run.values.of(argument), found.type, partial.frame.length)
        assert isinstance(argument, PropertyValue)
        return self._run.dense(argument.variable).values(argument.property, needed[0])

    def _value_counts(self, found: Aggregate, partial: _Partial) -> pa.Array:
        argument, length = found.argument, partial.frame.length
        if not is_given(argument):
            return pa.array(self._values[argument].of_groups(partial.frame))
        is_null = self._run.values.of(argument) is None
        return pa.array(np.full(length, 0 if is_null else 1))


def _tallies(found: Aggregate) -> Iterator[_Tally]:
    """What must be kept per group to know an aggregate in the end."""
    expr = found.argument
    count = _ROWS if _is_never_null(expr) else _Tally(_Kind.COUNT, expr)
    match found.function:
        case AggregateFunction.COUNT:
            yield count
        case AggregateFunction.SUM | AggregateFunction.AVG:
            yield _Tally(_Kind.SUM, expr)
            if found.function is AggregateFunction.AVG or count is not _ROWS:
                yield count
        case _ if not is_given(expr):
            is_least = found.function is AggregateFunction.MIN
            yield _Tally(_Kind.LEAST if is_least else _Kind.GREATEST, expr)


def _is_never_null(expr: TypedExpr) -> bool:
    if isinstance(expr, NodeValue):
        return not expr.is_nullable
    if isinstance(expr, PropertyValue):
        # A vector that is still to be made is null, whatever its type says.
        return not expr.type.is_nullable and not expr.type.is_vector
    return is_given(expr) and not expr.type.is_nullable


def _validity(run: Run, expr: TypedExpr, frame: Frame) -> np.ndarray | None:
    """In which rows an expression has a value; None: in all."""
    if _is_never_null(expr):
        return None
    if isinstance(expr, NodeValue):
        return frame.numbers[expr.variable] >= 0
    if isinstance(expr, PropertyValue):
        return _property_validity(run, expr, frame.numbers[expr.variable])
    if is_given(expr):
        is_null = run.values.of(expr) is None
        return np.zeros(frame.length, np.bool_) if is_null else None
    return _column_validity(Rows(frame).column(run, expr))


def _property_validity(run: Run, expr: PropertyValue, numbers: np.ndarray) -> np.ndarray | None:
    dense, name = run.dense(expr.variable), expr.property
    if not is_kept(dense, name, len(numbers)):
        return _column_validity(dense.values(name, numbers))
    known = numbers >= 0
    column = dense.column(name)
    if column.null_count and len(column):
        known &= column.is_valid().to_numpy(zero_copy_only=False).take(numbers)
    return None if known.all() else known


def _column_validity(column: pa.Array) -> np.ndarray | None:
    if not column.null_count:
        return None
    valid: np.ndarray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _summands(run: Run, expr: TypedExpr, frame: Frame) -> np.ndarray:
    """The numbers an expression has, 0 where it has none."""
    if isinstance(expr, PropertyValue):
        dense, numbers = run.dense(expr.variable), frame.numbers[expr.variable]
        if is_kept(dense, expr.property, len(numbers)) and dense.count:
            return _gathered(*dense.numpy(expr.property), numbers)
    values, valid = plain_numbers(Rows(frame).column(run, expr))
    return values if valid is None else np.where(valid, values, values.dtype.type(0))


def _gathered(values: np.ndarray, valid: np.ndarray | None, numbers: np.ndarray) -> np.ndarray:
    if valid is not None and len(numbers) >= len(values):  # the shorter of the two is changed
        values, valid = np.where(valid, values, values.dtype.type(0)), None
    found = values.take(numbers)
    if valid is not None:
        found[~valid.take(numbers)] = 0
    if numbers.min() < 0:
        found[numbers < 0] = 0
    return found


def _at(array: np.ndarray | None, places: np.ndarray) -> np.ndarray | None:
    return None if array is None else array.take(places)
