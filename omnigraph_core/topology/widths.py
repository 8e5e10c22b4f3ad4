"""What columns take in memory, before they are read: types and a few rows tell.

Of types that differ in length a sample is read, of several columns at once and again when a table
has doubled. A table whose files are small is not sampled: they say enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.storage.lookup import take_rows
from omnigraph_core.storage.row_space import read_fragments, stored_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.row_numbers import RowNumbers

_SMALL_ROWS: Final = 4_096
_SMALL_BYTES: Final = 4 << 20
_FIRST_ROWS: Final = 1_024
_SPREAD_FROM: Final = 65_536
"""Rows from which a sample is spread over the table: the first ones need not be like the others."""

_SPREAD_ROWS: Final = 256


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
        sample = self._spread(names) if count > _SPREAD_FROM else self._first(names)
        return [sample.column(name).nbytes / max(sample.num_rows, 1) for name in names]

    def _first(self, names: Sequence[str]) -> pa.Table:
        fragment = next(state.id for state in self._rows.states if state.rows)
        batches = read_fragments(self._table, names, [fragment], most_rows=_FIRST_ROWS)
        return pa.Table.from_batches(batches)

    def _spread(self, names: Sequence[str]) -> pa.Table:
        numbers = np.linspace(0, self._rows.count - 1, _SPREAD_ROWS).astype(np.int64)
        return take_rows(self._table, pa.array(self._rows.addresses_of(numbers)), names)


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
