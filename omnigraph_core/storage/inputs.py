"""Files of an object store as inputs: an address comes in, bytes to read in place go out.

What is read is asked for in large ranges, so that a part of a file costs a part of its bytes. An
address is all that a reader elsewhere needs.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Final, cast

from omnigraph_core.errors import ConfigError, ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from obstore import ReadableFile

    from omnigraph_core.storage.session import Store

_S3: Final = "s3://"
_BUFFER: Final = 8 << 20
LOOK_BYTES: Final = 1 << 16
"""What tells how a file is to be read is found in so many bytes, mostly."""


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A file of a store; `root` is the store's address, `path` is below it."""

    root: str
    path: str
    size: int

    @property
    def address(self) -> str:
        return f"{self.root}/{self.path}"

    def open(self, at_once: int = _BUFFER) -> IO[bytes]:
        """Its bytes from the start.

        Args:
            at_once: bytes that a request asks for at least.

        Raises:
            StorageError: the store does not give them.
        """
        return cast("IO[bytes]", _Reader(self, at_once))


def is_object_address(text: str) -> bool:
    """
    >>> is_object_address("s3://drops/people.jsonl"), is_object_address("people.jsonl")
    (True, False)
    """
    return text.startswith(_S3)


def find_object(address: str) -> ObjectFile:
    """The file at an address.

    Raises:
        ConfigError: there is none.
    """
    found = try_find_object(address)
    if found is None:
        raise ConfigError(f"no such file: {address}")
    return found


def try_find_object(address: str) -> ObjectFile | None:
    """The file at an address, if there is one: one request."""
    # Imported here and below: inputs are described without a store, by clients of a server too.
    import obstore

    from omnigraph_core.storage.translate import translated

    root, path = split_address(address)
    try:
        with translated("looking for", address):
            size = obstore.head(_store(root).objects, path)["size"]
    except ObjectNotFound:
        return None
    return ObjectFile(root, path, size)


def iter_objects_below(root: str, prefix: str) -> Iterator[ObjectFile]:
    """All files below a prefix of a bucket, in any order: one listing."""
    from omnigraph_core.storage.objects import iter_objects

    for found in iter_objects(_store(root), prefix):
        yield ObjectFile(root, found.path, found.size)


def split_address(address: str) -> tuple[str, str]:
    """The address of a bucket, and the path below it.

    Raises:
        ConfigError: no bucket is named.

    >>> split_address("s3://drops/people/"), split_address("s3://drops")
    (('s3://drops', 'people/'), ('s3://drops', ''))
    """
    bucket, _, path = address.removeprefix(_S3).partition("/")
    if not bucket:
        raise ConfigError(f"{address} names no bucket", hint="s3://bucket/folder/file")
    return f"{_S3}{bucket}", path


@lru_cache(maxsize=16)
def _store(root: str) -> Store:
    from omnigraph_core.storage.session import open_store

    return open_store(root)


class _Reader(io.RawIOBase):
    """Reads an object from where it stands; errors are those of the store."""

    def __init__(self, file: ObjectFile, at_once: int) -> None:
        import obstore

        from omnigraph_core.storage.translate import translated

        super().__init__()
        store = _store(file.root)
        self._uri = store.uri(file.path)
        self._translated = translated
        with translated("opening", self._uri):
            self._file: ReadableFile = obstore.open_reader(
                store.objects, file.path, buffer_size=at_once
            )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with self._translated("reading", self._uri):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._translated("reading", self._uri):
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()
