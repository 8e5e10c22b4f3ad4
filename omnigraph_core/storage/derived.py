"""Arrays kept as files beside a graph: `_derived/<kind>/<key>.arrays`, for the next process to map.

What is kept can always be made again from the tables, so nothing here fails: a file that is
missing, damaged or cannot be written only costs time. Files of a graph on S3 are mapped from
copies on this machine. The pins of a file name the table versions it was made from; cleanup removes
it after them.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import obstore

from omnigraph_core import settings
from omnigraph_core.errors import ObjectNotFound, StorageError
from omnigraph_core.storage.array_file import (
    DerivedArrays,
    header_length,
    map_arrays,
    pack_arrays,
    pack_pieces,
    parse_about,
    parse_arrays,
)
from omnigraph_core.storage.local_copies import TEMPORARY, LocalCopies, write_whole
from omnigraph_core.storage.objects import list_objects
from omnigraph_core.storage.translate import translated
from omnigraph_core.storage.uri import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np

    from omnigraph_core.storage.array_file import PiecedArray
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.objects import StoredObject
    from omnigraph_core.storage.session import Store

__all__ = ["DERIVED", "DerivedArrays", "DerivedFiles", "list_derived", "pins", "read_pins"]

_log = logging.getLogger(__name__)

DERIVED: Final = "_derived"
_SUFFIX: Final = ".arrays"
_PINS: Final = "pins"
_USUAL_HEADER: Final = 64 << 10
_PIECE: Final = 8 << 20


class DerivedFiles:
    """The derived files of one store. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._copies = None if store.root.scheme is Scheme.LOCAL else LocalCopies(store.root.text)

    def load(self, kind: str, key: str) -> DerivedArrays | None:
        """The arrays kept under a key, mapped; None if they are not there, whole and readable."""
        if not settings.DERIVED_FILES.read():
            return None
        if self._copies is None:
            return map_arrays(self._local(kind, key))
        copy = self._copies.path(f"{kind}/{key}{_SUFFIX}")
        found = None if copy is None else map_arrays(copy)
        if found is None or copy is None:
            return self._fetched(_path(kind, key), copy)
        self._copies.use(copy)
        return found

    def about(self, kind: str, key: str) -> Mapping[str, Any] | None:
        """What a file says about its arrays: reads no more of it than that."""
        if not settings.DERIVED_FILES.read():
            return None
        try:
            return _read_about(self._store, _path(kind, key))
        except StorageError:
            return None

    def save(
        self,
        kind: str,
        key: str,
        arrays: Mapping[str, np.ndarray],
        about: Mapping[str, object],
        tables: Sequence[Table] = (),
    ) -> None:
        """Keep arrays under a key.

        Args:
            about: what JSON can say; `tables` adds to it which versions they were made from.
        """
        if not settings.DERIVED_FILES.read():
            return
        told = {**about, _PINS: pins(tables)} if tables else about
        try:
            if self._copies is None:
                self._write(self._local(kind, key), pack_arrays(arrays, told))
            else:
                self._upload(self._copies, kind, key, arrays, told)
        except (StorageError, OSError) as problem:
            _log.info("%s is not kept beside the graph: %s", _path(kind, key), problem)

    def keep(
        self,
        kind: str,
        key: str,
        arrays: Sequence[PiecedArray],
        about: Mapping[str, object],
        tables: Sequence[Table],
    ) -> None:
        """Keep arrays that come in pieces; who asks for that wants to know if it fails.

        Raises:
            StorageError: they cannot be written.
        """
        path = _path(kind, key)
        content = pack_pieces(arrays, {**about, _PINS: pins(tables)})
        with translated("writing", self._store.uri(path)):
            if self._copies is None:
                self._write(self._local(kind, key), content)
            else:
                obstore.put(self._store.objects, path, content)

    def list(self, kind: str, prefix: str) -> tuple[str, ...]:
        """The keys that begin so, the newest first: one listing."""
        if not settings.DERIVED_FILES.read():
            return ()
        start = f"{DERIVED}/{kind}/"
        try:
            found = list_objects(self._store, start.rstrip("/"))
        except StorageError:
            return ()
        named = [
            (item.last_modified, item.path.removeprefix(start).removesuffix(_SUFFIX))
            for item in found
            if item.path.startswith(start + prefix) and item.path.endswith(_SUFFIX)
        ]
        return tuple(key for _, key in sorted(named, reverse=True))

    def _local(self, kind: str, key: str) -> Path:
        return Path(self._store.root.text, _path(kind, key))

    def _fetched(self, path: str, copy: Path | None) -> DerivedArrays | None:
        try:
            if copy is not None and self._copies is not None:
                try:
                    self._copies.add(copy, _pieces(self._store, path))
                    return map_arrays(copy)
                except OSError:
                    pass  # no room for a copy: it is held in memory
            return parse_arrays(b"".join(_pieces(self._store, path)))
        except StorageError:
            return None

    def _write(self, path: Path, content: Iterator[bytes | memoryview]) -> None:
        # One level each: a graph that was removed meanwhile does not come back as a directory.
        path.parent.parent.mkdir(exist_ok=True)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)

    def _upload(
        self,
        copies: LocalCopies,
        kind: str,
        key: str,
        arrays: Mapping[str, np.ndarray],
        about: Mapping[str, object],
    ) -> None:
        path = _path(kind, key)
        with translated("writing", self._store.uri(path)):
            obstore.put(self._store.objects, path, pack_arrays(arrays, about))
        copy = copies.path(f"{kind}/{key}{_SUFFIX}")
        if copy is not None:
            copies.add(copy, pack_arrays(arrays, about))


def pins(tables: Sequence[Table]) -> tuple[tuple[str, str], ...]:
    """The table versions that a file is made from, as it tells them."""
    return tuple((table.location, str(table.physical_version)) for table in tables)


def list_derived(store: Store) -> tuple[StoredObject, ...]:
    """Every derived file of a store, and what is left of unfinished ones: one listing."""
    return tuple(
        item
        for item in list_objects(store, DERIVED)
        if item.path.endswith(_SUFFIX) or f"{_SUFFIX}{TEMPORARY}" in item.path
    )


def read_pins(store: Store, file: StoredObject) -> frozenset[tuple[str, int]] | None:
    """The locations and physical versions a derived file was made from; None if it tells none.

    Raises:
        StorageError: the store does not answer.
    """
    is_whole = file.size > 0 and TEMPORARY not in file.path
    about = _read_about(store, file.path) if is_whole else None
    try:
        told = None if about is None else about[_PINS]
        return None if not told else frozenset((str(place), int(text)) for place, text in told)
    except (KeyError, TypeError, ValueError):
        return None


def _path(kind: str, key: str) -> str:
    return f"{DERIVED}/{kind}/{key}{_SUFFIX}"


def _read_about(store: Store, path: str) -> Mapping[str, Any] | None:
    try:
        beginning = _beginning(store, path, _USUAL_HEADER)
        length = header_length(beginning)
        if length is not None and length > len(beginning):
            beginning = _beginning(store, path, length)
    except ObjectNotFound:
        return None
    return parse_about(beginning)


def _beginning(store: Store, path: str, length: int) -> bytes:
    """So many bytes of an object, or all if it has fewer."""
    with translated("reading", store.uri(path)):
        return bytes(obstore.get(store.objects, path, options={"range": (0, length)}).bytes())


def _pieces(store: Store, path: str) -> Iterator[bytes]:
    """The content of an object as it comes."""
    with translated("reading", store.uri(path)):
        for piece in obstore.get(store.objects, path).stream(min_chunk_size=_PIECE):
            yield bytes(piece)
