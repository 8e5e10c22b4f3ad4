"""Cosine distances: numbers of rows come in, how far their vectors are from one goes out.

A distance is 1 - cos, computed in double precision from the stored numbers, the same whichever way
its row was found. A null vector, and one without a direction, takes no part: its distance is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.constants import EXACT_VECTOR_BYTES
from omnigraph_core.exec.best import Best, best_of
from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.storage.nearest import iter_vectors, nearest_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.exec.context import Run
    from omnigraph_core.exec.query_vectors import QueryVector
    from omnigraph_core.query.typed import Nearest
    from omnigraph_core.topology.dense import DenseTable

_PORTION_BYTES: Final = 8 << 20
"""Of vectors in double precision at a time."""

_SCREEN_BYTES: Final = 256 << 20
"""Of vectors that are screened between two looks at the guard."""

_FEW: Final = 256
"""Rows whose vectors are asked for one by one until they have been asked for repeatedly."""

_FEW_IN_MEMORY: Final = 2_048
_SHARE_IN_MEMORY: Final = 0.05
"""Rows, alone or of all, up to which exact distances beat a screening of the whole column."""

_FEW_STORED: Final = 20_000
"""Rows that are cheaper to pick out of a table than anything else, and to fetch from an index."""

_MARGIN: Final = 1e-5
"""By which distances in single precision may be wrong, generously."""

_SQUARES: Final = (1e-24, 1e24)
"""Squared lengths that single precision can work with."""


def nearest_scores(run: Run, expr: Nearest, numbers: np.ndarray) -> np.ndarray:
    """The distance of each of these rows, float64; NaN for -1 and for those that take no part."""
    query = run.vectors.vector(expr)
    if query is None:
        return np.full(len(numbers), np.nan)
    column = _column(run, expr, query)
    if len(numbers) and numbers.min() < 0:
        scores = np.full(len(numbers), np.nan)
        present = np.flatnonzero(numbers >= 0)
        scores[present] = _repeated(column, numbers.take(present))
        return scores
    return _repeated(column, numbers)


def nearest_numbers(run: Run, expr: Nearest, allowed: np.ndarray | None, count: int) -> Best:
    """The nearest rows, all that tie with the last one among them.

    Args:
        allowed: which rows of the table may be found, by number; None for all.
    """
    query = run.vectors.vector(expr)
    column = None if query is None else _column(run, expr, query)
    if column is None or count < 1 or not column.dense.count:
        return Best.nothing()
    dense = column.dense
    chosen = dense.count if allowed is None else int(np.count_nonzero(allowed))
    if chosen == dense.count:
        allowed = dense.try_live_mask()
    if chosen <= count or chosen <= _few(column):
        numbers = dense.live_numbers() if allowed is None else np.flatnonzero(allowed)
        return best_of(numbers, _distances(column, numbers), count)
    if column.is_small:
        return _screened(column, allowed, count)
    found = _indexed(column, allowed, chosen, count)
    return _streamed(column, allowed, count) if found is None else found


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of vectors and what is looked for in it."""

    run: Run
    dense: DenseTable
    name: str
    query: QueryVector
    is_small: bool
    """All vectors may be compared in memory."""

    @property
    def clause(self) -> str:
        return f"nearest({self.name})"


def _column(run: Run, expr: Nearest, query: QueryVector) -> _Column:
    dense, name = run.dense(expr.field.variable), expr.field.property
    byte_count = dense.count * len(query.values) * 4
    is_small = byte_count <= EXACT_VECTOR_BYTES.value and (
        dense.is_resident(name) or dense.fits(name)
    )
    return _Column(run, dense, name, query, is_small)


def _few(column: _Column) -> int:
    if column.is_small:
        return max(_FEW_IN_MEMORY, int(column.dense.count * _SHARE_IN_MEMORY))
    return _FEW_STORED


# Exactly, for given rows


def _repeated(column: _Column, numbers: np.ndarray) -> np.ndarray:
    """Distances of rows of which some may occur often: each is computed once then."""
    total = column.dense.extent
    if len(numbers) < max(_FEW_IN_MEMORY, total // 64):
        return _distances(column, numbers)
    column.run.guard.expect(total * 9, column.clause)
    occurs = np.zeros(total, np.bool_)
    occurs[numbers] = True
    distinct = np.flatnonzero(occurs)
    if 2 * len(distinct) > len(numbers):
        return _distances(column, numbers)
    scores = np.empty(total, np.float64)
    scores[distinct] = _distances(column, distinct)
    return scores.take(numbers)


def _distances(column: _Column, numbers: np.ndarray) -> np.ndarray:
    """Distances of rows of the table, as many at a time as the guard allows."""
    portion = _portion_rows(column)
    if len(numbers) <= portion:
        return exact_distances(column.query, *_stored(column, numbers))
    column.run.guard.expect(len(numbers) * 8, column.clause)
    scores = np.empty(len(numbers), np.float64)
    for start in range(0, len(numbers), portion):
        column.run.guard.check()
        chosen = numbers[start : start + portion]
        scores[start : start + portion] = exact_distances(column.query, *_stored(column, chosen))
    return scores


def _portion_rows(column: _Column) -> int:
    return max(1, _PORTION_BYTES // (8 * len(column.query.values)))


def _stored(column: _Column, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The vectors of these rows as they are stored, and which are there (None: all)."""
    dense, name = column.dense, column.name
    is_kept = dense.is_resident(name)
    if is_kept or (column.is_small and len(numbers) > _FEW):
        values, is_valid = as_matrix(dense.column(name))
        valid = None if is_valid is None else is_valid.take(numbers)
        return values.take(numbers, axis=0), valid
    if column.is_small:
        return as_matrix(dense.values(name, numbers))
    addresses = pa.array(dense.addresses_of(numbers))
    return as_matrix(take_rows(dense.table, addresses, [name]).column(name).combine_chunks())


def as_matrix(vectors: pa.FixedSizeListArray) -> tuple[np.ndarray, np.ndarray | None]:
    """A row of numbers per vector, as they are in memory, and which are not null (None: all).

    The row of a null vector holds whatever is there.
    """
    width, length = vectors.type.list_size, len(vectors)
    items = vectors.values.slice(vectors.offset * width, length * width)
    if not vectors.null_count:
        return items.to_numpy(zero_copy_only=False).reshape(length, width), None
    is_valid = vectors.is_valid().to_numpy(zero_copy_only=False)
    if items.null_count > vectors.null_count * width:
        return items.to_numpy(zero_copy_only=False).reshape(length, width), is_valid
    # Items of null vectors are null themselves: Arrow would copy the whole column to say so.
    start = items.offset * items.type.bit_width // 8
    numbers = np.frombuffer(items.buffers()[1], np.float32, length * width, start)
    return numbers.reshape(length, width), is_valid


def exact_distances(
    query: QueryVector, vectors: np.ndarray, is_valid: np.ndarray | None
) -> np.ndarray:
    """The distance of each row of a matrix, as `as_matrix` gives it; NaN if it takes no part."""
    # Sums over a row do not depend on the rows beside it: a matrix product's would.
    values = vectors.astype(np.float64)
    with np.errstate(invalid="ignore"):
        products = np.vecdot(values, query.values)
        squares = np.vecdot(values, values)
    usable = (squares > 0) & np.isfinite(squares)
    if is_valid is not None:
        usable &= is_valid
    lengths = np.sqrt(np.where(usable, squares, np.nan))
    distances: np.ndarray = np.clip(1.0 - products / (lengths * query.norm), 0.0, 2.0)
    return distances


# All vectors, in memory


def _screened(column: _Column, allowed: np.ndarray | None, count: int) -> Best:
    """Single precision tells which rows may be among the nearest, double precision which are."""
    guard, total = column.run.guard, column.dense.extent
    guard.expect(total * 12, column.clause)
    values, is_valid = as_matrix(column.dense.column(column.name))
    scales = _scales(column, values, is_valid)
    if scales.is_extreme:
        numbers = column.dense.live_numbers() if allowed is None else np.flatnonzero(allowed)
        return best_of(numbers, _distances(column, numbers), count)
    scores = np.empty(total, np.float32)
    for start, end in _pieces(values):
        guard.check()
        np.dot(values[start:end], column.query.unit, out=scores[start:end])
    scores *= scales.inverse
    blocked = scales.blocked
    if allowed is not None:
        blocked = ~allowed if blocked is None else blocked | ~allowed
    if blocked is not None:
        # A sum, since to choose one by one takes ten times as long.
        scores -= blocked.astype(np.float32) * np.float32(8)
        scores[scales.silent] = -8
    least = np.partition(scores, total - count)[total - count] - _MARGIN
    numbers = np.flatnonzero(scores >= least)
    if blocked is not None:
        numbers = numbers[~blocked.take(numbers)]
    return best_of(numbers, _distances(column, numbers), count)


@dataclass(frozen=True, slots=True)
class _Scales:
    """What makes the vectors of a column comparable in single precision."""

    inverse: np.ndarray
    """One divided by the length, float32."""
    blocked: np.ndarray | None
    """Which rows take no part; None if every row does."""
    silent: np.ndarray
    """Those of them whose numbers are none, or too large to be multiplied."""
    is_extreme: bool
    """Some vectors that take part are too long or too short: single precision misleads."""

    @property
    def nbytes(self) -> int:
        blocked = 0 if self.blocked is None else self.blocked.nbytes
        return int(self.inverse.nbytes + self.silent.nbytes + blocked)


def _scales(column: _Column, values: np.ndarray, is_valid: np.ndarray | None) -> _Scales:
    def squares_from(first: int) -> np.ndarray:
        squares = np.empty(len(values) - first, np.float32)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for start, end in _pieces(values[first:]):
                column.run.guard.check()
                part = values[first + start : first + end]
                np.vecdot(part, part, out=squares[start:end])
        return squares

    def build() -> _Scales:
        return _scales_of(dense.derived("squares", name, squares_from), values, is_valid)

    dense, name = column.dense, column.name
    key, series = ("scales", dense.identity, name), ("scales", dense.place, name)
    cache = column.run.graph.cache
    return cache.get_of_series(series, key, build, lambda scales: scales.nbytes + 500)


def _scales_of(squares: np.ndarray, values: np.ndarray, is_valid: np.ndarray | None) -> _Scales:
    low, high = _SQUARES
    is_usual = (squares >= low) & (squares <= high)
    odd = np.flatnonzero(~is_usual)
    silent = odd[~np.isfinite(squares.take(odd))]
    if not len(odd) and is_valid is None:
        return _Scales(1 / np.sqrt(squares), None, silent, is_extreme=False)
    inverse = 1 / np.sqrt(np.where(is_usual, squares, np.float32(1)))
    blocked = ~is_usual if is_valid is None else ~(is_usual & is_valid)
    return _Scales(inverse, blocked, silent, is_extreme=_any_usable(values, is_valid, odd))


def _any_usable(values: np.ndarray, is_valid: np.ndarray | None, odd: np.ndarray) -> bool:
    """Whether one of these vectors has a direction, after all."""
    present = odd if is_valid is None else odd[is_valid.take(odd)]
    exact = values.take(present, axis=0).astype(np.float64)
    with np.errstate(invalid="ignore"):
        squares = np.vecdot(exact, exact)
    return bool(((squares > 0) & np.isfinite(squares)).any())


def _pieces(values: np.ndarray) -> Iterator[tuple[int, int]]:
    rows = max(1, _SCREEN_BYTES // max(1, 4 * values.shape[1]))
    for start in range(0, len(values), rows):
        yield start, min(start + rows, len(values))


# More vectors than memory is to hold


def _indexed(column: _Column, allowed: np.ndarray | None, chosen: int, count: int) -> Best | None:
    """The nearest rows as the column's index knows them; None if it cannot tell.

    More rows are asked for than wanted: others may be as near as the last one, and some may not be
    allowed.
    """
    dense, guard = column.dense, column.run.guard
    wanted = int((count + _FEW // 4) * 1.3 * dense.count / chosen)
    while wanted <= _FEW_STORED:
        found = nearest_rows(dense.table, column.name, column.query.unit, wanted, check=guard.check)
        if found is None:
            return None
        addresses, distances = found
        numbers = np.sort(dense.numbers_at(addresses))
        if allowed is not None:
            numbers = numbers[allowed.take(numbers)]
        best = best_of(numbers, _distances(column, numbers), count)
        is_complete = len(addresses) < wanted
        if is_complete or (len(best.scores) >= count and best.scores[-1] + _MARGIN < distances[-1]):
            return best
        wanted *= 4
    return None


def _streamed(column: _Column, allowed: np.ndarray | None, count: int) -> Best:
    """The nearest rows of all, a portion of the column in memory at a time."""
    best, start = Best.nothing(), 0
    table, rows = column.dense.table, _portion_rows(column)
    live = column.dense.live_numbers()
    for vectors in iter_vectors(table, column.name, batch_rows=rows):
        column.run.guard.check()
        end = start + len(vectors)
        scores = exact_distances(column.query, *as_matrix(vectors))
        numbers = live[start:end]
        if allowed is not None:
            scores[~allowed.take(numbers)] = np.nan
        best = best.joined(best_of(numbers, scores, count), count)
        start = end
    return best
