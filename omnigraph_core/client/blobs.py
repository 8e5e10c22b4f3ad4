"""Blobs behind a server: ranges of bytes are fetched when they are asked for."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from omnigraph_core.errors import BlobElsewhere, BlobIsNull, ConfigError, StorageError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import httpx2

    from omnigraph_core.client.requests import Call
    from omnigraph_core.client.transport import Transport
    from omnigraph_core.storage.blobs import BlobReader
    from omnigraph_core.write.blobs import Blob

_PARTIAL: Final = 206


def find_blob(http: Transport, call: Call) -> Blob:
    """A blob to read from, or the address it is kept at.

    Raises:
        NotFoundError: no such row.
        ConfigError: no such type or property.
    """
    from omnigraph_core.write.blobs import Blob

    status, headers = http.peek(replace(call, method="HEAD"))
    if status == 200:
        reader = RemoteBlobReader(http, call, int(headers["content-length"]))
        return Blob(reader=cast("BlobReader", reader))
    if 300 <= status < 400:
        return Blob(uri=headers["location"])
    try:
        http.run(call, lambda response: response.status_code)
    except BlobElsewhere as kept:
        return Blob(uri=kept.uri)
    except BlobIsNull:
        return Blob()
    raise StorageError("the blob changed while it was opened", retryable=True)


class RemoteBlobReader:
    """Bytes of a blob, in order from where the last read ended, or any range of them."""

    __slots__ = ("_call", "_http", "_position", "size")

    def __init__(self, http: Transport, call: Call, size: int) -> None:
        self._http = http
        self._call = call
        self._position = 0
        self.size = size

    def read(self, count: int = -1) -> bytes:
        """The next bytes, so many at most; all that are left without a count."""
        left = max(0, self.size - self._position)
        data = self.read_range(self._position, left if count < 0 else min(count, left))
        self._position += len(data)
        return data

    def read_range(self, offset: int, length: int) -> bytes:
        """Bytes from an offset on, as many of the length as there are; moves nothing.

        Raises:
            ConfigError: one of them is negative, or not a whole number.
        """
        from omnigraph_core.storage.blobs import whole

        offset, length = whole(offset, "offset"), whole(length, "length")
        if offset < 0 or length < 0:
            raise ConfigError(f"no range begins at {offset} and has length {length}")
        end = min(self.size, offset + length)
        if offset >= end:
            return b""
        headers = {**self._call.headers, "Range": f"bytes={offset}-{end - 1}"}
        return self._http.run(replace(self._call, headers=headers), _ranged)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to where the next read begins; where that is, from the start.

        Raises:
            ConfigError: that is before the start, or there is nothing to count from.
        """
        origins = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}
        if whence not in origins:
            raise ConfigError(f"expected a whence of 0, 1 or 2, found {whence!r}")
        position = origins[whence] + offset
        if position < 0:
            raise ConfigError(f"cannot seek to the negative position {position}")
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        """Nothing is held open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _ranged(response: httpx2.Response) -> bytes:
    data = response.read()
    if response.status_code != _PARTIAL:
        raise StorageError("the server gave all of a blob in place of a range")
    return data
