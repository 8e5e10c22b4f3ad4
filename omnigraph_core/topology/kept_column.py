"""A column in memory, by number: rows are added at its end, a version sees as much as it has.

All versions that follow one numbering share it. A number that had no row in the version its item
was read for has none here either: a version in which it has one needs the column made again.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.topology.growing_column import GrowingColumn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.topology.numbering import Numbering
    from omnigraph_core.topology.reuse import Part
    from omnigraph_core.topology.row_numbers import RowNumbers

_SERIALS: Final = itertools.count(1)
_MOST_VIEWS: Final = 4


class Column:
    """One column of one version, and its values as NumPy sees them."""

    __slots__ = ("_mask", "_values", "array")

    def __init__(self, array: pa.Array) -> None:
        self.array = array
        self._values: np.ndarray | None = None
        self._mask: np.ndarray | None = None

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


class KeptColumn:
    """The values of a column under one numbering. One thread at a time adds, any number look on."""

    __slots__ = ("_column", "_type", "_views", "filled", "missing", "numbering", "serial")

    def __init__(self, numbering: Numbering, type: pa.DataType) -> None:
        self.numbering = numbering
        self.serial = next(_SERIALS)
        """What is derived from the values goes by this: it is theirs alone."""
        self.filled = 0
        """Numbers below this have a value."""
        self.missing = np.zeros(0, np.int32)
        """Those of them whose value was not read, ascending: null."""
        self._type = type
        self._column = GrowingColumn(type)
        self._views: dict[int, Column] = {}

    @property
    def nbytes(self) -> int:
        """With what NumPy's side of it adds once that is asked for."""
        is_unpacked = pa.types.is_primitive(self._type) or pa.types.is_boolean(self._type)
        return self._column.nbytes + (2 * self.filled if is_unpacked else 0) + 500

    def covers(self, rows: RowNumbers) -> bool:
        """Whether every row of a version has its value here."""
        if rows.extent > self.filled:
            return False
        return not len(self.missing) or not rows.which_live(self.missing).any()

    def view(self, extent: int) -> Column:
        """The values of the first so many numbers."""
        found = self._views.get(extent)
        if found is None:
            found = Column(self._column.view(extent))
            if len(self._views) >= _MOST_VIEWS:
                self._views = {}
            self._views[extent] = found
        return found

    def append(self, parts: Sequence[Part], chunks: Chunks) -> None:
        """Add the values of numbers that follow the last one.

        Raises:
            BudgetExceeded: no array holds so many.
        """
        unread = [self.missing]
        values: list[pa.Array] = []
        start = self.filled
        for part in parts:
            if part.source is not None:
                pieces = _cut(part.source.view(part.source.filled).array, part)
            elif part.fragment is None:
                pieces = [pa.nulls(part.length, self._type)]
                unread.append(np.arange(start, start + part.length, dtype=np.int32))
            else:
                pieces = chunks.take(part)
                if part.holes is not None:
                    unread.append((start + part.holes).astype(np.int32))
            values += pieces
            start += part.length
        self._column.reserve(values)
        for piece in values:
            self._column.append(piece)
        if len(unread) > 1:
            self.missing = np.concatenate(unread)
        self.filled = len(self._column)  # last: from now on others look there


class Chunks:
    """Arrays that were read one after another, handed out part by part."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        self._arrays: Iterator[pa.Array] = iter(arrays)
        self._rest: pa.Array | None = None

    def take(self, part: Part) -> list[pa.Array]:
        """The values of a part's numbers, null where a number has no row.

        Raises:
            InvariantBroken: fewer rows were read.
        """
        holes = part.holes
        live = part.length - (0 if holes is None else len(holes))
        taken = self._taken(live)
        if sum(map(len, taken)) != live:
            raise InvariantBroken("a fragment has as many rows as it says")
        if holes is None:
            return taken
        is_live = np.ones(part.length, np.bool_)
        is_live[holes] = False
        places = pa.array(np.cumsum(is_live) - 1, mask=~is_live)
        values = pa.concat_arrays(taken) if taken else None
        return [pa.nulls(part.length) if values is None else values.take(places)]

    def _taken(self, length: int) -> list[pa.Array]:
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
