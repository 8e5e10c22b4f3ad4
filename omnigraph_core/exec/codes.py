"""Values as small whole numbers: equal exactly where the values are, null being one of the values.

Codes of a whole column are kept beside it, so that those of rows are looked up by number, and mean
the same from portion to portion. Codes of loose values mean nothing beyond one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.ordinals import (
    array_ordinals,
    encoded_codes,
    float_bits,
    is_due,
    plain_tuples,
)
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import EntityKind, NodeValue, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.project import Rows
    from omnigraph_core.query.typed import TypedExpr
    from omnigraph_core.topology.dense import DenseTable

MOST_CODES: Final = 2**62
_MOST_SPREAD: Final = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Codes:
    """A whole number per row, from 0 to below `space`."""

    values: np.ndarray
    space: int


@dataclass(frozen=True, slots=True)
class Coder:
    """Codes of the rows of a table by their number."""

    variable: str
    space: int
    by_number: np.ndarray | None
    """With the code of null at the end, where -1 points; None when the numbers are codes."""
    is_nullable: bool = False
    """Whether -1 may be among numbers that are codes."""

    def codes(self, numbers: np.ndarray) -> np.ndarray:
        if self.by_number is not None:
            return self.by_number.take(numbers)
        return numbers + 1 if self.is_nullable else numbers


def combined_codes(run: Run, rows: Rows, exprs: Sequence[TypedExpr]) -> Codes | None:
    """One code per row for the values of all the expressions; None when they tell none apart."""
    combined: Codes | None = None
    for expr in exprs:
        if is_given(expr):
            continue
        codes = _codes(run, rows, expr)
        combined = codes if combined is None else combine(combined, codes)
    return combined


def _codes(run: Run, rows: Rows, expr: TypedExpr) -> Codes:
    coder = try_coder(run, expr, rows.length)
    if coder is not None:
        return Codes(coder.codes(rows.frame.numbers[coder.variable]), coder.space)
    return array_codes(rows.column(run, expr))


def try_coder(run: Run, expr: TypedExpr, asked: int) -> Coder | None:
    """The way from numbers to codes; None if it is not worth its making for so many rows."""
    if isinstance(expr, NodeValue):
        return _by_itself(run, expr.variable, is_nullable=expr.is_nullable)
    if not isinstance(expr, PropertyValue):
        return None
    if _is_identifying(run, expr):
        return _by_itself(run, expr.variable, is_nullable=expr.type.is_nullable)
    if expr.type.is_list or expr.type.is_vector:
        return None
    codes = _column_codes(run, expr, asked)
    return None if codes is None else Coder(expr.variable, codes.space, codes.values)


def _by_itself(run: Run, variable: str, *, is_nullable: bool) -> Coder:
    return Coder(variable, run.dense(variable).extent + 1, None, is_nullable)


def _is_identifying(run: Run, expr: PropertyValue) -> bool:
    """Whether no two rows of the table share a value, so that the row's number will do."""
    if expr.property == "id":
        return True
    kind, type_name = run.read.types[expr.variable]
    return kind is EntityKind.NODE and run.graph.catalog.nodes[type_name].key == (expr.property,)


def _column_codes(run: Run, expr: PropertyValue, asked: int) -> Codes | None:
    dense, name = run.dense(expr.variable), expr.property
    cache, key = run.graph.cache, ("column codes", dense.identity, name)
    found = cache.peek(key)
    if isinstance(found, Codes):
        return found
    if not is_due(run, dense, name, asked):
        return None

    def build() -> Codes:
        return _text_codes(dense, name) if expr.type.is_string else _number_codes(dense, name)

    series = ("column codes", dense.place, name)
    return cache.get_of_series(series, key, build, lambda codes: codes.values.nbytes)


def _text_codes(dense: DenseTable, name: str) -> Codes:
    codes, texts = dense.codes(name)
    return Codes(_after_null(codes, None), len(texts) + 1)


def _number_codes(dense: DenseTable, name: str) -> Codes:
    values, valid = dense.numpy(name)
    if values.dtype.kind == "f":
        values = float_bits(values)
    elif values.dtype.kind == "b":
        values = values.view(np.int8)
    least = values.min()
    spread = int(values.max()) - int(least)
    if spread < _MOST_SPREAD:
        shifted = (values - least).astype(np.int32)
        return Codes(_after_null(shifted, valid), spread + 2)
    codes = dense_codes(values)
    return Codes(_after_null(codes.values, valid), codes.space + 1)


def _after_null(codes: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
    """Codes by number, one up: 0 is null, and at the end once more for no row."""
    by_number = np.zeros(len(codes) + 1, np.int32)
    np.add(codes, 1, out=by_number[:-1], casting="same_kind")
    if valid is not None:
        by_number[:-1][~valid] = 0
    return by_number


def array_codes(column: pa.Array) -> Codes:
    """The codes of any column."""
    type = column.type
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        encoded = column.dictionary_encode()
        return Codes(encoded_codes(encoded) + 1, len(encoded.dictionary) + 1)
    if pa.types.is_list(type) or pa.types.is_fixed_size_list(type):
        known: dict[object, int] = {}
        codes = [known.setdefault(found, len(known)) for found in plain_tuples(column)]
        return Codes(np.array(codes, np.int64), max(1, len(known)))
    return _shifted(array_ordinals(column))


def _shifted(ordinals: np.ndarray) -> Codes:
    """Ordinals counted from the least of them."""
    if not len(ordinals):
        return Codes(ordinals, 1)
    least = int(ordinals.min())
    space = int(ordinals.max()) - least + 1
    if space > MOST_CODES:
        return dense_codes(ordinals)
    return Codes(ordinals - least, space)


def dense_codes(values: np.ndarray) -> Codes:
    """The same rows apart, with as few codes as possible."""
    encoded = pa.array(values).dictionary_encode()
    return Codes(encoded.indices.to_numpy(), max(1, len(encoded.dictionary)))


def combine(first: Codes, second: Codes) -> Codes:
    """Codes of pairs.

    >>> combine(Codes(np.array([0, 1]), 2), Codes(np.array([2, 0]), 3)).values.tolist()
    [2, 3]
    """
    if first.space * second.space > MOST_CODES:
        first, second = dense_codes(first.values), dense_codes(second.values)
    space = first.space * second.space
    dtype = np.dtype(np.int32 if space < 2**31 else np.int64)
    values: np.ndarray = first.values.astype(dtype) * dtype.type(second.space)
    return Codes(values + second.values.astype(dtype, copy=False), space)
