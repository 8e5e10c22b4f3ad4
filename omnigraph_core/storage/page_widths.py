"""How wide rows are, by where they lie: what data files say of their pages comes in, bytes go out.

A page of a column is cut when it has so many bytes, however many rows these are: one of few rows
has wide ones. So rows that are far wider than others of their table are known before any is read.
"""

from __future__ import annotations

import threading
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import obstore

from omnigraph_core.storage.proto import members, packed_numbers
from omnigraph_core.storage.runs import distinct
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lance.fragment import DataFile, LanceFragment

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

_PAGE_BYTES: Final = 8 << 20
"""Of values, after which a page is cut: each but the last of a column has as many, or more."""
_SMALL_FILE: Final = 4 << 20
"""Bytes up to which a file is not asked: all of its rows are little."""
_COMPRESSED: Final = 2
"""Bytes of values, about, to one that is stored."""
_MOST_FILES: Final = 4_096
"""Whose pages are remembered, of one store."""

_FOOTER: Final = Struct("<QQQIIHH4s")
"""Where the descriptions of columns start, where their places are listed, where those of shared
buffers are; how many of these there are, and of columns; the format."""
_PLACE: Final = Struct("<QQ")
_MAGIC: Final = b"LANC"
_MAJOR: Final = 2
_TAIL_BYTES: Final = 64 << 10
"""That are read of a file at first: mostly all that is about pages."""

# Numbers of members of a column's description, and of a page in it.
_PAGES: Final = 2
_SIZES: Final = 2
_LENGTH: Final = 3

_OFFSET_BITS: Final = np.uint64(32)
_OFFSET_MASK: Final = np.uint64(2**32 - 1)

_Widths: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Where pages of a column start, and bytes of a row in each."""

_KNOWN: Final[WeakKeyDictionary[Store, dict[str, tuple[_Widths, ...]]]] = WeakKeyDictionary()
_LOCK: Final = threading.Lock()


def row_widths(table: Table, addresses: np.ndarray, columns: Sequence[str]) -> np.ndarray:
    """Bytes that rows at these addresses take in some columns, about: the larger ones are not
    underestimated. Zero where nothing is known.

    Raises:
        ObjectNotFound: a file is gone.
    """
    fields = _field_ids(table, columns)
    fragments = {item.fragment_id: item for item in table.dataset.get_fragments()}
    widths = np.zeros(len(addresses))
    holders, offsets = addresses >> _OFFSET_BITS, (addresses & _OFFSET_MASK).astype(np.int64)
    for fragment_id in distinct(holders).tolist():
        fragment = fragments.get(fragment_id)
        here = np.flatnonzero(holders == fragment_id)
        if fragment is not None:
            widths[here] = _in_fragment(table, fragment, offsets[here], fields)
    return widths


def _field_ids(table: Table, columns: Sequence[str]) -> frozenset[int]:
    found = (field for field in table.dataset.lance_schema.fields() if field.name() in columns)
    # A list is kept under the id of its items.
    return frozenset(
        id for field in found for id in (field.id(), *(child.id() for child in field.children()))
    )


def _in_fragment(
    table: Table, fragment: LanceFragment, offsets: np.ndarray, fields: frozenset[int]
) -> np.ndarray:
    about = fragment.metadata
    widths = np.zeros(len(offsets))
    for file in about.files:
        numbers = [
            column
            for field, column in zip(file.fields, file.column_indices, strict=True)
            if field in fields and column >= 0
        ]
        size = file.file_size_bytes
        if not numbers or size is None or file.base_id is not None:
            continue
        if size <= _SMALL_FILE:
            widths += _COMPRESSED * size / max(1, about.physical_rows)
            continue
        columns = _columns(table, file, size)
        for number in numbers if columns else ():
            starts, of_page = columns[number]
            widths += of_page[np.searchsorted(starts, offsets, side="right") - 1]
    return widths


def _columns(table: Table, file: DataFile, size: int) -> tuple[_Widths, ...]:
    """The columns of a file; none if it is of a form that is not known here."""
    path = f"{table.location}/data/{file._path}"
    with _LOCK:
        known = _KNOWN.setdefault(table.store, {})
        found = known.get(path)
    if found is None:
        found = tuple(_read(table.store, path, size))
        with _LOCK:
            if len(known) >= _MOST_FILES:
                known.clear()
            known[path] = found
    return found


def _read(store: Store, path: str, size: int) -> Iterator[_Widths]:
    start = max(0, size - _TAIL_BYTES)
    tail = _range(store, path, start, size)
    described, listed, _, _, count, major, _, magic = _FOOTER.unpack(tail[-_FOOTER.size :])
    if magic != _MAGIC or major != _MAJOR:
        return
    if described < start:
        tail = _range(store, path, described, start) + tail
        start = described
    for number in range(count):
        place, length = _PLACE.unpack_from(tail, listed - start + number * _PLACE.size)
        yield _widths(tail[place - start : place - start + length])


def _range(store: Store, path: str, start: int, end: int) -> bytes:
    with translated("reading", store.uri(path)):
        return bytes(obstore.get_range(store.objects, path, start=start, end=end))


def _widths(description: bytes) -> _Widths:
    pages = [dict(_page(value)) for member, value in members(description) if member == _PAGES]
    rows = np.array([page.get(_LENGTH, 0) for page in pages], np.int64)
    stored = np.array([page.get(_SIZES, 0) for page in pages], np.float64)
    total = np.maximum(stored, _PAGE_BYTES)
    total[-1:] = stored[-1:] * _COMPRESSED  # which was cut because nothing came after it
    return np.cumsum(rows) - rows, total / np.maximum(rows, 1)


def _page(description: int | bytes) -> Iterator[tuple[int, int]]:
    """How many rows a page has, and the bytes of its buffers."""
    assert isinstance(description, bytes)
    sizes = 0
    for member, value in members(description):
        if member == _LENGTH and isinstance(value, int):
            yield _LENGTH, value
        elif member == _SIZES:
            sizes += sum(packed_numbers(value))
    yield _SIZES, sizes
