"""Rows of one table that satisfy conditions on them alone: chosen by id, by columns or by Lance.

Whichever way is taken, what comes out is what comparing every row would find. A way is chosen by
what it costs: an id is looked up, columns that fit in memory are compared whole, and only where one
does not fit the table itself is asked, by a filter that is checked again on what it lets through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.evaluate import is_keepable, table_truth, truth, try_codes
from omnigraph_core.exec.frame import Frame
from omnigraph_core.exec.text_places import try_numbers_with
from omnigraph_core.ids import key_id
from omnigraph_core.plan.bounds import fit_bound
from omnigraph_core.plan.predicates import NO_ROWS, lance_filter
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import (
    All,
    Compare,
    EntityKind,
    IsIn,
    PropertyValue,
    TypedOp,
)
from omnigraph_core.types import Scalar
from omnigraph_core.values import canonical_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.typed import TypedCondition
    from omnigraph_core.topology.dense import DenseTable
    from omnigraph_core.values import Value

_ID: Final = ("id",)
_PORTION: Final = 65_536
"""Rows whose columns are fetched at once when they are checked one portion after another."""
_FEW_TEXTS: Final = 64
"""Texts that are found faster one by one."""
_FEW_SHARE: Final = 32
"""One row in so many is fetched for less than a filter over all rows costs."""


def selected(run: Run, variable: str, conditions: Sequence[TypedCondition]) -> np.ndarray:
    """The ascending numbers, int32, of the rows that satisfy all conditions on a variable."""
    dense = run.dense(variable)
    parts = _conjuncts(conditions)
    if not parts:
        return dense.live_numbers()
    found = _try_looked_up(run, variable, dense, parts)
    if found is not None:
        return found
    kept, large = _divided(dense, parts)
    if large:
        return _searched(run, variable, dense, kept, large)
    return np.flatnonzero(_mask(run, variable, kept)).astype(np.int32)


def node_mask(run: Run, variable: str, conditions: Sequence[TypedCondition]) -> np.ndarray | None:
    """Which rows of a variable's whole table satisfy all conditions, by number; None for all.

    The mask is not to be written to.
    """
    parts = _conjuncts(conditions)
    if not parts:
        return None
    dense = run.dense(variable)
    found = _try_looked_up(run, variable, dense, parts)
    if found is None:
        kept, large = _divided(dense, parts)
        if not large:
            return _mask(run, variable, kept)
        found = _searched(run, variable, dense, kept, large)
    mask = np.zeros(dense.extent, np.bool_)
    mask[found] = True
    return mask


def _conjuncts(conditions: Sequence[TypedCondition]) -> tuple[TypedCondition, ...]:
    """The same conditions with every `and` taken apart."""
    if not any(isinstance(condition, All) for condition in conditions):
        return tuple(conditions)
    parts: list[TypedCondition] = []
    for condition in conditions:
        parts += _conjuncts(condition.operands) if isinstance(condition, All) else (condition,)
    return tuple(parts)


# By id or text


def _try_looked_up(
    run: Run, variable: str, dense: DenseTable, conditions: tuple[TypedCondition, ...]
) -> np.ndarray | None:
    """The rows, when a few follow from a condition without comparing the others."""
    found = _try_by_id(run, variable, dense, conditions)
    return _try_by_text(run, variable, dense, conditions) if found is None else found


def _try_by_id(
    run: Run, variable: str, dense: DenseTable, conditions: tuple[TypedCondition, ...]
) -> np.ndarray | None:
    """The rows, when their ids follow from the conditions; None if they do not."""
    key = _key_of(run, variable)
    for place, condition in enumerate(conditions):
        ids = _try_ids(condition, key, run.values)
        if ids is not None:
            rest = conditions[:place] + conditions[place + 1 :]
            return _satisfying(run, variable, _numbers_of(dense, ids), rest)
    if len(key) > 1:
        id = _try_key_id(conditions, key, run.values)
        if id is not None:
            return _satisfying(run, variable, _numbers_of(dense, (id,)), conditions)
    return None


def _key_of(run: Run, variable: str) -> tuple[str, ...]:
    kind, type_name = run.read.types[variable]
    if kind is EntityKind.EDGE:
        return ()
    return run.graph.catalog.nodes[type_name].key or ()


def _try_ids(
    condition: TypedCondition, key: tuple[str, ...], values: Values
) -> tuple[str, ...] | None:
    """The only ids a row that satisfies the condition can have; every row with one does."""
    equality = _try_equality(condition, values)
    if equality is None:
        return None
    column, options = equality
    if column.property != "id" and key != (column.property,):
        return None
    if column.type.is_string:  # such values are their own text
        given = options if None not in options else tuple(o for o in options if o is not None)
        return cast("tuple[str, ...]", given)
    texts = (key_text(option, column.type.scalar) for option in options)
    return tuple(text for text in texts if text is not None)


def _try_equality(
    condition: TypedCondition, values: Values
) -> tuple[PropertyValue, tuple[Value, ...]] | None:
    """A column and the values of which it has to equal one, however that is written."""
    if isinstance(condition, Compare) and condition.op is TypedOp.EQ:
        left, right = condition.left, condition.right
        if is_given(left):
            left, right = right, left
        if isinstance(left, PropertyValue) and is_given(right):
            return left, (values.of(right),)
    elif isinstance(condition, IsIn) and isinstance(condition.item, PropertyValue):
        options = values.of(condition.options)
        return condition.item, options if isinstance(options, tuple) else ()
    return None


def key_text(value: Value, scalar: Scalar) -> str | None:
    """A key value as it stands in ids; None if no value of the key's type equals it."""
    if isinstance(value, str) or value is None:
        return value
    assert not isinstance(value, tuple)
    if not scalar.is_numeric:
        return canonical_text(value)
    assert isinstance(value, int | float)
    fitted = fit_bound(TypedOp.EQ, value, scalar)
    if isinstance(fitted, bool):
        return None
    number = fitted[1]
    # Of 32 bits the shortest text that means the number, not that of its 64 bits.
    return canonical_text(float(str(np.float32(number))) if scalar is Scalar.F32 else number)


def _try_key_id(
    conditions: tuple[TypedCondition, ...], key: tuple[str, ...], values: Values
) -> str | None:
    """The id of the one row that has the key of several columns the conditions ask for."""
    texts: dict[str, str | None] = {}
    for condition in conditions:
        equality = _try_equality(condition, values)
        if equality is not None and len(equality[1]) == 1:
            column, (value,) = equality
            texts[column.property] = key_text(value, column.type.scalar)
    found = [texts.get(name) for name in key]
    known = [text for text in found if text is not None]
    return key_id(known) if len(known) == len(key) else None


def _numbers_of(dense: DenseTable, ids: tuple[str, ...]) -> np.ndarray:
    if len(ids) == 1:
        number = dense.number_of(ids[0])
        return np.array([number] if number >= 0 else [], np.int32)
    if not ids:
        return np.zeros(0, np.int32)
    numbers = np.unique(dense.numbers_of(pa.array(ids, pa.utf8())))
    return numbers[numbers >= 0]


def _try_by_text(
    run: Run, variable: str, dense: DenseTable, conditions: tuple[TypedCondition, ...]
) -> np.ndarray | None:
    """The rows, when one text has to be that of a column in which few rows share one."""
    for place, condition in enumerate(conditions):
        equality = _try_equality(condition, run.values)
        if equality is None or not equality[0].type.is_string or len(equality[1]) > _FEW_TEXTS:
            continue
        name = equality[0].property
        if try_codes(run, dense, name) is not None:
            continue
        texts = (text for text in equality[1] if isinstance(text, str))
        numbers = try_numbers_with(dense, name, texts)
        if numbers is not None:
            rest = conditions[:place] + conditions[place + 1 :]
            return _satisfying(run, variable, numbers, rest)
    return None


def _satisfying(
    run: Run, variable: str, numbers: np.ndarray, conditions: Sequence[TypedCondition]
) -> np.ndarray:
    """Those of the rows that satisfy the conditions, checked one portion after another."""
    if not conditions or not len(numbers):
        return numbers
    kept = [_checked(run, variable, portion, conditions) for portion in _portions(run, numbers)]
    return kept[0] if len(kept) == 1 else np.concatenate(kept)


def _portions(run: Run, numbers: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(numbers), _PORTION):
        run.guard.check()
        yield numbers[start : start + _PORTION]


def _checked(
    run: Run, variable: str, numbers: np.ndarray, conditions: Sequence[TypedCondition]
) -> np.ndarray:
    for condition in conditions:
        numbers = numbers[truth(run, condition, Frame(len(numbers), {variable: numbers}))]
        if not len(numbers):
            break
    return numbers


# By columns, or by Lance


def _divided(
    dense: DenseTable, conditions: tuple[TypedCondition, ...]
) -> tuple[tuple[TypedCondition, ...], tuple[TypedCondition, ...]]:
    """The conditions on columns that can be kept in memory, and the others."""
    kept: list[TypedCondition] = []
    large: list[TypedCondition] = []
    for part in conditions:
        (kept if is_keepable(dense, part) else large).append(part)
    return tuple(kept), tuple(large)


def _mask(run: Run, variable: str, conditions: tuple[TypedCondition, ...]) -> np.ndarray:
    mask = table_truth(run, variable, conditions[0])
    for condition in conditions[1:]:
        run.guard.check()
        mask = mask & table_truth(run, variable, condition)
    return run.dense(variable).clear_gaps(mask)


def _searched(
    run: Run,
    variable: str,
    dense: DenseTable,
    kept: tuple[TypedCondition, ...],
    large: tuple[TypedCondition, ...],
) -> np.ndarray:
    """The rows when some column is too large for memory: only few of its values are fetched."""
    mask = _mask(run, variable, kept) if kept else None
    if mask is not None and np.count_nonzero(mask) * _FEW_SHARE <= dense.count:
        return _satisfying(run, variable, np.flatnonzero(mask).astype(np.int32), large)
    where = lance_filter(All(large), run.values)
    if where == NO_ROWS:
        return np.zeros(0, np.int32)
    found = dense.find_where(where)
    if mask is not None:
        found = found[mask.take(found)]
    return _satisfying(run, variable, found, large)
