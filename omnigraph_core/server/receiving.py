"""Uploads of any size: the body of a request goes to files of the spool, in bounded memory.

What is compressed is unpacked on the way, with a limit on what comes out of it. Of an upload that
breaks off nothing is left.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from typing import IO, TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from omnigraph_core.errors import ConfigError
from omnigraph_core.server.spool import spool_failed
from omnigraph_core.settings import UPLOAD_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

_PORTION: Final = 2**20
_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = zlib.MAX_WBITS | 16
_UNSUSPICIOUS: Final = 64 * 2**20
"""Bytes that may come out of anything."""
_MOST_RATIO: Final = 400
"""What comes out beyond that, for each byte that went in: no file of records is so repetitive."""


class Budget:
    """What one upload may still take of the disk; counts what it has taken."""

    def __init__(self, *, has_digest: bool = False) -> None:
        self._most = UPLOAD_MAX.read()
        self._hash = hashlib.sha256() if has_digest else None
        self.packed = 0
        self.size = 0

    def note_packed(self, count: int) -> None:
        self.packed += count

    def take(self, data: bytes) -> None:
        """
        Raises:
            HTTPException: 413, it is too much.
        """
        self.size += len(data)
        if self.size > self._most:
            raise HTTPException(413, f"an upload has {self._most:,} bytes at most, unpacked")
        if self.size > _UNSUSPICIOUS and self.size > _MOST_RATIO * self.packed:
            raise HTTPException(
                413, f"{self.packed:,} compressed bytes stand for more than {self.size:,}"
            )
        if self._hash is not None:
            self._hash.update(data)

    def note_file(self, name: str) -> None:
        """Where one file ends and the next begins counts, too."""
        if self._hash is not None:
            self._hash.update(f"\0{name}\0".encode())

    @property
    def digest(self) -> str | None:
        return None if self._hash is None else self._hash.hexdigest()


class Intake:
    """One file on its way in."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self._head = b""
        self._unpack: Callable[[bytes], None] | None = None
        self._gzip: zlib._Decompress | None = None
        self._is_first = True

    def write(self, data: bytes) -> None:
        """
        Raises:
            ConfigError: it is compressed and damaged, or compressed twice.
            HTTPException: 413, it is too much.
            StorageError: the disk does not take it.
        """
        self._budget.note_packed(len(data))
        if self._unpack is None:
            data = self._head + data
            if len(data) < len(_MAGIC):
                self._head = data
                return
            self._unpack = self._inflate if data.startswith(_MAGIC) else self._put
        self._unpack(data)

    def finish(self) -> None:
        """
        Raises:
            ConfigError: it is compressed and breaks off.
        """
        if self._unpack is None:
            self._put(self._head)
        if self._gzip is not None and not self._gzip.eof:
            raise ConfigError("the compressed data breaks off")
        self._file.flush()
        self._file.seek(0)

    def _inflate(self, data: bytes) -> None:
        while data:
            if self._gzip is None or self._gzip.eof:
                data = data.lstrip(b"\0") if self._gzip is not None else data
                if not data:
                    return  # filled up with zeros, as tapes and some tools do
                self._gzip = zlib.decompressobj(_GZIP)
            try:
                out = self._gzip.decompress(data, _PORTION)
            except zlib.error as problem:
                raise ConfigError(f"the compressed data is damaged: {problem}") from problem
            if self._is_first and out:
                self._is_first = False
                if out.startswith(_MAGIC):
                    raise ConfigError("the data is compressed twice", hint="compress it once")
            self._put(out)
            data = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail

    def _put(self, data: bytes) -> None:
        self._budget.take(data)
        try:
            self._file.write(data)
        except OSError as problem:
            raise spool_failed(problem) from problem


async def receive(request: Request, take: Callable[[bytes], None]) -> None:
    """Hand the body on in portions, beside the event loop: disks are slow.

    Raises:
        HTTPException: 415, it is encoded in a way that is not known.
        ClientDisconnect: it breaks off.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise HTTPException(415, f"Content-Encoding: {encoding} is not known; use gzip")
    waiting: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        waiting.append(chunk)
        size += len(chunk)
        if size >= _PORTION:
            await asyncio.to_thread(take, b"".join(waiting))
            waiting, size = [], 0
    if waiting:
        await asyncio.to_thread(take, b"".join(waiting))
