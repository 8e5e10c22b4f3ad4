"""The field records of a Lance schema, edited in place: bytes come in, the same bytes go out.

Lance gives a schema away as one protobuf message per field, parents before children, and takes it
back in the same form. It is the only form that carries field ids, by which data files find their
columns; making a schema anew from Arrow would number the fields anew. Only the wire format is read
here, so whatever else a message holds stays as it was. Other messages of Lance are only looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.errors import InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance.schema import LanceSchema

NO_PARENT: Final = -1

# Numbers of `lance.file.Field` members; other members pass through unread.
_NAME: Final = 2
_ID: Final = 3
_PARENT_ID: Final = 4
_NULLABLE: Final = 6

# A member starts with its number and a wire type, which says how long its value is.
_VARINT: Final = 0
_EIGHT_BYTES: Final = 1
_COUNTED: Final = 2
_FOUR_BYTES: Final = 5

_SIGN: Final = 1 << 63
_WORD: Final = 1 << 64


@dataclass(frozen=True, slots=True)
class FieldRecord:
    """One field of a schema, as the bytes Lance gave."""

    content: bytes

    @property
    def name(self) -> str:
        value = self._last(_NAME, b"")
        if not isinstance(value, bytes):
            raise _unreadable()
        return value.decode()

    @property
    def id(self) -> int:
        return self._number(_ID)

    @property
    def parent_id(self) -> int:
        """The id of the field around this one, NO_PARENT for a column."""
        return self._number(_PARENT_ID)

    def renamed(self, name: str) -> FieldRecord:
        """The same field under another name."""
        text = name.encode()
        return self._replaced(_NAME, _COUNTED, _varint(len(text)) + text)

    def with_nullable(self, *, is_nullable: bool) -> FieldRecord:
        """The same field, with or without nulls."""
        return self._replaced(_NULLABLE, _VARINT, _varint(int(is_nullable)))

    def renumbered(self, id: int, parent_id: int) -> FieldRecord:
        """The same field under another id, below another parent."""
        numbered = self._replaced(_ID, _VARINT, _varint(id))
        return numbered._replaced(_PARENT_ID, _VARINT, _varint(parent_id))

    def _number(self, member: int) -> int:
        value = self._last(member, 0)
        if not isinstance(value, int):
            raise _unreadable()
        return value - _WORD if value >= _SIGN else value

    def _last(self, member: int, default: int | bytes) -> int | bytes:
        """A member given twice means the last one; one not given has its type's zero value."""
        found = [part.value for part in _parts(self.content) if part.member == member]
        return found[-1] if found else default

    def _replaced(self, member: int, wire: int, value: bytes) -> FieldRecord:
        others = b"".join(part.raw for part in _parts(self.content) if part.member != member)
        return FieldRecord(others + _varint(member << 3 | wire) + value)


def split_schema(schema: LanceSchema) -> tuple[str, list[FieldRecord]]:
    """A schema as Lance pickles it: its metadata, and one record per field."""
    reduced: Any = schema.__reduce__()
    metadata, *records = reduced[1]
    return metadata, [FieldRecord(record) for record in records]


@dataclass(frozen=True, slots=True)
class _Part:
    member: int
    value: int | bytes
    raw: bytes


def members(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The members of any message, by number, in the order in which they were written."""
    return ((part.member, part.value) for part in _parts(content))


def without(content: bytes, path: Sequence[int]) -> bytes:
    """A message without one of its members: by number, those around it first.

    >>> without(bytes([0x08, 1, 0x12, 4, 0x08, 2, 0x10, 3]), (2, 1)).hex(" ")
    '08 01 12 02 10 03'
    """
    member, *inside = path
    kept = []
    for part in _parts(content):
        if part.member != member:
            kept.append(part.raw)
        elif inside and isinstance(part.value, bytes):
            value = without(part.value, inside)
            kept.append(_varint(member << 3 | _COUNTED) + _varint(len(value)) + value)
    return b"".join(kept)


def packed_numbers(value: int | bytes) -> Iterator[int]:
    """A member that is a list of numbers, or one of them where each was written by itself."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = _read_varint(value, at)
        yield number


def _parts(content: bytes) -> Iterator[_Part]:
    at = 0
    while at < len(content):
        start = at
        tag, at = _read_varint(content, at)
        value, at = _read_value(content, at, tag & 7)
        yield _Part(tag >> 3, value, content[start:at])


def _read_value(content: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
    if wire == _VARINT:
        return _read_varint(content, at)
    if wire == _COUNTED:
        length, at = _read_varint(content, at)
    elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
        length = 8 if wire == _EIGHT_BYTES else 4
    else:
        raise _unreadable()
    if at + length > len(content):
        raise _unreadable()
    return content[at : at + length], at + length


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Seven bits per byte, lowest first; the top bit says that more follow."""
    value = shift = 0
    while at < len(content):
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
    raise _unreadable()


def _varint(number: int) -> bytes:
    """Negative numbers are written as their 64-bit complement."""
    left = number % _WORD
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _unreadable() -> InvariantBroken:
    return InvariantBroken(
        "a field record or description by Lance is a protobuf message we can read"
    )
