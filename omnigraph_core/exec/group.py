"""Which rows belong together: equal in every one of some expressions, null equal to null.

Each value becomes a small whole number, the values of a row one number, and numbers that are not
much more than there are rows need no sorting: they are places in an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.exec.ordinals import (
    array_ordinals,
    encoded_codes,
    is_kept,
    plain_tuples,
    property_ordinals,
)
from omnigraph_core.plan.values import is_given
from omnigraph_core.query.typed import EntityKind, NodeValue, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.project import Rows
    from omnigraph_core.query.typed import TypedExpr

_MOST_CODES: Final = 2**62
_SMALL_SPACE: Final = 2**12
_SPACE_PER_ROW: Final = 4
_KEY_BITS: Final = 63
_SHARE_WORTH_CODING: Final = 8
"""Texts of a whole table are coded, and kept so, once an eighth of its rows is asked for."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A whole number per row, from 0 to below `space`: equal exactly where the values are."""

    values: np.ndarray
    space: int


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows by group."""

    ids: np.ndarray | None
    """The group of every row, from 0 to below `space`; None when all rows are one group."""
    space: int
    present: np.ndarray
    """The ids that rows have, each once."""
    first: np.ndarray
    """For each of `present`, the place of one of its rows."""


def group_rows(run: Run, rows: Rows, exprs: Sequence[TypedExpr]) -> Groups:
    """The groups of rows; there is at least one row."""
    return groups_of(combined_codes(run, rows, exprs), rows.length)


def distinct_places(run: Run, rows: Rows, exprs: Sequence[TypedExpr]) -> np.ndarray:
    """Ascending places of rows: of those with equal values, the first."""
    return first_places(combined_codes(run, rows, exprs), rows.length)


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
    if isinstance(expr, NodeValue):
        return _numbers(run, rows, expr.variable, is_nullable=expr.is_nullable)
    if isinstance(expr, PropertyValue):
        return _property_codes(run, rows, expr)
    return array_codes(rows.column(run, expr))


def _numbers(run: Run, rows: Rows, variable: str, *, is_nullable: bool) -> Codes:
    numbers, count = rows.frame.numbers[variable], run.dense(variable).count
    return Codes(numbers + 1, count + 1) if is_nullable else Codes(numbers, count)


def _property_codes(run: Run, rows: Rows, expr: PropertyValue) -> Codes:
    if _is_identifying(run, expr):
        return _numbers(run, rows, expr.variable, is_nullable=expr.type.is_nullable)
    numbers, dense = rows.frame.numbers[expr.variable], run.dense(expr.variable)
    name, type = expr.property, expr.type
    if type.is_list or type.is_vector:
        return array_codes(dense.values(name, numbers))
    if not type.is_string:
        return _shifted(property_ordinals(run, expr, numbers))
    asked = len(numbers)
    if not (asked * _SHARE_WORTH_CODING >= dense.count > 0 and is_kept(dense, name, asked)):
        return array_codes(dense.values(name, numbers))
    codes, texts = dense.codes(name)
    return _text_codes(codes, len(texts), numbers, is_nullable=type.is_nullable)


def _is_identifying(run: Run, expr: PropertyValue) -> bool:
    """Whether no two rows of the table share a value, so that the row's number will do."""
    if expr.property == "id":
        return True
    kind, type_name = run.read.types[expr.variable]
    return kind is EntityKind.NODE and run.graph.catalog.nodes[type_name].key == (expr.property,)


def _text_codes(
    codes: np.ndarray, distinct: int, numbers: np.ndarray, *, is_nullable: bool
) -> Codes:
    found = codes.take(numbers)
    if not is_nullable:
        return Codes(found, distinct)
    found += 1
    if numbers.min() < 0:
        found[numbers < 0] = 0
    return Codes(found, distinct + 1)


def _shifted(ordinals: np.ndarray) -> Codes:
    """Ordinals counted from the least of them."""
    if not len(ordinals):
        return Codes(ordinals, 1)
    least = int(ordinals.min())
    space = int(ordinals.max()) - least + 1
    if space > _MOST_CODES:
        return dense_codes(ordinals)
    return Codes(ordinals - least if least else ordinals, space)


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


def dense_codes(values: np.ndarray) -> Codes:
    """The same rows apart, with as few codes as possible."""
    encoded = pa.array(values).dictionary_encode()
    return Codes(encoded.indices.to_numpy(), max(1, len(encoded.dictionary)))


def combine(first: Codes, second: Codes) -> Codes:
    """Codes of pairs.

    >>> combine(Codes(np.array([0, 1]), 2), Codes(np.array([2, 0]), 3)).values.tolist()
    [2, 3]
    """
    if first.space * second.space > _MOST_CODES:
        first, second = dense_codes(first.values), dense_codes(second.values)
    space = first.space * second.space
    dtype = np.dtype(np.int32 if space < 2**31 else np.int64)
    values: np.ndarray = first.values.astype(dtype) * dtype.type(second.space)
    return Codes(values + second.values.astype(dtype, copy=False), space)


def groups_of(codes: Codes | None, length: int) -> Groups:
    """Groups by code."""
    if codes is None:
        only = np.zeros(1, np.intp)
        return Groups(None, 1, only, only)
    if _is_small(codes, length):
        place_of = np.full(codes.space, -1, np.int32)
        place_of[codes.values] = np.arange(length, dtype=np.int32)
        present = np.flatnonzero(place_of >= 0)
        return Groups(codes.values, codes.space, present, place_of.take(present))
    places, is_start = _sorted_by_code(codes, length)
    ids = np.empty(length, np.int32)
    ids[places] = np.cumsum(is_start, dtype=np.int32) - np.int32(1)
    first = places[is_start]
    return Groups(ids, len(first), np.arange(len(first)), first)


def first_places(codes: Codes | None, length: int) -> np.ndarray:
    """Ascending places of rows: of those with equal codes, the first."""
    if codes is None:
        return np.arange(min(length, 1))
    if _is_small(codes, length):
        place_of = np.full(codes.space, -1, np.int32)
        # Of several places written for a code the last one stays, so the first comes last.
        place_of[codes.values[::-1]] = np.arange(length - 1, -1, -1, dtype=np.int32)
        return np.sort(place_of[place_of >= 0])
    places, is_start = _sorted_by_code(codes, length)
    return np.sort(places[is_start])


def _is_small(codes: Codes, length: int) -> bool:
    return codes.space <= max(_SMALL_SPACE, _SPACE_PER_ROW * length)


def _sorted_by_code(codes: Codes, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Places by code and then by place, and where among them a new code begins."""
    place_bits = max(length - 1, 1).bit_length()
    if (codes.space - 1).bit_length() + place_bits > _KEY_BITS:
        codes = dense_codes(codes.values)
    keys = codes.values.astype(np.int64)
    keys <<= place_bits
    keys |= np.arange(length)
    keys.sort()
    places = keys & ((1 << place_bits) - 1)
    keys >>= place_bits
    is_start = np.ones(length, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_start[1:])
    return places, is_start
