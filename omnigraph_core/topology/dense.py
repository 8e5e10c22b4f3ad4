"""One table at one physical version: its rows by dense number.

A number is the place of a live row in scan order. Columns, codes, vectors and the way from ids to
numbers are made when they are first asked for and kept in the cache under the table's identity:
a handle is cheap, and all handles of one version share everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import BudgetExceeded, InvariantBroken
from omnigraph_core.interruption import pause
from omnigraph_core.storage.lookup import ADDRESS, find_rows, take_rows
from omnigraph_core.storage.row_space import column_identities, iter_addresses, read_fragments
from omnigraph_core.topology.columns import Column, ColumnMaker
from omnigraph_core.topology.identity_map import IdentityMap, build_identity_map
from omnigraph_core.topology.matrices import Matrix, build_matrix
from omnigraph_core.topology.row_numbers import RowNumbers
from omnigraph_core.topology.widths import Widths, fixed_width, row_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache

ID: Final = "id"

_SMALL: Final = 4_096
"""Rows up to which a table is read whole rather than asked for single rows."""

_PATIENCE: Final = 2
"""Times a large table that is not in memory is asked for a few rows before it is read whole."""

_FEW: Final = 256
"""Rows that are cheaper to ask the table for than a whole column of it."""

_MOST_MAPPED: Final = 4_000_000
"""Rows beyond which ids are always looked up in the table's index."""

_TAKEN_BYTES: Final = 16 << 20
"""Of rows that are asked for at once, if they are like the average: some may be far wider."""

_MOST_BYTES: Final = 2**31 - 1
"""That one array of texts or lists can count."""

_CERTAIN: Final = 16
"""Values that fit one array, whichever they are."""


class DenseTable:
    """The rows of one version of a table by number. Immutable to callers, safe for threads."""

    __slots__ = ("_cache", "_maker", "_rows", "identity", "table")

    def __init__(self, table: Table, cache: ByteCache) -> None:
        self.table = table
        self.identity = (table.store.root.text, table.location, table.physical_version)
        self._cache = cache
        self._rows: RowNumbers | None = None
        self._maker: ColumnMaker | None = None

    @property
    def count(self) -> int:
        return self._numbering().count

    @property
    def fragments(self) -> tuple[FragmentState, ...]:
        return self._numbering().states

    def column(self, name: str) -> pa.Array:
        """A whole column by number, one contiguous array.

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
        """Whether a column is in memory already."""
        return self._cache.peek(("column", self.identity, name)) is not None

    def fits(self, name: str) -> bool:
        """Whether a column is small enough to be kept whole, as far as some rows tell."""
        return bool(self._making().fitting((name,), self._cache.capacity / 4))

    def values(self, name: str, numbers: np.ndarray | None) -> pa.Array:
        """The values of these rows in the order given, null for -1; of all rows for None."""
        if self._is_kept_for(name, numbers):
            array = self.column(name)
            if numbers is None:
                return array
            if len(numbers) > _CERTAIN:
                self._check_size(name, array, numbers)
            return array.take(_indices(numbers))
        if numbers is None:
            ids = [state.id for state in self.fragments]
            return self._joined(
                name, (b.column(0) for b in read_fragments(self.table, [name], ids))
            )
        present = np.flatnonzero(numbers >= 0)
        if len(present) == len(numbers):
            return self._taken(name, numbers)
        places = np.full(len(numbers), -1, np.int64)
        places[present] = np.arange(len(present))
        return self._taken(name, numbers[present]).take(_indices(places))

    def measure(self, name: str, numbers: np.ndarray, negligible: int) -> np.ndarray | float:
        """Bytes of the values of these rows, each; about as many per row if they are not in memory.

        Args:
            negligible: 0 is enough of an answer if all of them together take no more.
        """
        known = cast("int | None", self._cache.peek(("widest", self.identity, name)))
        if known is None and not self.is_resident(name):
            is_asked_for = len(numbers) <= _FEW and self.count > _SMALL
            if is_asked_for or not self.fits(name):
                return self._width(name)
        if (self._widest(name) if known is None else known) * len(numbers) <= negligible:
            return 0.0
        return _sizes(self.column(name), numbers)

    def numpy(self, name: str) -> tuple[np.ndarray, np.ndarray | None]:
        """A column of numbers, truths or dates, and which values are not null (None: all).

        Dates are their integers. Where the column is null the value means nothing.
        """
        return self._column(name).numpy()

    def codes(self, name: str) -> tuple[np.ndarray, pa.Array]:
        """A code per row, int32 and -1 for null, and the distinct values the codes stand for."""
        if not self.count:
            return _coded(self.column(name))
        key = ("codes", self.identity, name)
        return self._cache.get(key, lambda: _coded(self.column(name)), _coded_bytes)

    def try_distinct_count(self, name: str) -> int | None:
        """How many different values a column has, if its codes are in memory."""
        coded = self._cache.peek(("codes", self.identity, name))
        return None if coded is None else len(cast("tuple[np.ndarray, pa.Array]", coded)[1])

    def matrix(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A column of vectors scaled to length 1, float32, and which rows have a usable one.

        The others are zeros: null, without a direction, or without a finite length.
        """
        matrix = self._matrix(name)
        return matrix.rows, matrix.mask

    def number_of(self, id: str) -> int:
        """The number of the row with an id; -1 if there is none."""
        known = self._id_map(1)
        if known is not None:
            number = known.recent.get(id)
            return known.number(self.column(ID), id) if number is None else number
        found = find_rows(self.table, ID, pa.array([id], pa.utf8()), [], has_addresses=True)
        return int(self.numbers_at(found.column(ADDRESS).to_numpy())[0]) if len(found) else -1

    def numbers_of(self, ids: pa.Array) -> np.ndarray:
        """The numbers of the rows with these ids, int32; -1 where there is none."""
        known = self._id_map(len(ids))
        if known is not None:
            return known.numbers(self.column(ID), ids)
        found = find_rows(self.table, ID, ids, [ID], has_addresses=True)
        numbers = self.numbers_at(found.column(ADDRESS).to_numpy())
        places = pc.index_in(ids, found.column(ID).combine_chunks(), skip_nulls=True)
        result: np.ndarray = np.append(numbers, np.int32(-1)).take(places.fill_null(-1).to_numpy())
        return result

    def addresses_of(self, numbers: np.ndarray) -> np.ndarray:
        """Where these rows are, as Lance counts: unsigned 64 bits; the numbers must be there."""
        return self._numbering().addresses_of(numbers)

    def numbers_at(self, addresses: np.ndarray) -> np.ndarray:
        """The numbers of the rows at these addresses, int32; -1 where there is no row."""
        return self._numbering().numbers_at(addresses)

    def find_where(self, sql: str | None) -> np.ndarray:
        """The ascending numbers, int32, of the rows a filter in Lance's SQL holds for."""
        if sql is None:
            return np.arange(self.count, dtype=np.int32)
        found = [self.numbers_at(addresses) for addresses in iter_addresses(self.table, sql)]
        return np.sort(np.concatenate([np.zeros(0, np.int32), *found]))

    def _numbering(self) -> RowNumbers:
        if self._rows is None:
            self._rows = self._cache.get(
                ("rows", self.identity),
                lambda: RowNumbers(self.table, self._cache),
                lambda rows: rows.nbytes,
            )
        return self._rows

    def _making(self) -> ColumnMaker:
        if self._maker is None:
            self._maker = ColumnMaker(self.table, self._numbering(), self._cache)
        return self._maker

    def _column(self, name: str) -> Column:
        kept = self._cache.peek(("column", self.identity, name))
        while kept is None:
            kept = self._load((name,))[name]
        return cast("Column", kept)

    def _load(self, names: Sequence[str]) -> dict[str, Column | None]:
        """Make these columns in one pass; None where another thread failed to."""
        if blobs := self.table.blobs_of(names):
            raise InvariantBroken(f"bytes are not kept in memory: {', '.join(blobs)}")
        if not self.count:  # a graph made anew at the same place begins at the same version
            fields = (self.table.schema.field(name) for name in names)
            return {field.name: Column(pa.array([], field.type), ()) for field in fields}
        keys: dict[Hashable, str] = {("column", self.identity, name): name for name in names}

        def build(wanted: Sequence[Hashable]) -> list[tuple[Column, int]]:
            return self._making().columns([keys[key] for key in wanted], wanted)

        made = self._cache.get_many(tuple(keys), build)
        return {name: made.get(key) for key, name in keys.items()}

    def _matrix(self, name: str) -> Matrix:
        key = ("matrix", self.identity, name)

        def build() -> Matrix:
            column = cast("Column | None", self._cache.peek(("column", self.identity, name)))
            maker = self._making()
            matrix = build_matrix(self.table, self._numbering(), maker, name, column)
            maker.remember("matrix", name, key)
            return matrix

        return self._cache.get(key, build, lambda matrix: matrix.nbytes) if self.count else build()

    def _id_map(self, wanted: int) -> IdentityMap | None:
        """The way from ids to numbers, made when it pays for so many ids; None if it does not."""
        key = ("ids", self.identity)
        kept = self._cache.peek(key)
        if kept is not None:
            return cast("IdentityMap", kept)
        return self._make_id_map(key) if self._is_map_due(wanted) else None

    def _is_map_due(self, wanted: int) -> bool:
        if self.count <= _SMALL:
            return True
        if wanted <= _FEW and (self.count > _MOST_MAPPED or not self._is_repeated(ID)):
            return False
        return self.fits(ID)

    def _make_id_map(self, key: Hashable) -> IdentityMap:
        root, location, _ = self.identity
        newest = ("newest ids", root, location)

        def build() -> IdentityMap:
            older = cast("IdentityMap | None", self._cache.peek(self._cache.peek(newest)))
            made = build_identity_map(self.column(ID), self.fragments, older)
            self._cache.put(newest, key, 200)
            return made

        return self._cache.get(key, build, lambda made: made.nbytes)

    def _is_kept_for(self, name: str, numbers: np.ndarray | None) -> bool:
        """Whether to use the whole column for these rows."""
        if self.is_resident(name):
            return True
        if not self.fits(name):
            return False
        if numbers is None or len(numbers) > _FEW or self.count <= _SMALL:
            return True
        return self._is_repeated(name)

    def _is_repeated(self, what: str) -> bool:
        """Whether a few rows of this version were asked for often enough to read all."""
        uses: list[int] = self._cache.get(("uses", self.identity, what), lambda: [0], lambda _: 200)
        uses[0] += 1
        return uses[0] > _PATIENCE

    def _taken(self, name: str, numbers: np.ndarray) -> pa.Array:
        distinct, places = np.unique(numbers, return_inverse=True)
        array = self._joined(name, self._portions(name, self.addresses_of(distinct)))
        if _ascends(numbers):
            return array
        if len(places) > len(array):
            _check_bytes(name, int(_sizes(array, places).sum()))
        return array.take(pa.array(places))

    def _portions(self, name: str, addresses: np.ndarray) -> Iterator[pa.Array]:
        """The values at these addresses, as many at a time as are not too large."""
        step = len(addresses)
        if name not in self.table.blobs_of((name,)):
            step = min(step, int(_TAKEN_BYTES / max(self._width(name), 1)))
        for start in range(0, len(addresses), max(step, 1)):
            pause()
            chosen = pa.array(addresses[start : start + max(step, 1)])
            yield from take_rows(self.table, chosen, [name]).column(name).chunks

    def _joined(self, name: str, arrays: Iterable[pa.Array]) -> pa.Array:
        """One array of several.

        Raises:
            BudgetExceeded: no array is that large.
        """
        kind = self.table.schema.field(name).type
        kept: list[pa.Array] = []
        total = 0
        for array in arrays:
            kept.append(array)
            total += int(array.nbytes)
            if not pa.types.is_large_binary(kind) and fixed_width(kind) is None:
                _check_bytes(name, total)
        return kept[0] if len(kept) == 1 else pa.concat_arrays([pa.array([], kind), *kept])

    def _width(self, name: str) -> float:
        widths = Widths(self.table, self._numbering(), self._cache, column_identities(self.table))
        return widths.of((name,))[name]

    def _check_size(self, name: str, array: pa.Array, numbers: np.ndarray) -> None:
        """Refuse values that no array can hold; one value may be asked for many times."""
        if fixed_width(array.type) is None and self._widest(name) * len(numbers) > _MOST_BYTES:
            _check_bytes(name, int(_sizes(array, numbers).sum()))

    def _widest(self, name: str) -> int:
        """Bytes of the largest value of a column that is kept."""
        if not self.count:
            return 0

        def build() -> int:
            array = self.column(name)
            return int(row_bytes(array, np.arange(len(array))).max())

        return self._cache.get(("widest", self.identity, name), build, lambda _: 200)


def _indices(numbers: np.ndarray) -> pa.Array:
    """Numbers as Arrow takes rows by: null for -1."""
    if len(numbers) and numbers.min() < 0:
        return pa.array(numbers, mask=numbers < 0)
    return pa.array(numbers)


def _sizes(array: pa.Array, numbers: np.ndarray) -> np.ndarray:
    """Bytes of the values with these numbers, 0 for -1."""
    if not len(array):
        return np.zeros(len(numbers), np.int64)
    sizes = row_bytes(array, np.maximum(numbers, 0))
    sizes[numbers < 0] = 0
    return sizes


def _check_bytes(name: str, byte_count: int) -> None:
    if byte_count > _MOST_BYTES:
        raise BudgetExceeded(f"values of {name}", byte_count, _MOST_BYTES)


def _ascends(numbers: np.ndarray) -> bool:
    return bool((np.diff(numbers) > 0).all())


def _coded(column: pa.Array) -> tuple[np.ndarray, pa.Array]:
    encoded = column.dictionary_encode()
    codes = encoded.indices
    numbers = (codes.fill_null(-1) if codes.null_count else codes).to_numpy()
    numbers.flags.writeable = False
    return numbers, encoded.dictionary


def _coded_bytes(coded: tuple[np.ndarray, pa.Array]) -> int:
    return int(coded[0].nbytes + coded[1].nbytes) + 500
