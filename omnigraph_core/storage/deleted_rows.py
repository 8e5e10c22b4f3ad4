"""Which rows a fragment has lost: the file that lists them comes in, their places go out.

Lance tells live rows alone, one by one; what was deleted is far less. It lists few rows as an Arrow
file and many as a Roaring bitmap: a container for each 65 536 places, with a list of them, a bit
for each, or runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import obstore
import pyarrow as pa

from omnigraph_core.errors import InvariantBroken, StorageError
from omnigraph_core.storage.row_space import live_offsets
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.storage.dataset import Table

_NO_RUNS: Final = 12346
_WITH_RUNS: Final = 12347
_MOST_LISTED: Final = 4096
_CONTAINER: Final = 2**16
_BITMAP_BYTES: Final = _CONTAINER // 8
_LEAST_WITH_PLACES: Final = 4
"""Containers from which a bitmap with runs tells where each of them is."""


def deleted_offsets(table: Table, fragment_id: int) -> np.ndarray:
    """The places in a fragment whose rows are gone in this version: uint32, ascending.

    Raises:
        InvariantBroken: the version has no such fragment.
        ObjectNotFound: the list is gone.
    """
    fragment = table.dataset.get_fragment(fragment_id)
    if fragment is None:
        raise InvariantBroken(f"`{table.location}` has every fragment that is asked about")
    about = fragment.metadata
    listed = about.deletion_file
    if listed is None:
        return np.zeros(0, np.uint32)
    found = None
    if listed.base_id is None:
        content = _read(table, listed.path(fragment_id))
        found = _listed(content) if listed.file_type == "array" else parse_roaring(content)
    if found is None or len(found) != listed.num_deleted_rows:  # in a form that is not known here
        found = np.setdiff1d(np.arange(about.physical_rows), live_offsets(table, fragment_id))
    return found.astype(np.uint32, copy=False)


def parse_roaring(content: bytes) -> np.ndarray | None:
    """The numbers in a Roaring bitmap of 32-bit numbers, ascending; None if it is not one."""
    try:
        parts = [high << 16 | low.astype(np.uint32) for high, low in _containers(content)]
    except (IndexError, ValueError):
        return None
    return np.concatenate([np.zeros(0, np.uint32), *parts])


def _read(table: Table, path: str) -> bytes:
    where = f"{table.location}/{path}"
    with translated("reading", table.store.uri(where)):
        return bytes(obstore.get(table.store.objects, where).bytes())


def _listed(content: bytes) -> np.ndarray | None:
    try:
        with translated("reading", "a list of deleted rows"):
            table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
    except StorageError:
        return None
    if table.num_columns != 1 or table.column(0).type != pa.uint32():
        return None
    return np.sort(table.column(0).to_numpy())


def _containers(content: bytes) -> Iterator[tuple[np.uint32, np.ndarray]]:
    """The upper 16 bits of some numbers, and their lower ones, ascending."""
    cookie = int(_words(content, "<u4", 0, 1)[0])
    has_runs = cookie & 0xFFFF == _WITH_RUNS
    if has_runs:
        count, place = (cookie >> 16) + 1, 4
        flags = np.frombuffer(content, np.uint8, (count + 7) // 8, place)
        is_run = np.unpackbits(flags, count=count, bitorder="little").tolist()
        place += len(flags)
    elif cookie == _NO_RUNS:
        count, place = int(_words(content, "<u4", 4, 1)[0]), 8
        is_run = [0] * count
    else:
        raise ValueError("another form")
    heads = _words(content, "<u2", place, 2 * count).reshape(count, 2)
    place += heads.nbytes
    if not has_runs or count >= _LEAST_WITH_PLACES:
        place += 4 * count
    for (high, size), runs in zip(heads.tolist(), is_run, strict=True):
        low, place = _container(content, place, size + 1, is_run=bool(runs))
        yield np.uint32(high), low


def _container(content: bytes, place: int, size: int, *, is_run: bool) -> tuple[np.ndarray, int]:
    """The numbers of a container, and where the next one begins."""
    if is_run:
        count = int(_words(content, "<u2", place, 1)[0])
        runs = _words(content, "<u2", place + 2, 2 * count).reshape(count, 2).astype(np.int64)
        lengths = runs[:, 1] + 1
        before = np.cumsum(lengths) - lengths
        numbers = np.repeat(runs[:, 0] - before, lengths) + np.arange(int(lengths.sum()))
        return numbers, place + 2 + 4 * count
    if size <= _MOST_LISTED:
        return _words(content, "<u2", place, size), place + 2 * size
    bits = np.frombuffer(content, np.uint8, _BITMAP_BYTES, place)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")), place + _BITMAP_BYTES


def _words(content: bytes, kind: str, place: int, count: int) -> np.ndarray:
    return np.frombuffer(content, kind, count, place)
