"""Whole columns by number: a table's version comes in, columns that cover it go out.

A column is put together from what is kept of other versions and a read of the fragments that are
new, several columns in one pass. After a commit all columns that are kept get its rows at once: to
read some columns of a few rows costs no more than to read one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from omnigraph_core.errors import BudgetExceeded, InvariantBroken
from omnigraph_core.interruption import turn
from omnigraph_core.storage.row_space import column_identities, read_fragments
from omnigraph_core.topology.kept_column import Chunks, KeptColumn
from omnigraph_core.topology.reuse import plan_parts
from omnigraph_core.topology.widths import Widths, fixed_width

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.reuse import Part
    from omnigraph_core.topology.row_numbers import RowNumbers

_MOST_TEXT: Final = 2**31 - 1
"""Bytes that one array of texts or lists can count."""

_RECENT: Final = 3
"""Columns under other numberings that a new one is put together from."""

_FEW: Final = 256
"""New rows up to which columns are read along that nobody has asked for yet."""


class ColumnMaker:
    """Makes columns of one version; what it makes is for the cache to keep."""

    def __init__(self, table: Table, rows: RowNumbers, cache: ByteCache) -> None:
        self._table = table
        self._rows = rows
        self._cache = cache
        self._identities = column_identities(table)
        self._widths = Widths(table, rows, cache, self._identities)

    def key(self, name: str) -> tuple[object, ...]:
        """What the cache has a column under, for all versions that follow the numbering."""
        return ("column", self._rows.numbering.serial, self._identities[name])

    def made(self, names: Sequence[str]) -> list[tuple[KeptColumn, int]]:
        """These columns, each with its size; they cover the version."""
        plans = {name: plan_parts(self._rows, self._sources(name)) for name in names}
        together: dict[tuple[int, ...], list[str]] = {}
        for name, parts in plans.items():
            together.setdefault(_fragments(parts), []).append(name)
        chunks: dict[str, Chunks] = {}
        for fragments, group in together.items():
            chunks |= self._read(group, fragments)
        found = [self._assembled(name, plans[name], chunks[name]) for name in names]
        return [(column, column.nbytes) for column in found]

    def grow(self, name: str, kept: KeptColumn) -> KeptColumn:
        """A kept column with all rows of the version, and with it others that lack the same few.

        Who comes while that is done waits, and finds it done.
        """
        numbering = self._rows.numbering
        with turn(numbering.growing):
            newest = cast("KeptColumn", self._cache.glance(self.key(name)) or kept)
            if newest.covers(self._rows):
                return newest
            if self._rows.extent <= newest.filled:
                return self._remade(name)
            group = {name: newest}
            if self._rows.extent - newest.filled <= _FEW:
                group |= self._lagging(newest.filled)
            self._fill(group, newest.filled)
            return newest if newest.covers(self._rows) else self._remade(name)

    def fitting(self, names: Sequence[str], most_bytes: float) -> list[str]:
        """Which of these columns take no more memory than that, as far as a sample tells."""
        blobs = self._table.blobs_of(names)
        wanted = [name for name in names if name not in blobs]
        widths = self._widths.of(wanted)

        def limit(name: str) -> float:
            is_fixed = fixed_width(self._table.schema.field(name).type) is not None
            return most_bytes if is_fixed else min(most_bytes, _MOST_TEXT * 0.8)

        return [name for name in wanted if widths[name] * self._rows.extent <= limit(name)]

    def width(self, name: str) -> float:
        """Bytes of a row of a column, about."""
        return self._widths.of((name,))[name]

    def _lagging(self, filled: int) -> dict[str, KeptColumn]:
        """The kept columns that have just the rows up to a number."""
        identities = self._rows.numbering.columns
        names = [name for name, item in self._identities.items() if item in identities]
        found = {name: self._cache.glance(self.key(name)) for name in names}
        return {
            name: column
            for name, column in found.items()
            if isinstance(column, KeptColumn) and column.filled == filled
        }

    def _fill(self, group: dict[str, KeptColumn], filled: int) -> None:
        """Add the rows of the version that columns with so many numbers lack."""
        parts = plan_parts(self._rows, (), filled)
        chunks = self._read(list(group), _fragments(parts))
        for name, column in group.items():
            try:
                column.append(parts, chunks[name])
            except BudgetExceeded:
                self._cache.drop(self.key(name))  # it has a part of the rows, and room for no more
            self._cache.resize(self.key(name), column.nbytes)

    def _remade(self, name: str) -> KeptColumn:
        """The column anew, with rows that no version had that it was read for."""
        ((column, size),) = self.made((name,))
        self._cache.put(self.key(name), column, size)
        return column

    def _sources(self, name: str) -> list[KeptColumn]:
        """What is kept of the column: under the same numbering, then under others."""
        recent = ("recent", self._table.store.root.text, self._table.location)
        key = (*recent, self._identities[name])
        known = cast("tuple[Hashable, ...]", self._cache.peek(key) or ())
        mine = self.key(name)
        others = tuple(item for item in known if item != mine)
        self._cache.put(key, (mine, *others[: _RECENT - 1]), 500)
        found = [self._cache.glance(item) for item in (mine, *others)]
        return [column for column in found if isinstance(column, KeptColumn)]

    def _read(self, names: Sequence[str], fragments: Sequence[int]) -> dict[str, Chunks]:
        batches = list(read_fragments(self._table, names, fragments))
        return {
            name: Chunks([batch.column(place) for batch in batches])
            for place, name in enumerate(names)
        }

    def _assembled(self, name: str, parts: Sequence[Part], chunks: Chunks) -> KeptColumn:
        column = KeptColumn(self._rows.numbering, self._table.schema.field(name).type)
        try:
            column.append(parts, chunks)
        except BudgetExceeded as problem:
            place = f"`{name}` of `{self._table.location}`"
            raise InvariantBroken(f"{place} is read whole only if it fits") from problem
        if column.filled != self._rows.extent:
            raise InvariantBroken(f"`{self._table.location}` has as many rows as it says")
        self._rows.numbering.columns.add(self._identities[name])
        return column


def _fragments(parts: Sequence[Part]) -> tuple[int, ...]:
    return tuple([part.fragment for part in parts if part.fragment is not None])
