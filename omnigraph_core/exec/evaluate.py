"""Expressions and conditions over the rows of a match: frames come in, columns and truths go out.

Values are fetched by dense number and only here; -1 has no values. A condition on one variable is
decided once per row of its table where that is less work than once per row of the frame.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.exec.comparisons import Numbers, as_truth, everywhere
from omnigraph_core.exec.conditions import Coded, Operands, truth_of
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.rank import rank_values
from omnigraph_core.exec.scalars import arrow_array
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.mentions import mentions
from omnigraph_core.query.result_schema import node_object_type
from omnigraph_core.query.typed import (
    All,
    Any,
    Bm25,
    Compare,
    Holds,
    IsIn,
    IsNull,
    Nearest,
    NodeValue,
    PropertyValue,
    TextMatch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from omnigraph_core.exec.context import Run
    from omnigraph_core.query.typed import TypedCondition, TypedExpr
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.types import PropType
    from omnigraph_core.values import Value

    Places: TypeAlias = np.ndarray | slice
    """Numbers of rows, or a stretch of all numbers."""

_PORTION: Final = 2**18
"""Rows of a table that are compared at once."""
_FEW_ROWS: Final = 1_024
"""Rows up to which texts are compared as they are, without asking whether they repeat."""
_SAMPLE: Final = 4_096
_REPEATS: Final = 4
"""Times a text occurs on average for its column to be compared by codes."""


def column_of(run: Run, expr: TypedExpr, frame: Frame) -> pa.Array:
    """The values of an expression for the rows of a frame, one after another.

    A rank is null for a row it does not reach. `rrf` depends on the whole match: see `exec.rank`.
    """
    if isinstance(expr, PropertyValue):
        return run.dense(expr.variable).values(expr.property, frame.numbers[expr.variable])
    if is_given(expr):
        return _repeated(run.values.of(expr), expr.type, frame.length)
    return _computed(run, expr, frame.numbers, frame.length)


def truth(run: Run, condition: TypedCondition, frame: Frame) -> np.ndarray:
    """Which rows of a frame satisfy a condition; unknown is false."""
    if isinstance(condition, All) and condition.operands:
        parts = condition.operands
        combined = truth(run, parts[0], frame)
        for part in parts[1:]:
            combined &= truth(run, part, frame)
        return combined
    variable = _sole_variable(condition)
    if variable is not None:
        dense = run.dense(variable)
        if 0 < dense.count <= frame.length and is_keepable(dense, condition):
            return _gathered(run, condition, variable, frame.numbers[variable])
    return truth_of(condition, _Rows(run, frame.numbers, frame.length), run.values)


def table_truth(run: Run, variable: str, condition: TypedCondition) -> np.ndarray:
    """Which numbers of a variable's table satisfy a condition on it alone; not to be changed.

    Where there is no row, anything: those are not asked for.
    """
    key = ("table truth", variable, id(condition))
    known: tuple[TypedCondition, np.ndarray] | None = run.memo.get(key)  # type: ignore[assignment]
    if known is not None:
        return known[1]
    dense = run.dense(variable)
    missing = {name for name in columns_read(condition) if not dense.is_resident(name)}
    if len(missing) > 1:
        dense.preload(tuple(missing))
    parts = [_portion_truth(run, variable, condition, rows) for rows in _portions(run, dense)]
    found = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.bool_), *parts])
    found.flags.writeable = False
    run.memo[key] = (condition, found)  # with the condition, which keeps its id from being reused
    return found


def is_keepable(dense: DenseTable, condition: TypedCondition) -> bool:
    """Whether the columns a condition reads are, or may be, in memory as a whole."""
    return all(dense.is_resident(name) or dense.fits(name) for name in columns_read(condition))


def columns_read(condition: TypedCondition) -> Iterator[str]:
    """The properties a condition compares, maybe repeatedly; not those it searches for words."""
    match condition:
        case Compare(left, _, right):
            operands: tuple[TypedExpr, ...] = (left, right)
        case IsIn(operand) | IsNull(operand) | Holds(operand):
            operands = (operand,)
        case All(parts) | Any(parts):
            for part in parts:
                yield from columns_read(part)
            return
    for operand in operands:
        if isinstance(operand, PropertyValue):
            yield operand.property


def try_codes(run: Run, dense: DenseTable, name: str) -> tuple[np.ndarray, pa.Array] | None:
    """A column in memory as codes, if its texts repeat often enough to gain by it."""
    if not dense.count or not dense.is_resident(name):
        return None
    key = ("repeats", dense.key_of(name))
    is_repeating = run.graph.cache.get(key, lambda: _is_repeating(dense, name), lambda _: 256)
    return dense.codes(name) if is_repeating else None


def _portions(run: Run, dense: DenseTable) -> Iterator[slice]:
    for start in range(0, dense.extent, _PORTION):
        run.guard.check()
        yield slice(start, min(start + _PORTION, dense.extent))


def _portion_truth(run: Run, variable: str, condition: TypedCondition, rows: slice) -> np.ndarray:
    return truth_of(condition, _Rows(run, {variable: rows}, rows.stop - rows.start), run.values)


def _sole_variable(condition: TypedCondition) -> str | None:
    if isinstance(condition, Compare) and is_given(condition.right):
        left = condition.left
        if isinstance(left, PropertyValue):
            return left.variable
    variables = mentions(condition)
    return next(iter(variables)) if len(variables) == 1 else None


def _gathered(
    run: Run, condition: TypedCondition, variable: str, numbers: np.ndarray
) -> np.ndarray:
    """The truth of a condition for rows of a table, from its truth for the whole table."""
    found = table_truth(run, variable, condition).take(numbers)
    if _has_null(numbers):
        nothing = _Rows(run, {variable: np.array([-1], np.int32)}, 1)
        found[numbers < 0] = truth_of(condition, nothing, run.values)[0]
    return found


class _Rows(Operands):
    """Rows of a match, or a stretch of one table."""

    def __init__(self, run: Run, numbers: Mapping[str, Places], length: int) -> None:
        # Not a method: rows that hold themselves would be freed late, and they are large.
        super().__init__(length, partial(_fetched, run, numbers, length))
        self._run = run
        self._numbers = numbers

    def try_numbers(self, expr: TypedExpr) -> Numbers | None:
        if not isinstance(expr, PropertyValue) or not _is_number(expr.type):
            return None
        dense, numbers = self._run.dense(expr.variable), self._numbers[expr.variable]
        if isinstance(numbers, slice):
            values, valid = dense.numpy(expr.property)
            return Numbers(values[numbers], None if valid is None else valid[numbers])
        if not dense.count or not dense.is_resident(expr.property):
            return None
        values, valid = dense.numpy(expr.property)
        chosen = None if valid is None else valid.take(numbers)
        if _has_null(numbers):
            present = numbers >= 0
            chosen = present if chosen is None else chosen & present
        return Numbers(values.take(numbers), chosen)

    def try_holding(self, expr: TypedExpr) -> np.ndarray | None:
        if not isinstance(expr, TextMatch):
            return None
        hits = _text_hits(self._run, expr)
        if hits is None:
            return everywhere(self.length, is_true=False)
        return _at(hits, self._numbers[expr.field.variable])

    def try_coded(self, expr: TypedExpr) -> Coded | None:
        if not isinstance(expr, PropertyValue) or not expr.type.is_string:
            return None
        if self.length <= _FEW_ROWS:
            return None
        known = try_codes(self._run, self._run.dense(expr.variable), expr.property)
        return None if known is None else self._coded(known, expr)

    def try_pair(self, left: TypedExpr, right: TypedExpr) -> tuple[np.ndarray, np.ndarray] | None:
        if not isinstance(left, PropertyValue) or not isinstance(right, PropertyValue):
            return None
        if left.property != right.property:
            return None
        if self._run.dense(left.variable) is not self._run.dense(right.variable):
            return None
        if left.property == "id":
            a, b = self._numbers[left.variable], self._numbers[right.variable]
            return None if isinstance(a, slice) or isinstance(b, slice) else (a, b)
        first, second = self.try_coded(left), self.try_coded(right)
        return None if first is None or second is None else (first.codes, second.codes)

    def _coded(self, known: tuple[np.ndarray, pa.Array], expr: PropertyValue) -> Coded:
        codes, distinct = known
        numbers = self._numbers[expr.variable]
        if isinstance(numbers, slice):
            return Coded(codes[numbers], distinct)
        chosen = codes.take(numbers)
        if _has_null(numbers):
            chosen[numbers < 0] = -1
        return Coded(chosen, distinct)


def _fetched(run: Run, numbers: Mapping[str, Places], length: int, expr: TypedExpr) -> pa.Array:
    """The values of an expression in rows of a match, or in a stretch of one table."""
    if isinstance(expr, PropertyValue):
        dense, places = run.dense(expr.variable), numbers[expr.variable]
        if isinstance(places, slice):
            return dense.values(expr.property, None).slice(places.start, length)
        return dense.values(expr.property, places)
    return _computed(run, expr, numbers, length)


def _computed(run: Run, expr: TypedExpr, numbers: Mapping[str, Places], length: int) -> pa.Array:
    """What is no property and no given value."""
    match expr:
        case NodeValue(variable=variable):
            return _objects(run, expr, _spelled(numbers[variable]))
        case TextMatch(field=field):
            return _text_column(run, expr, numbers[field.variable], length)
        case Nearest(field=field) | Bm25(field=field):
            rows = Frame(length, {field.variable: _spelled(numbers[field.variable])})
            scores = rank_values(run, expr, rows, limit=length)  # which concerns `rrf` alone
            return pa.array(scores, mask=np.isnan(scores))
        case _:
            raise InvariantBroken(f"a row of a match has no value for {expr}")


def _spelled(places: Places) -> np.ndarray:
    if isinstance(places, slice):
        return np.arange(places.start, places.stop, dtype=np.int32)
    return places


def _repeated(value: Value, type: PropType, length: int) -> pa.Array:
    one = arrow_array([value], type)
    return pa.repeat(one[0], length) if length > 1 else one.slice(0, length)


def _objects(run: Run, expr: NodeValue, numbers: np.ndarray) -> pa.StructArray:
    """Nodes as they are shown: `id` and every property but Blobs and Vectors."""
    dense = run.dense(expr.variable)
    shown = node_object_type(run.graph.catalog.nodes[expr.type_name])
    if len(numbers) > _FEW_ROWS:
        dense.preload(tuple(field.name for field in shown))
    columns = [dense.values(field.name, numbers) for field in shown]
    is_null = pa.array(numbers < 0) if _has_null(numbers) else None
    return pa.StructArray.from_arrays(columns, fields=list(shown), mask=is_null)


def _text_column(run: Run, expr: TextMatch, numbers: Places, length: int) -> pa.BooleanArray:
    """Whether texts match: null where there is no text, or nothing to look for."""
    hits = _text_hits(run, expr)
    if hits is None:
        return pa.nulls(length, pa.bool_())
    is_text = _at(_has_text(run, expr.field), numbers)
    return pa.array(_at(hits, numbers), mask=~is_text)


def _text_hits(run: Run, expr: TextMatch) -> np.ndarray | None:
    """Which rows of the table match; None when what to look for, or how, is null."""
    query = _given(run, expr.query)
    edits = 0 if expr.max_edits is None else _given(run, expr.max_edits)
    if not isinstance(query, str) or not isinstance(edits, int):
        return None
    key = ("text hits", expr)
    if (known := run.memo.get(key)) is None:
        field, check = expr.field, run.guard.check
        words = run.graph.words(run.dense(field.variable), field.property, check)
        known = run.memo[key] = words.matching(expr.function, query, edits)
    assert isinstance(known, np.ndarray)
    return known


def _given(run: Run, expr: TypedExpr) -> Value:
    if not is_given(expr):
        raise InvariantBroken(f"what a search looks for is known before the first row, not {expr}")
    return run.values.of(expr)


def _has_text(run: Run, field: PropertyValue) -> np.ndarray:
    """Which rows of the table have a text at all: found once in a run."""
    key = ("has text", field)
    if (known := run.memo.get(key)) is None:
        known = run.memo[key] = _find_texts(run.dense(field.variable), field.property)
    assert isinstance(known, np.ndarray)
    return known


def _find_texts(dense: DenseTable, name: str) -> np.ndarray:
    if not dense.table.schema.field(name).nullable:
        return everywhere(dense.extent, is_true=True)
    if dense.is_resident(name) or dense.fits(name):
        return as_truth(dense.column(name).is_valid())
    found = everywhere(dense.extent, is_true=False)
    found[dense.find_where(f"`{name}` IS NOT NULL")] = True
    return found


def _at(truth: np.ndarray, numbers: Places) -> np.ndarray:
    """What is true of a table's rows, for those with these numbers; false for none at all."""
    if isinstance(numbers, slice):
        return truth[numbers].copy()
    if not len(truth):
        return everywhere(len(numbers), is_true=False)
    found = truth.take(numbers)
    if _has_null(numbers):
        found &= numbers >= 0
    return found


def _is_repeating(dense: DenseTable, name: str) -> bool:
    """Asks a sample first: codes of texts that do not repeat are a waste."""
    column = dense.column(name)
    places = np.arange(0, dense.extent, max(1, dense.extent // _SAMPLE), dtype=np.int64)
    if len(column.take(pa.array(places)).unique()) * 2 > len(places):
        return False
    return len(dense.codes(name)[1]) * _REPEATS <= dense.count


def _has_null(numbers: np.ndarray) -> bool:
    return bool(len(numbers)) and bool(numbers.min() < 0)


def _is_number(type: PropType) -> bool:
    return not (type.is_list or type.is_string or type.is_vector or type.is_blob)
