"""Arrow columns that grow at their end: arrays come in, views of the first so many rows go out.

The buffers of a column are kept apart, each with room behind it, and Arrow is shown as much of them
as a view has rows. Adding rows copies those rows alone, and no view ever changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.errors import BudgetExceeded, InvariantBroken
from omnigraph_core.topology.growing import GrowingArray, GrowingBits

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_COUNTED: Final = 2**31 - 1
"""Bytes of texts, or members of lists, that one array can count."""


class GrowingColumn:
    """Values of one type in a row. One thread at a time adds, any number look on."""

    __slots__ = ("_content", "_length", "_offsets", "_type", "_valid")

    def __init__(self, type: pa.DataType) -> None:
        self._type = type
        self._length = 0
        self._valid: GrowingBits | None = None
        """Which values are not null, from the first null on."""
        self._offsets: GrowingArray | None = None
        """Where each text or list begins, and where the last one ends."""
        if _is_counted(type):
            self._offsets = GrowingArray(np.zeros(1, np.int32))
        self._content: GrowingColumn | GrowingArray | GrowingBits = _content(type)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        offsets = 0 if self._offsets is None else self._offsets.nbytes
        valid = 0 if self._valid is None else self._valid.nbytes
        return offsets + valid + self._content.nbytes

    def reserve(self, arrays: Sequence[pa.Array]) -> None:
        """Make room for these values at once: they are appended next."""
        content = self._content
        if self._offsets is not None:
            self._offsets.reserve(sum(map(len, arrays)))
            spans = [(array, *_span(array)) for array in arrays if len(array)]
            if isinstance(content, GrowingColumn):
                content.reserve([array.values.slice(a, b - a) for array, a, b in spans])
            elif isinstance(content, GrowingArray):
                content.reserve(sum(last - first for _, first, last in spans))
        elif isinstance(content, GrowingColumn):
            content.reserve([_members(array) for array in arrays])
        elif isinstance(content, GrowingArray):
            content.reserve(sum(map(len, arrays)))

    def append(self, array: pa.Array) -> None:
        """Put values at the end.

        Raises:
            BudgetExceeded: no array can hold so many; nothing was added.
        """
        if array.type != self._type:
            raise InvariantBroken(
                f"a column of {self._type} grows by such values, not {array.type}"
            )
        if len(array):
            self._append_content(array)
            self._append_valid(array)
            self._length += len(array)

    def view(self, length: int) -> pa.Array:
        """The first values as one array."""
        valid = None if self._valid is None else pa.py_buffer(self._valid.view())
        content = self._content
        if isinstance(content, GrowingColumn):
            if self._offsets is None:
                child = content.view(length * self._type.list_size)
                return pa.Array.from_buffers(self._type, length, [valid], children=[child])
            offsets = self._offsets.view(length + 1)
            child = content.view(int(offsets[-1]))
            buffers = [valid, pa.py_buffer(offsets)]
            return pa.Array.from_buffers(self._type, length, buffers, children=[child])
        buffers = [valid, pa.py_buffer(content.view())]
        if self._offsets is not None:
            buffers.insert(1, pa.py_buffer(self._offsets.view(length + 1)))
        return pa.Array.from_buffers(self._type, length, buffers)

    def _append_content(self, array: pa.Array) -> None:
        content, start, length = self._content, array.offset, len(array)
        if self._offsets is not None:
            self._append_counted(self._offsets, array)
        elif isinstance(content, GrowingColumn):
            content.append(_members(array))
        elif isinstance(content, GrowingBits):
            content.append(_bits(array.buffers()[1], start, length))
        else:
            items = np.frombuffer(array.buffers()[1] or b"", content.view(0).dtype)
            content.append(items[start : start + length])

    def _append_counted(self, offsets: GrowingArray, array: pa.Array) -> None:
        places = _places(array)
        first, last = _span(array)
        before = int(offsets.view()[-1])
        if before + last - first > _MOST_COUNTED:
            raise BudgetExceeded("values of a column", before + last - first, _MOST_COUNTED)
        content = self._content
        if isinstance(content, GrowingColumn):
            content.append(array.values.slice(first, last - first))
        elif isinstance(content, GrowingArray):
            data = array.buffers()[2]
            content.append(np.frombuffer(b"" if data is None else data, np.uint8)[first:last])
        offsets.append(places[1:] + np.int32(before - first))

    def _append_valid(self, array: pa.Array) -> None:
        if self._valid is None:
            if not array.null_count:
                return
            valid = GrowingBits()
            valid.append(np.ones(self._length, np.bool_))
            self._valid = valid
        if array.null_count:
            bits = _bits(array.buffers()[0], array.offset, len(array))
        else:
            bits = np.ones(len(array), np.bool_)
        self._valid.append(bits)


def _members(array: pa.FixedSizeListArray) -> pa.Array:
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def _places(array: pa.Array) -> np.ndarray:
    """Where each text or list begins, and where the last one ends."""
    places = np.frombuffer(array.buffers()[1], np.int32)
    return places[array.offset : array.offset + len(array) + 1]


def _span(array: pa.Array) -> tuple[int, int]:
    """Where the first text or list begins, and where the last one ends."""
    places = _places(array)
    return int(places[0]), int(places[-1])


def _is_counted(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type) or pa.types.is_list(type))


def _content(type: pa.DataType) -> GrowingColumn | GrowingArray | GrowingBits:
    if pa.types.is_list(type) or pa.types.is_fixed_size_list(type):
        return GrowingColumn(type.value_type)
    if _is_counted(type):
        return GrowingArray(np.zeros(0, np.uint8))
    if pa.types.is_boolean(type):
        return GrowingBits()
    if pa.types.is_primitive(type):
        return GrowingArray(np.zeros(0, f"u{type.bit_width // 8}"))
    raise InvariantBroken(f"values of {type} are not kept in memory")


def _bits(buffer: pa.Buffer, start: int, length: int) -> np.ndarray:
    first, inside = divmod(start, 8)
    packed = np.frombuffer(buffer, np.uint8)[first:]
    bits = np.unpackbits(packed, count=inside + length, bitorder="little")[inside:]
    return bits.view(np.bool_)
