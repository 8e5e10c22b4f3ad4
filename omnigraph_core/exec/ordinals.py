"""Values as whole numbers of the same order, so that sorting and comparing is work on integers.

A column comes in, or a property of numbered rows; int64 of the same length goes out, smaller where
the value is smaller, equal where it is equal, and below all others where there is none. Ordinals
of two calls have nothing to do with each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.exec.scalars import whole_numbers

if TYPE_CHECKING:
    from omnigraph_core.exec.context import Run
    from omnigraph_core.query.typed import PropertyValue
    from omnigraph_core.topology.dense import DenseTable

_LEAST: Final = np.int64(np.iinfo(np.int64).min)
_GREATEST: Final = np.int64(np.iinfo(np.int64).max)
_SIGN: Final = np.uint64(1 << 63)
_FEW: Final = 1_024
_FEW_TEXTS: Final = 512


def property_ordinals(run: Run, expr: PropertyValue, numbers: np.ndarray) -> np.ndarray:
    """The ordinals of a property of these rows, -1 being no row."""
    dense, name, type = run.dense(expr.variable), expr.property, expr.type
    if type.is_string:
        return _text_ordinals(run, dense, name, numbers)
    if type.is_list or type.is_vector or not is_kept(dense, name, len(numbers)):
        return array_ordinals(dense.values(name, numbers))
    return number_ordinals(*gather_numbers(dense, expr, numbers))


def is_kept(dense: DenseTable, name: str, asked: int) -> bool:
    """Whether to work on a whole column in memory when so many of its rows are asked for."""
    return dense.is_resident(name) or (asked > _FEW and dense.fits(name))


def gather_numbers(
    dense: DenseTable, expr: PropertyValue, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """The values of a kept property of these rows, and which of them there are (None: all)."""
    values, valid = dense.numpy(expr.property)
    if not len(values):
        return np.zeros(len(numbers), values.dtype), np.zeros(len(numbers), np.bool_)
    found = values.take(numbers)
    if not expr.type.is_nullable:
        return found, None
    known = numbers >= 0
    if valid is not None:
        known &= valid.take(numbers)
    return found, None if known.all() else known


def is_due(run: Run, dense: DenseTable, name: str, asked: int) -> bool:
    """Whether to work through a whole column now, and keep what comes of it, for so many rows.

    It is once all who asked together asked for as many rows as there are: before that it would be
    the greater work, and never is it much more than twice the work that had to be done.
    """
    count = dense.count
    if not count or not is_kept(dense, name, asked):
        return False
    if asked >= count:
        return True
    asked_so_far: list[int] = run.graph.cache.get(
        ("rows asked for", dense.identity, name), lambda: [0], lambda _: 256
    )
    asked_so_far[0] += asked
    return asked_so_far[0] >= count


def _text_ordinals(run: Run, dense: DenseTable, name: str, numbers: np.ndarray) -> np.ndarray:
    ranks = _text_ranks(run, dense, name, len(numbers))
    if ranks is None:
        return array_ordinals(dense.values(name, numbers))
    return ranks.take(numbers).astype(np.int64)


def _text_ranks(run: Run, dense: DenseTable, name: str, asked: int) -> np.ndarray | None:
    """The rank of every row's text among all of the table, with that of no row at the end.

    None while sorting the texts that are asked for is less work.
    """
    cache, key = run.graph.cache, ("text ranks", dense.identity, name)
    found = cache.peek(key)
    if isinstance(found, np.ndarray):
        return found
    if not is_due(run, dense, name, asked):
        return None
    series = ("text ranks", dense.place, name)
    build = lambda: _rank_texts(*dense.codes(name))  # noqa: E731
    return cache.get_of_series(series, key, build, lambda ranks: ranks.nbytes)


def _rank_texts(codes: np.ndarray, texts: pa.Array) -> np.ndarray:
    ranks = _ranks(texts)
    by_number = np.full(len(codes) + 1, -1, np.int32)
    by_number[:-1] = ranks.take(codes)
    return by_number


def _ranks(texts: pa.Array) -> np.ndarray:
    """The rank of each of different texts, and -1 at the end, where code -1 points."""
    ranks = np.empty(len(texts) + 1, np.int32)
    ranks[pc.sort_indices(texts).to_numpy()] = np.arange(len(texts), dtype=np.int32)
    ranks[-1] = -1
    return ranks


def array_ordinals(column: pa.Array) -> np.ndarray:
    """The ordinals of a column; texts by code point, lists member by member."""
    type = column.type
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return _loose_text_ordinals(column)
    if pa.types.is_list(type) or pa.types.is_fixed_size_list(type):
        return _list_ordinals(column)
    return number_ordinals(*plain_numbers(column))


def _loose_text_ordinals(column: pa.Array) -> np.ndarray:
    if len(column) <= _FEW_TEXTS and not column.null_count:
        ranks: np.ndarray = pc.rank(column, tiebreaker="dense").to_numpy()
        return ranks.astype(np.int64)
    encoded = column.dictionary_encode()  # equal texts are compared once
    return _ranks(encoded.dictionary).take(encoded_codes(encoded)).astype(np.int64)


def encoded_codes(encoded: pa.DictionaryArray) -> np.ndarray:
    """The codes of a dictionary column, -1 for null."""
    indices = encoded.indices
    codes: np.ndarray = (indices.fill_null(-1) if indices.null_count else indices).to_numpy()
    return codes


def plain_numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers, dates or Booleans as NumPy has them, and which of them there are (None: all)."""
    if pa.types.is_temporal(column.type):
        column = column.cast(whole_numbers(column.type))
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False), None
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return filled.to_numpy(zero_copy_only=False), valid


def number_ordinals(values: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
    """The ordinals of numbers or Booleans; those that are not `valid` come first."""
    if values.dtype.kind == "f":
        ordinals = float_bits(values)
        return ordinals if valid is None else np.where(valid, ordinals, _LEAST)
    ordinals = _of_whole(values)
    if valid is None:
        return ordinals
    least = int(np.where(valid, ordinals, _GREATEST).min(initial=_GREATEST))
    if least == _LEAST:  # nothing lies below, so the values move together to make room
        ordinals = np.unique(ordinals, return_inverse=True)[1].astype(np.int64)
        least = 0
    return np.where(valid, ordinals, np.int64(least - 1))


def float_bits(values: np.ndarray) -> np.ndarray:
    """Floats as whole numbers of the same order, above the least there is; both zeros are one."""
    bits = (values.astype(np.float64, copy=False) + 0.0).view(np.int64)
    # Of the bits of floats, those of negative ones are in reverse.
    found: np.ndarray = bits ^ ((bits >> 63) & _GREATEST)
    return found


def _of_whole(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.uint64:
        return (values ^ _SIGN).view(np.int64)
    return values.astype(np.int64, copy=False)


def _list_ordinals(column: pa.Array) -> np.ndarray:
    tuples = plain_tuples(column)
    places = {found: place for place, found in enumerate(sorted(set(tuples), key=_list_rank))}
    return np.array([places[found] for found in tuples], np.int64)


def plain_tuples(column: pa.Array) -> list[tuple[object, ...] | None]:
    """Lists as tuples that can be compared: dates as the numbers they are."""
    member = column.type.value_type
    if pa.types.is_temporal(member):
        column = column.cast(pa.list_(whole_numbers(member)))
    return [None if found is None else tuple(found) for found in column.to_pylist()]


def _list_rank(found: tuple[object, ...] | None) -> tuple[object, ...]:
    if found is None:
        return ()
    return (True, *((member is not None, member) for member in found))
