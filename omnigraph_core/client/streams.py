"""Answers that are read while they arrive: lines, records and files, closed when they are left."""

from __future__ import annotations

import io
import json
import weakref
from typing import TYPE_CHECKING, Any

from omnigraph_core.client.failures import unusable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    import httpx2

    from omnigraph_core.client.requests import Call


class Body(io.RawIOBase):
    """An answer as a file. What breaks while it is read is raised as it is."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self._chunks = response.iter_bytes()
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class Lines:
    """The lines of an answer, some whole ones at a time. Leaving it early ends the answer.

    Raises:
        StorageError: the connection broke off.
    """

    def __init__(self, call: Call, url: str, response: httpx2.Response) -> None:
        self._call, self._url = call, url
        self._chunks = response.iter_bytes()
        self._rest = b""
        self._ended = weakref.finalize(self, response.close)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        parts = [self._rest]
        self._rest = b""
        while (chunk := self._arrived()) is not None:
            whole, newline, rest = chunk.rpartition(b"\n")
            if newline:
                self._rest = rest
                return b"".join((*parts, whole, newline))
            parts.append(chunk)
        self.close()
        if last := b"".join(parts):
            return last
        raise StopIteration

    def close(self) -> None:
        """End the answer; nothing more is read."""
        self._ended()
        self._chunks = iter(())

    def _arrived(self) -> bytes | None:
        import httpx2

        try:
            return next(self._chunks, None)
        except (httpx2.HTTPError, httpx2.StreamError) as problem:
            self.close()
            raise unusable(self._call, self._url, problem).error from problem


def iter_documents(lines: Lines) -> Iterator[Any]:
    """The document of each line."""
    try:
        for piece in lines:
            for line in piece.splitlines():
                yield json.loads(line)
    finally:
        lines.close()
