"""One blob as a file: a row's id and a column come in, a reader of the stored bytes goes out.

Bytes are read when they are asked for and not before: a range of a large blob costs that range.
"""

from __future__ import annotations

import io
import operator
from typing import TYPE_CHECKING, SupportsIndex

import pyarrow as pa

from omnigraph_core.errors import ConfigError, InvariantBroken
from omnigraph_core.storage.lookup import ADDRESS, find_rows
from omnigraph_core.storage.translate import translated

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from lance.blob import BlobFile

    from omnigraph_core.storage.dataset import Table


def open_blob(table: Table, id: str, column: str) -> BlobReader | None:
    """The blob of the row with that id; None where there is no such row, or no bytes in it.

    Raises:
        InvariantBroken: the column does not hold blobs.
    """
    if not table.blobs_of([column]):
        raise InvariantBroken(f"`{column}` of `{table.location}` holds blobs")
    found = find_rows(table, "id", pa.array([id]), [], has_addresses=True)
    if not found.num_rows:
        return None
    with translated("opening a blob", table.uri):
        (file,) = table.dataset.take_blobs(column, addresses=found.column(ADDRESS).to_pylist())
    return None if file is None else BlobReader(file, f"{table.uri} (`{column}` of `{id}`)")


def whole(number: SupportsIndex, what: str) -> int:
    """A number of bytes as it was given.

    Raises:
        ConfigError: it is not a whole number.
    """
    try:
        return operator.index(number)
    except TypeError as problem:
        raise ConfigError(f"the {what} is a whole number, not {number!r:.60}") from problem


class BlobReader:
    """Bytes of a blob, in order from where the last read ended, or any range of them."""

    __slots__ = ("_file", "_where", "size")

    def __init__(self, file: BlobFile, where: str) -> None:
        self._file = file
        self._where = where
        self.size = file.size()

    def read(self, count: int = -1) -> bytes:
        """The next bytes, so many at most; all that are left without a count.

        Raises:
            ConfigError: the count is not a whole number.
        """
        count = whole(count, "count")
        with self._reading():
            return self._file.read(count)

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes from an offset on, as many of the length as there are; moves nothing.

        Raises:
            ConfigError: one of them is negative, or not a whole number.
        """
        offset, length = whole(offset, "offset"), whole(length, "length")
        if offset < 0 or length < 0:
            raise ConfigError(f"no range begins at {offset} and has length {length}")
        left = max(0, min(length, self.size - offset))
        with self._reading():
            return self._file.read_range(offset, left) if left else b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to where the next read begins; where that is, from the start.

        Raises:
            ConfigError: that is before the start, or there is nothing to count from.
        """
        position = self._origin(whence) + whole(offset, "offset")
        if position < 0:
            raise ConfigError(f"cannot seek to the negative position {position}")
        with self._reading():
            return self._file.seek(position)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _origin(self, whence: int) -> int:
        if whence == io.SEEK_CUR:
            return self.tell()
        if whence not in (io.SEEK_SET, io.SEEK_END):
            raise ConfigError(f"expected a whence of 0, 1 or 2, found {whence!r}")
        return self.size if whence == io.SEEK_END else 0

    def _reading(self) -> translated:
        return translated("reading a blob", self._where)
