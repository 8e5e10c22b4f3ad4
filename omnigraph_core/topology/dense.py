"""One table at one physical version: its rows by number.

Numbers ascend in scan order. Versions that share rows share their numbers, so a number below the
extent may have no row in this one: a gap. Columns, codes and the way from ids to numbers are made
when they are first asked for and kept for all versions that share them: a handle is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.interruption import turn
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.row_space import iter_addresses
from omnigraph_core.topology.columns import ColumnMaker
from omnigraph_core.topology.growing import GrowingArray
from omnigraph_core.topology.kept_column import Column, KeptColumn
from omnigraph_core.topology.row_numbers import number_rows
from omnigraph_core.topology.stored_values import StoredValues, check_taken, indices, sizes_of
from omnigraph_core.topology.text_codes import TextCodes, encode
from omnigraph_core.topology.text_map import map_texts
from omnigraph_core.topology.widths import fixed_width, row_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.row_numbers import RowNumbers
    from omnigraph_core.topology.text_map import TextMap

ID: Final = "id"

_SMALL: Final = 4_096
"""Rows up to which a table is read whole rather than asked for single rows."""

_PATIENCE: Final = 2
"""Times a large table that is not in memory is asked for a few rows before it is read whole."""

_FEW: Final = 256
"""Rows that are cheaper to ask the table for than a whole column of it."""

_FEW_NEW: Final = 4_096
"""New rows that a column in memory gets as soon as it is used."""

_MOST_MAPPED: Final = 4_000_000
"""Rows beyond which ids are always looked up in the table's index."""

_CERTAIN: Final = 16
"""Values that fit one array, whichever they are."""


class DenseTable:
    """The rows of one version of a table by number. Immutable to callers, safe for threads."""

    __slots__ = ("_cache", "_maker", "_rows", "_version", "table")

    def __init__(self, table: Table, cache: ByteCache) -> None:
        self.table = table
        self._version = (table.store.root.text, table.location, table.physical_version)
        self._cache = cache
        self._rows: RowNumbers | None = None
        self._maker: ColumnMaker | None = None

    @property
    def rows(self) -> RowNumbers:
        """Which numbers have a row."""
        if self._rows is None:
            self._rows = self._cache.get_of_version(
                ("rows", self._version),
                lambda: number_rows(self.table, self._cache),
                lambda rows: rows.nbytes,
            )
        return self._rows

    @property
    def identity(self) -> tuple[str, str, int, int]:
        """What tells these numbers, and the version, from all others of the process."""
        return (*self._version, self.rows.numbering.serial)

    @property
    def place(self) -> tuple[str, str]:
        """What all versions of the table have in common."""
        return self._version[:2]

    @property
    def count(self) -> int:
        """Of rows."""
        return self.rows.count

    @property
    def extent(self) -> int:
        """One more than the largest number a row may have: the length of everything by number."""
        return self.rows.extent

    @property
    def fragments(self) -> tuple[FragmentState, ...]:
        return self.rows.states

    def live_numbers(self) -> np.ndarray:
        """The numbers of all rows, int32, ascending."""
        return self.rows.live_numbers()

    def try_live_mask(self) -> np.ndarray | None:
        """Which numbers have a row; None if all have."""
        return self.rows.live_mask() if len(self.rows.gaps) else None

    def clear_gaps(self, mask: np.ndarray) -> np.ndarray:
        """A mask by number with no truth where there is no row; it may be the same one."""
        if not len(self.rows.gaps):
            return mask
        cleared = mask.copy()
        cleared[self.rows.gaps] = False
        return cleared

    def key_of(self, name: str) -> Hashable:
        """What a column goes by, the same for all versions that share what is kept of it."""
        return self._making().key(name)

    def column(self, name: str) -> pa.Array:
        """A whole column by number, one contiguous array; where there is no row, anything.

        Raises:
            InvariantBroken: the column has blobs, or more than one array can hold.
            ObjectNotFound: the version was cleaned up meanwhile.
        """
        return self._column(name).array

    def preload(self, names: Sequence[str]) -> None:
        """Read the columns that are missing and fit in one pass; others are left for later."""
        missing = [name for name in dict.fromkeys(names) if not self.is_resident(name)]
        if missing and (fitting := self._making().fitting(missing, self._cache.capacity / 4)):
            self._load(fitting)

    def is_resident(self, name: str) -> bool:
        """Whether a column is in memory already, but for a few rows at most."""
        kept = self._cache.peek(self._making().key(name))
        if not isinstance(kept, KeptColumn):
            return False
        lacking = self.extent - kept.filled
        return 0 < lacking <= _FEW_NEW or kept.covers(self.rows)

    def fits(self, name: str) -> bool:
        """Whether a column is small enough to be kept whole, as far as some rows tell."""
        return bool(self._making().fitting((name,), self._cache.capacity / 4))

    def values(self, name: str, numbers: np.ndarray | None) -> pa.Array:
        """The values of these rows in the order given, null for -1; of all numbers for None."""
        if self._is_kept_for(name, numbers):
            array = self.column(name)
            if numbers is None:
                return array
            if len(numbers) > _CERTAIN and fixed_width(array.type) is None:
                check_taken(name, array, numbers, self._widest(name))
            return array.take(indices(numbers))
        stored = StoredValues(self.table, self.rows, self._making())
        return stored.all(name) if numbers is None else stored.of(name, numbers)

    def measure(self, name: str, numbers: np.ndarray, negligible: int) -> np.ndarray | float:
        """Bytes of the values of these rows, each; about as many per row if they are not in memory.

        Args:
            negligible: 0 is enough of an answer if all of them together take no more.
        """
        if not self.is_resident(name):
            is_asked_for = len(numbers) <= _FEW and self.count > _SMALL
            if is_asked_for or not self.fits(name):
                return self._making().width(name)
        if self._widest(name) * len(numbers) <= negligible:
            return 0.0
        return sizes_of(self.column(name), numbers)

    def numpy(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """A column of numbers, truths or dates, and which values are not null (None: all).

        Dates are their integers. Where the column is null the value means nothing.
        """
        return self._column(name).numpy()

    def codes(self, name: str) -> tuple[np.ndarray, pa.Array]:
        """A code per number, int32 and -1 for null, and distinct values the codes stand for.

        Values that no row has may be among them.
        """
        if not self.extent or not pa.types.is_string(self.table.schema.field(name).type):
            return encode(self.column(name))
        kept = self._kept(name)
        key = ("codes", kept.serial)
        column = kept.view(self.extent).array
        codes = self._cache.get(key, lambda: TextCodes(column), lambda made: made.nbytes)
        found = codes.of(column)
        self._cache.resize(key, codes.nbytes)
        return found

    def try_distinct_count(self, name: str) -> int | None:
        """How many different values a column has, about, if its codes are in memory."""
        kept = self._cache.glance(self._making().key(name))
        serial = kept.serial if isinstance(kept, KeptColumn) else None
        codes = self._cache.glance(("codes", serial))
        return codes.distinct_count if isinstance(codes, TextCodes) else None

    def derived(self, kind: str, name: str, compute: Callable[[int], np.ndarray]) -> np.ndarray:
        """Something that each value of a column has, by number; made once of each.

        Args:
            compute: makes it of the values from a number on, of all if that is 0.
        """
        kept = self._kept(name)
        key = (kind, kept.serial)
        items = self._cache.get(key, lambda: GrowingArray(compute(0)), lambda made: made.nbytes)
        if len(items) < self.extent:
            with turn(kept.numbering.growing):
                if len(items) < self.extent:
                    items.append(compute(len(items)))
            self._cache.resize(key, items.nbytes)
        return items.view(self.extent)

    def number_of(self, id: str) -> int:
        """The number of the row with an id; -1 if there is none."""
        known = self._id_map(1)
        if known is not None:
            return known.number(self.column(ID), id, self.rows)
        found = find_rows(self.table, ID, pa.array([id], pa.utf8()), [], has_addresses=True)
        return int(self.numbers_at(found.column(ADDRESS).to_numpy())[0]) if len(found) else -1

    def numbers_of(self, ids: pa.Array) -> np.ndarray:
        """The numbers of the rows with these ids, int32; -1 where there is none."""
        known = self._id_map(len(ids))
        if known is not None:
            return known.numbers(self.column(ID), ids, self.rows)
        found = find_rows(self.table, ID, ids, [ID], has_addresses=True)
        numbers = self.numbers_at(found.column(ADDRESS).to_numpy())
        places = pc.index_in(ids, found.column(ID).combine_chunks(), skip_nulls=True)
        result: np.ndarray = np.append(numbers, np.int32(-1)).take(places.fill_null(-1).to_numpy())
        return result

    def try_former_ids(self, numbers: np.ndarray) -> pa.Array | None:
        """The ids of numbers, also of those whose row is gone; None if they are not in memory."""
        if not self.extent or not self.is_resident(ID):
            return None
        kept = self._kept(ID)
        if int(numbers.max(initial=0)) >= kept.filled:
            return None
        ids = kept.view(kept.filled).array.take(pa.array(numbers))
        return None if ids.null_count else ids

    def text_map(self, name: str) -> TextMap:
        """The way from the texts of a column to numbers; the column is kept from now on."""
        kept = self._kept(name)
        key = ("texts", kept.serial)
        texts = kept.view(kept.filled).array
        known = self._cache.get(key, lambda: map_texts(texts), lambda made: made.nbytes)
        if known.covered < self.extent:
            known = known.extended(texts)
            self._cache.put(key, known, known.nbytes)
        return known

    def is_mapped(self, name: str) -> bool:
        """Whether the way from texts to numbers is in memory."""
        kept = self._cache.glance(self._making().key(name))
        serial = kept.serial if isinstance(kept, KeptColumn) else None
        return self.is_resident(name) and self._cache.glance(("texts", serial)) is not None

    def is_repeated(self, what: str, patience: int = _PATIENCE) -> bool:
        """Whether this was asked more often than that, under these numbers."""
        key = ("uses", self.rows.numbering.serial, what)
        uses: list[int] = self._cache.get(key, lambda: [0], lambda _: 200)
        uses[0] += 1
        return uses[0] > patience

    def addresses_of(self, numbers: np.ndarray) -> np.ndarray:
        """Where these rows are, as Lance counts: unsigned 64 bits; the numbers must be there."""
        return self.rows.addresses_of(numbers)

    def numbers_at(self, addresses: np.ndarray) -> np.ndarray:
        """The numbers of the rows at these addresses, int32; -1 where there is no row."""
        return self.rows.numbers_at(addresses)

    def find_where(self, sql: str | None) -> np.ndarray:
        """The ascending numbers, int32, of the rows a filter in Lance's SQL holds for."""
        if sql is None:
            return self.live_numbers()
        found = [self.numbers_at(addresses) for addresses in iter_addresses(self.table, sql)]
        return np.sort(np.concatenate([np.zeros(0, np.int32), *found]))

    def _making(self) -> ColumnMaker:
        if self._maker is None:
            self._maker = ColumnMaker(self.table, self.rows, self._cache)
        return self._maker

    def _column(self, name: str) -> Column:
        if not self.extent:  # a graph made anew at the same place begins at the same version
            return Column(pa.array([], self.table.schema.field(name).type))
        return self._kept(name).view(self.extent)

    def _kept(self, name: str) -> KeptColumn:
        """The column with all rows of this version."""
        found = self._cache.peek(self._making().key(name))
        while not isinstance(found, KeptColumn):
            found = self._load((name,))[name]  # None where another thread failed to
        return found if found.covers(self.rows) else self._making().grow(name, found)

    def _load(self, names: Sequence[str]) -> dict[str, KeptColumn | None]:
        """Make these columns in one pass, those that are not kept; None where others failed to."""
        if blobs := self.table.blobs_of(names):
            raise InvariantBroken(f"bytes are not kept in memory: {', '.join(blobs)}")
        if not self.extent:
            return {}
        keys: dict[Hashable, str] = {self._making().key(name): name for name in names}

        def build(wanted: Sequence[Hashable]) -> list[tuple[KeptColumn, int]]:
            return self._making().made([keys[key] for key in wanted])

        made = self._cache.get_many(tuple(keys), build)
        return {name: made.get(key) for key, name in keys.items()}

    def _id_map(self, wanted: int) -> TextMap | None:
        """The way from ids to numbers, made when it pays for so many ids; None if it does not."""
        is_there = bool(self.extent) and self.is_mapped(ID)
        return self.text_map(ID) if is_there or self._is_map_due(wanted) else None

    def _is_map_due(self, wanted: int) -> bool:
        if not self.extent:
            return False
        if self.count <= _SMALL:
            return True
        if wanted <= _FEW and (self.count > _MOST_MAPPED or not self.is_repeated(ID)):
            return False
        return self.fits(ID)

    def _is_kept_for(self, name: str, numbers: np.ndarray | None) -> bool:
        """Whether to use the whole column for these rows."""
        if self.is_resident(name):
            return True
        if not self.fits(name):
            return False
        if numbers is None or len(numbers) > _FEW or self.count <= _SMALL:
            return True
        return self.is_repeated(name)

    def _widest(self, name: str) -> int:
        """Bytes of the largest value of a column that is kept, or more."""
        if not self.extent:
            return 0
        kept = self._kept(name)
        key = ("widest", kept.serial)
        seen, widest = cast("tuple[int, int]", self._cache.peek(key) or (0, 0))
        if seen < self.extent:
            array = kept.view(self.extent).array
            added = row_bytes(array, np.arange(seen, self.extent))
            widest = max(widest, int(added.max()))
            self._cache.put(key, (self.extent, widest), 200)
        return widest
