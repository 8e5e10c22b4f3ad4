"""What columns take in memory, before they are read: types and a few rows tell.

Of types that differ in length a sample is read, of several columns at once and again when a table
has doubled; it is spread over the rows, since the first ones need not be like the others. A table
of few rows in small files is not sampled. Of rows in memory the offsets tell exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.storage.lookup import iter_taken
from omnigraph_core.storage.row_space import stored_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.row_numbers import RowNumbers

_SMALL_ROWS: Final = 1_024
_SMALL_BYTES: Final = 4 << 20
_LARGE_ROWS: Final = 65_536
_SAMPLE_ROWS: Final = 64
_LARGE_SAMPLE_ROWS: Final = 256
_SAMPLE_BYTES: Final = 64 << 20
"""Of a sample, about: it ends early where rows are very wide."""


class Widths:
    """Estimates bytes per row of columns of one version."""

    def __init__(
        self,
        table: Table,
        rows: RowNumbers,
        cache: ByteCache,
        identities: Mapping[str, tuple[int, str]],
    ) -> None:
        self._table = table
        self._rows = rows
        self._cache = cache
        self._identities = identities

    def of(self, names: Sequence[str]) -> dict[str, float]:
        """Bytes of a row of each of these columns, about."""
        known = {name: fixed_width(self._table.schema.field(name).type) for name in names}
        unknown = [name for name, width in known.items() if width is None]
        return {name: width for name, width in known.items() if width is not None} | (
            self._estimated(unknown) if unknown else {}
        )

    def _estimated(self, names: Sequence[str]) -> dict[str, float]:
        keys: dict[Hashable, str] = {self._key(name): name for name in names}

        def build(wanted: Sequence[Hashable]) -> list[tuple[float, int]]:
            return [(width, 300) for width in self._sampled([keys[key] for key in wanted])]

        found: dict[str, float] = {}
        while len(found) < len(keys):  # another thread may fail to read a sample
            made = self._cache.get_many(tuple(keys), build)
            found = {keys[key]: width for key, width in made.items()}
        return found

    def _key(self, name: str) -> tuple[object, ...]:
        place = (self._table.store.root.text, self._table.location)
        return ("width", place, self._identities[name], self._rows.count.bit_length())

    def _sampled(self, names: Sequence[str]) -> list[float]:
        count = self._rows.count
        if count <= _SMALL_ROWS:
            total = stored_bytes(self._table)
            if total is not None and total <= _SMALL_BYTES:
                return [total / max(count, 1) for _ in names]
        if not count:
            return [0.0 for _ in names]
        sample = self._sample(names)
        return [sample.column(name).nbytes / sample.num_rows for name in names]

    def _sample(self, names: Sequence[str]) -> pa.Table:
        wanted = _SAMPLE_ROWS if self._rows.count <= _LARGE_ROWS else _LARGE_SAMPLE_ROWS
        numbers = self._rows.spread(wanted)
        mixed = np.random.default_rng(0).permutation(numbers)  # any part of it is spread as well
        taken: list[pa.Table] = []
        for rows in iter_taken(self._table, pa.array(self._rows.addresses_of(mixed)), names):
            taken.append(rows)
            if sum(part.nbytes for part in taken) > _SAMPLE_BYTES:
                break
        return pa.concat_tables(taken)


def row_bytes(array: pa.Array, numbers: np.ndarray) -> np.ndarray:
    """Bytes of the values with these numbers, none of them -1, as 64 bits each."""
    places = numbers.astype(np.int64)
    return _stretch_bytes(array, places, places + 1)


def _stretch_bytes(array: pa.Array, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Bytes of values from each start to each end, with the offsets that say where they are."""
    kind = array.type
    width = fixed_width(kind)
    if width is not None:
        counted: np.ndarray = np.ceil((ends - starts) * width).astype(np.int64)
        return counted
    is_short = pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_list(kind)
    offset = np.dtype(np.int32 if is_short else np.int64)
    content = array.buffers()[1] or bytes(offset.itemsize)
    offsets = np.frombuffer(content, offset)[array.offset :]
    first = offsets.take(starts).astype(np.int64)
    last = offsets.take(ends).astype(np.int64)
    sizes: np.ndarray = (ends - starts) * offset.itemsize
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    sizes += _stretch_bytes(array.values, first, last) if is_list else last - first
    return sizes


def fixed_width(kind: pa.DataType) -> float | None:
    """Bytes of a value of a type whose values all take the same; None for others."""
    if pa.types.is_fixed_size_list(kind):
        member = fixed_width(kind.value_type)
        return None if member is None else member * kind.list_size + 0.125
    if pa.types.is_boolean(kind):
        return 1.125
    if pa.types.is_primitive(kind):
        return float(kind.bit_width) / 8 + 0.125
    return None
