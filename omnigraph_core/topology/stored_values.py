"""Values of rows that are not kept in memory: numbers come in, arrays from the table go out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import BudgetExceeded
from omnigraph_core.interruption import pause
from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.storage.row_space import read_fragments
from omnigraph_core.topology.widths import fixed_width, row_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.columns import ColumnMaker
    from omnigraph_core.topology.row_numbers import RowNumbers

_TAKEN_BYTES: Final = 16 << 20
"""Of rows that are asked for at once, if they are like the average: some may be far wider."""

_MOST_BYTES: Final = 2**31 - 1
"""That one array of texts or lists can count."""


class StoredValues:
    """Reads values of one version of a table."""

    def __init__(self, table: Table, rows: RowNumbers, maker: ColumnMaker) -> None:
        self._table = table
        self._rows = rows
        self._maker = maker

    def of(self, name: str, numbers: np.ndarray) -> pa.Array:
        """The values of these rows in the order given, null for -1.

        Raises:
            BudgetExceeded: no array is that large.
        """
        present = np.flatnonzero(numbers >= 0)
        if len(present) == len(numbers):
            return self._taken(name, numbers)
        places = np.full(len(numbers), -1, np.int64)
        places[present] = np.arange(len(present))
        return self._taken(name, numbers[present]).take(indices(places))

    def all(self, name: str) -> pa.Array:
        """A whole column by number, null where there is no row.

        Raises:
            BudgetExceeded: no array is that large.
        """
        fragments = [state.id for state in self._rows.states]
        batches = read_fragments(self._table, [name], fragments)
        array = self._joined(name, (batch.column(0) for batch in batches))
        if not len(self._rows.gaps):
            return array
        is_live = self._rows.live_mask()
        return array.take(pa.array(np.cumsum(is_live) - 1, mask=~is_live))

    def _taken(self, name: str, numbers: np.ndarray) -> pa.Array:
        distinct, places = np.unique(numbers, return_inverse=True)
        array = self._joined(name, self._portions(name, self._rows.addresses_of(distinct)))
        if bool((np.diff(numbers) > 0).all()):
            return array
        if len(places) > len(array):
            _check_bytes(name, int(sizes_of(array, places).sum()))
        return array.take(pa.array(places))

    def _portions(self, name: str, addresses: np.ndarray) -> Iterator[pa.Array]:
        """The values at these addresses, as many at a time as are not too large."""
        step = len(addresses)
        if name not in self._table.blobs_of((name,)):
            step = min(step, int(_TAKEN_BYTES / max(self._maker.width(name), 1)))
        for start in range(0, len(addresses), max(step, 1)):
            pause()
            chosen = pa.array(addresses[start : start + max(step, 1)])
            yield from take_rows(self._table, chosen, [name]).column(name).chunks

    def _joined(self, name: str, arrays: Iterable[pa.Array]) -> pa.Array:
        kind = self._table.schema.field(name).type
        kept: list[pa.Array] = []
        total = 0
        for array in arrays:
            kept.append(array)
            total += int(array.nbytes)
            if not pa.types.is_large_binary(kind) and fixed_width(kind) is None:
                _check_bytes(name, total)
        return kept[0] if len(kept) == 1 else pa.concat_arrays([pa.array([], kind), *kept])


def indices(numbers: np.ndarray) -> pa.Array:
    """Numbers as Arrow takes rows by: null for -1."""
    if len(numbers) and numbers.min() < 0:
        return pa.array(numbers, mask=numbers < 0)
    return pa.array(numbers)


def sizes_of(array: pa.Array, numbers: np.ndarray) -> np.ndarray:
    """Bytes of the values with these numbers, 0 for -1."""
    if not len(array):
        return np.zeros(len(numbers), np.int64)
    sizes = row_bytes(array, np.maximum(numbers, 0))
    sizes[numbers < 0] = 0
    return sizes


def check_taken(name: str, array: pa.Array, numbers: np.ndarray, widest: int) -> None:
    """Refuse values that no array can hold: one value may be asked for many times.

    Args:
        widest: bytes of the largest value, or more.

    Raises:
        BudgetExceeded: no array of texts or lists is that large.
    """
    if widest * len(numbers) > _MOST_BYTES:
        _check_bytes(name, int(sizes_of(array, numbers).sum()))


def _check_bytes(name: str, byte_count: int) -> None:
    if byte_count > _MOST_BYTES:
        raise BudgetExceeded(f"values of {name}", byte_count, _MOST_BYTES)
