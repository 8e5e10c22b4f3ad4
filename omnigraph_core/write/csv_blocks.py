"""CSV bytes cut into blocks of whole rows, and where the rows of a block are.

A line break inside a quoted field ends no row. Text behind the closing quote of a field is marked;
a quoted field that never ends is an error, because nobody knows what it swallowed.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK_BYTES: Final = 16 << 20
_LONGEST_ROW: Final = 1 << 29
_COMMA, _QUOTE, _NEWLINE, _RETURN = b',"\n\r'
_BESIDE_QUOTES: Final = np.isin(np.arange(256), [_COMMA, _QUOTE, _NEWLINE, _RETURN])
"""By byte: whether it may stand before an opening quote and behind a closing one."""
_TEXT: Final = rb'(?>[^"]*(?:""[^"]*)*)'
_OPEN: Final = rb"[^,\r\n]*"
_BREAK: Final = rb"(?:\r\n|\n|\r)"
_FIELD: Final = re.compile(rb'(?:"(%s)"(%s)|(?!")(%s))(?:,|%s)' % (_TEXT, _OPEN, _OPEN, _BREAK))
"""A field: its text if quoted, what stands behind the quote, its text if not."""


def _row_pattern(field: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?>(?:%s,)*)%s%s" % (field, field, _BREAK))


_ROW: Final = _row_pattern(rb'(?:"%s"|(?!")%s)' % (_TEXT, _OPEN))
_ODD_ROW: Final = _row_pattern(rb'(?:"%s"%s|(?!")%s)' % (_TEXT, _OPEN, _OPEN))


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Whole rows: their bytes, where each begins and ends, and the line it begins at."""

    data: bytes
    starts: np.ndarray
    ends: np.ndarray
    """Behind the line break."""
    lines: np.ndarray
    odd: np.ndarray
    """Whether there is text behind the closing quote of a field."""

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, row: int) -> bytes:
        """A row without its line break."""
        return self.data[self.starts[row] : self.ends[row]].rstrip(b"\r\n")

    def without_first(self) -> RowBlock:
        cut = int(self.ends[0])
        return RowBlock(
            self.data[cut:],
            self.starts[1:] - cut,
            self.ends[1:] - cut,
            self.lines[1:],
            self.odd[1:],
        )

    def where(self, mask: np.ndarray) -> RowBlock:
        """The rows at which the mask is true."""
        chosen = zip(self.starts[mask].tolist(), self.ends[mask].tolist(), strict=True)
        data = b"".join(self.data[start:end] for start, end in chosen)
        ends = np.cumsum((self.ends - self.starts)[mask])
        return RowBlock(data, _starts(ends), ends, self.lines[mask], self.odd[mask])


def iter_row_blocks(stream: IO[bytes], size: int = _BLOCK_BYTES) -> Iterator[RowBlock]:
    """The stream in blocks of about so many bytes; a byte order mark at its start is dropped.

    Raises:
        RecordError: a quoted field does not end, or a row does not within reason.
    """
    line, kept, is_last = 1, b"", False
    data = stream.read(size).removeprefix(codecs.BOM_UTF8)
    while not is_last:
        is_last = not data
        data = kept + data
        if is_last and data and not data.endswith((b"\n", b"\r")):
            data += b"\n"
        breaks = _line_breaks(data, is_last=is_last)
        ends, odd = _rows(data, breaks)
        cut = int(ends[-1]) if len(ends) else 0
        if cut:
            starts = _starts(ends)
            lines = line + np.searchsorted(breaks, starts)
            yield RowBlock(data[:cut], starts, ends, lines, odd)
            line += int(np.searchsorted(breaks, cut))
        kept = data[cut:]
        if kept and (is_last or len(kept) > _LONGEST_ROW):
            raise _endless(kept, line)
        # More each time no row ends, or a long one would be looked at again and again.
        data = stream.read(max(size, len(kept)))


def fields_of(row: bytes) -> tuple[bytes, ...]:
    """The texts of the fields of a row."""
    return tuple(
        found[3] if found[1] is None else found[1].replace(b'""', b'"') + found[2]
        for found in _FIELD.finditer(row + b"\n")
    )


def _starts(ends: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], ends]).astype(np.int64)[:-1]


def _line_breaks(data: bytes, *, is_last: bool) -> np.ndarray:
    """Where lines end: at a newline, or at a return without one."""
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    newlines = np.flatnonzero(bytes_ == _NEWLINE)
    if b"\r" not in data:
        return newlines
    returns = np.flatnonzero(bytes_ == _RETURN)
    if not is_last:  # the newline of the last one may still come
        returns = returns[returns < len(data) - 1]
    following = bytes_[np.minimum(returns + 1, len(data) - 1)]
    return np.sort(np.concatenate([newlines, returns[following != _NEWLINE]]))


def _rows(data: bytes, breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the rows that are whole end, and which of them are odd."""
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(bytes_ == _QUOTE)
    if not _are_regular(bytes_, quotes):
        return _rows_one_by_one(data, breaks)
    is_outside = np.searchsorted(quotes, breaks) % 2 == 0
    ends = breaks[is_outside] + 1
    return ends, np.zeros(len(ends), dtype=bool)


def _are_regular(bytes_: np.ndarray, quotes: np.ndarray) -> bool:
    """Whether every other quote begins a quoted text, and the ones between end it.

    A doubled quote within a field is an end and a beginning. Quotes that are regular can be
    counted to tell what lies inside of them.
    """
    opening, closing = quotes[::2], quotes[1::2]
    before = bytes_[opening[opening > 0] - 1]
    behind = bytes_[closing[closing < len(bytes_) - 1] + 1]
    return bool(_BESIDE_QUOTES[before].all() and _BESIDE_QUOTES[behind].all())


def _rows_one_by_one(data: bytes, breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same row by row, whatever the quotes are."""
    ends: list[int] = []
    odd: list[bool] = []
    place = 0
    last = int(breaks[-1]) + 1 if len(breaks) else 0
    while place < last:
        regular = _ROW.match(data, place)
        found = regular or _ODD_ROW.match(data, place)
        if found is None or found.end() > last:
            break
        place = found.end()
        ends.append(place)
        odd.append(regular is None)
    return np.array(ends, dtype=np.int64), np.array(odd, dtype=bool)


def _endless(data: bytes, line: int) -> RecordError:
    """The error for a row without an end: which field of it has none."""
    place = 0
    while found := _FIELD.match(data, place):
        place = found.end()
    at = line + int(np.searchsorted(_line_breaks(data, is_last=True), place))
    return RecordError(f"a quoted field that begins at line {at} does not end")
