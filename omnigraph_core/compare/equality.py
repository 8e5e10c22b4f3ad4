"""Typed equality of columns: rows side by side come in, which of them are equal goes out.

Null equals null and nothing else, an empty text or list is no null, numbers with a point are equal
bit by bit: zero and minus zero differ, and what is no number equals itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Mapping

_AS_INTEGERS: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.float32(): pa.int32(),
    pa.float64(): pa.int64(),
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
}
"""Of the same width."""


def equal_columns(a: pa.Table, b: pa.Table) -> dict[str, np.ndarray]:
    """Per column of the first table, where its values equal those of the second.

    Raises:
        InvariantBroken: the tables do not have the same columns, types and number of rows.
    """
    if set(a.column_names) != set(b.column_names):
        raise InvariantBroken(f"rows compared have the same columns: {a.schema}, {b.schema}")
    return {name: equal_values(a.column(name), b.column(name)) for name in a.column_names}


def equal_values(a: pa.Array | pa.ChunkedArray, b: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Where the values of two columns of the same type are equal.

    >>> equal_values(pa.array(["", None, None, "x"]), pa.array([None, None, "", "x"]))
    array([False,  True, False,  True])
    """
    if a.type != b.type or len(a) != len(b):
        raise InvariantBroken(
            f"columns compared are alike: {a.type} x {len(a)}, {b.type} x {len(b)}"
        )
    return _equal(_whole(a), _whole(b))


def as_integers(column: pa.Array) -> pa.Array:
    """A column of short values so that what is equal as integers or texts is equal bit by bit."""
    integers = _AS_INTEGERS.get(column.type)
    return column if integers is None else column.view(integers)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _equal(a: pa.Array, b: pa.Array) -> np.ndarray:
    kind = a.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _equal_lists(a, b)
    if pa.types.is_fixed_size_list(kind):
        return _equal_vectors(a, b)
    a, b = as_integers(a), as_integers(b)
    is_alike = a.is_valid().to_numpy(False) == b.is_valid().to_numpy(False)
    same: np.ndarray = pc.equal(a, b).fill_null(True).to_numpy(False) & is_alike
    return same


def _equal_lists(a: pa.Array, b: pa.Array) -> np.ndarray:
    lengths = [pc.list_value_length(side).fill_null(-1).to_numpy(False) for side in (a, b)]
    same: np.ndarray = lengths[0] == lengths[1]
    places = np.flatnonzero(same & (lengths[0] > 0))
    if len(places):
        items = _equal(*_items(a, b, places))
        wrong = np.concatenate(([0], np.cumsum(~items)))
        ends = np.cumsum(lengths[0][places])
        starts = ends - lengths[0][places]
        same[places] = wrong[ends] == wrong[starts]
    return same


def _equal_vectors(a: pa.Array, b: pa.Array) -> np.ndarray:
    valid = [side.is_valid().to_numpy(False) for side in (a, b)]
    same: np.ndarray = valid[0] == valid[1]
    places = np.flatnonzero(valid[0] & valid[1])
    if len(places) and a.type.list_size:
        items = _equal(*_items(a, b, places))
        same[places] = items.reshape(len(places), a.type.list_size).all(axis=1)
    return same


def _items(a: pa.Array, b: pa.Array, places: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """The members of the lists at these places, one list after the other."""
    if len(places) < len(a):
        a, b = a.take(pa.array(places)), b.take(pa.array(places))
    return a.flatten(), b.flatten()
