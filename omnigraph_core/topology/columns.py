"""Whole columns by dense number: a table's version comes in, contiguous arrays go out.

A column is put together from what is kept of other versions and a read of the fragments that are
new. Several columns are read in one pass; those that would take too much memory are told before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.storage.row_space import column_identities, read_fragments
from omnigraph_core.topology.reuse import plan_parts
from omnigraph_core.topology.widths import Widths, fixed_width

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.row_space import FragmentState
    from omnigraph_core.topology.memory import ByteCache
    from omnigraph_core.topology.reuse import Part, Rows
    from omnigraph_core.topology.row_numbers import RowNumbers

_MOST_TEXT: Final = 2**31 - 1
"""Bytes that one array of texts or lists can count."""

_RECENT: Final = 3
"""Versions of a column that a newer one is put together from."""


class Column:
    """One column of one version, and its values as NumPy sees them."""

    __slots__ = ("_mask", "_values", "array", "states")

    def __init__(self, array: pa.Array, states: tuple[FragmentState, ...]) -> None:
        self.array = array
        self.states = states
        self._values: np.ndarray | None = None
        self._mask: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """With what `numpy` adds once it is asked."""
        count = len(self.array)
        is_unpacked = pa.types.is_boolean(self.array.type)
        masks = (count if self.array.null_count else 0) + (count if is_unpacked else 0)
        return int(self.array.nbytes) + masks + 500

    def numpy(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Values, whatever they are where the column is null, and which are not null.

        Raises:
            InvariantBroken: the column has no numbers, truths or dates.
        """
        if self._values is None:
            if self.array.null_count:
                self._mask = _bits(self.array, 0)
            self._values = _numbers(self.array)
        return self._values, self._mask


class ColumnMaker:
    """Makes columns of one version; what it makes is for the cache to keep."""

    def __init__(self, table: Table, rows: RowNumbers, cache: ByteCache) -> None:
        self._table = table
        self._rows = rows
        self._cache = cache
        self._identities = column_identities(table)
        self._widths = Widths(table, rows, cache, self._identities)

    def columns(self, names: Sequence[str], keys: Sequence[Hashable]) -> list[tuple[Column, int]]:
        """These columns, each with its size; the keys are what the cache will have them under."""
        plans = {name: self.parts("column", name) for name in names}
        chunks = self._chunks(plans)
        made = [self._assembled(name, plans[name], chunks[name]) for name in names]
        for name, key in zip(names, keys, strict=True):
            self.remember("column", name, key)
        return [(column, column.nbytes) for column in made]

    def parts(self, kind: str, name: str) -> list[Part]:
        """What to put something of this column together from."""
        known = cast("tuple[Hashable, ...]", self._cache.peek(self._recent_key(kind, name)) or ())
        kept = [cast("Rows", held) for key in known if (held := self._cache.peek(key)) is not None]
        return plan_parts(self._rows, kept)

    def remember(self, kind: str, name: str, key: Hashable) -> None:
        """Have later versions look here for what they can take over."""
        recent = self._recent_key(kind, name)
        known = cast("tuple[Hashable, ...]", self._cache.peek(recent) or ())
        others = tuple(item for item in known if item != key)
        self._cache.put(recent, (key, *others[: _RECENT - 1]), 500)

    def fitting(self, names: Sequence[str], most_bytes: float) -> list[str]:
        """Which of these columns take no more memory than that, as far as a sample tells."""
        blobs = self._table.blobs_of(names)
        wanted = [name for name in names if name not in blobs]
        widths = self._widths.of(wanted)

        def limit(name: str) -> float:
            is_fixed = fixed_width(self._table.schema.field(name).type) is not None
            return most_bytes if is_fixed else min(most_bytes, _MOST_TEXT * 0.8)

        return [name for name in wanted if widths[name] * self._rows.count <= limit(name)]

    @property
    def _place(self) -> tuple[str, str]:
        return self._table.store.root.text, self._table.location

    def _recent_key(self, kind: str, name: str) -> tuple[object, ...]:
        return ("recent", kind, self._place, self._identities[name])

    def _chunks(self, plans: dict[str, list[Part]]) -> dict[str, _Chunks]:
        """What has to be read, columns that lack the same fragments in one pass."""
        together: dict[tuple[int, ...], list[str]] = {}
        for name, parts in plans.items():
            lacking = [part.fragments for part in parts if part.source is None]
            together.setdefault(tuple(item for ids in lacking for item in ids), []).append(name)
        chunks: dict[str, _Chunks] = {}
        for fragments, names in together.items():
            batches = list(read_fragments(self._table, names, fragments))
            for place, name in enumerate(names):
                chunks[name] = _Chunks([batch.column(place) for batch in batches])
        return chunks

    def _assembled(self, name: str, parts: list[Part], chunks: _Chunks) -> Column:
        kind = self._table.schema.field(name).type
        pieces: list[pa.Array] = [pa.array([], kind)]  # two pieces at least: a copy of its own
        for part in parts:
            if part.source is None:
                pieces += chunks.take(part.length)
            else:
                pieces += _cut(cast("Column", part.source).array, part)
        _check_size(pieces, self._table, name)
        array = pa.concat_arrays(pieces)
        if len(array) != self._rows.count:
            raise InvariantBroken(f"`{self._table.location}` has as many rows as it says")
        return Column(array, self._rows.states)


class _Chunks:
    """Arrays that were read one after another, handed out by number of rows."""

    def __init__(self, arrays: list[pa.Array]) -> None:
        self._arrays: Iterator[pa.Array] = iter(arrays)
        self._rest: pa.Array | None = None

    def take(self, length: int) -> list[pa.Array]:
        taken: list[pa.Array] = []
        while length:
            array = self._rest if self._rest is not None else next(self._arrays, None)
            if array is None:
                break
            taken.append(array.slice(0, length))
            self._rest = array.slice(length) if len(array) > length else None
            length -= len(taken[-1])
        return taken


def _cut(array: pa.Array, part: Part) -> list[pa.Array]:
    runs = part.runs()
    if runs is None:
        return [array.take(pa.array(part.places))]
    return [array.slice(start, end - start) for start, end in runs]


def _check_size(pieces: list[pa.Array], table: Table, name: str) -> None:
    if fixed_width(pieces[0].type) is not None:
        return
    if sum(piece.nbytes for piece in pieces) > _MOST_TEXT:
        raise InvariantBroken(f"`{name}` of `{table.location}` is read whole only if it fits")


def _numbers(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_boolean(kind):
        return _bits(array, 1)
    if not pa.types.is_primitive(kind):
        raise InvariantBroken(f"values of {kind} are not numbers")
    plain = {pa.date32(): pa.int32(), pa.date64(): pa.int64()}.get(kind, kind)
    values = np.frombuffer(array.buffers()[1] or b"", plain.to_pandas_dtype(), len(array))
    values.flags.writeable = False
    return values


def _bits(array: pa.Array, buffer: int) -> np.ndarray:
    """A buffer of bits as truths; arrays here begin at their first bit."""
    packed = np.frombuffer(array.buffers()[buffer] or b"", np.uint8)
    bits = np.unpackbits(packed, count=len(array), bitorder="little").view(np.bool_)
    bits.flags.writeable = False
    return bits
