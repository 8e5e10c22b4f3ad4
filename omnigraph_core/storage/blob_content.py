"""Equality of blobs: rows of two versions come in pairs, whether their bytes are equal goes out.

Lengths are known without reading a byte, so only blobs of equal length are read, in portions; one
that is large is read piece by piece. Null equals null alone, and empty equals empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph_core.errors import InvariantBroken
from omnigraph_core.interruption import pause
from omnigraph_core.storage.lookup import spans, take_rows
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from lance.blob import BlobFile

    from omnigraph_core.storage.dataset import Table

PORTION_BYTES: Final = 8 << 20
PIECE_BYTES: Final = 8 << 20
_DESCRIBED_ROWS: Final = 65_536
_NULL: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class BlobColumn:
    """The blobs of some rows of a version."""

    table: Table
    column: str
    addresses: np.ndarray

    def at(self, places: np.ndarray) -> BlobColumn:
        return BlobColumn(self.table, self.column, self.addresses[places])

    def sizes(self) -> np.ndarray:
        """In bytes; -1 for null."""
        sizes = np.full(len(self.addresses), _NULL)
        for start in range(0, len(sizes), _DESCRIBED_ROWS):
            chosen = self.addresses[start : start + _DESCRIBED_ROWS].tolist()
            with translated("reading rows", self.table.uri):
                rows = self.table.dataset._take_rows(chosen, columns=[self.column])
            found = pc.struct_field(rows.column(0), "size").cast(pa.int64()).fill_null(_NULL)
            sizes[start : start + _DESCRIBED_ROWS] = found.to_numpy()
        return sizes

    def read(self) -> pa.ChunkedArray:
        return take_rows(self.table, pa.array(self.addresses), [self.column]).column(0)

    def open(self) -> BlobFile:
        """The only one, which is not null."""
        (file,) = self.table.dataset.take_blobs(self.column, addresses=self.addresses.tolist())
        if file is None:
            raise InvariantBroken(f"a blob of `{self.table.location}` with a length has bytes")
        return file


def equal_blobs(a: BlobColumn | None, b: BlobColumn | None, count: int) -> np.ndarray:
    """Whether the blobs of each of so many pairs are equal; None: all of one side are null."""
    if a is None or b is None:
        given = a or b
        return np.ones(count, np.bool_) if given is None else np.equal(given.sizes(), _NULL)
    return _equal(a, b)


def _equal(a: BlobColumn, b: BlobColumn) -> np.ndarray:
    sizes = a.sizes()
    is_same: np.ndarray = sizes == b.sizes()
    places = np.flatnonzero(is_same & (sizes > 0))
    for start, end in spans(sizes[places], PORTION_BYTES):
        pause()
        here = places[start:end]
        is_large = len(here) == 1 and sizes[here[0]] > PIECE_BYTES
        compared = _equal_in_pieces if is_large else _equal_at_once
        is_same[here] = compared(a.at(here), b.at(here))
    return is_same


def _equal_at_once(a: BlobColumn, b: BlobColumn) -> np.ndarray:
    found: np.ndarray = pc.equal(a.read(), b.read()).to_numpy()
    return found


def _equal_in_pieces(a: BlobColumn, b: BlobColumn) -> bool:
    with translated("reading blobs", a.table.uri):
        mine, other = a.open(), b.open()
        size = mine.size()
        return all(
            mine.read_range(start, min(PIECE_BYTES, size - start))
            == other.read_range(start, min(PIECE_BYTES, size - start))
            for start in range(0, size, PIECE_BYTES)
        )
