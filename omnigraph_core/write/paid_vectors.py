"""Vectors that a provider was asked for and no commit has yet: kept beside the graph, by content.

`_scratch/vectors-<branch>/vectors-<count>-<dimension>-<id>` has the keys of some texts, then their
vectors. Each answer is kept at once as an object of its own; those of one task are joined when it
is done. Who starts again after a kill finds them, and cleanup removes what nobody came back for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph_core.errors import ObjectNotFound
from omnigraph_core.storage.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from omnigraph_core.storage.session import Store

_KIND: Final = "vectors"
KEY_BYTES: Final = 16
"""Of a key that are kept: enough for any number of texts."""
_NEAR: Final = 16
"""Vectors between two wanted ones that are read along rather than asked for apart."""
_READERS: Final = 8
_LOOKS: Final = 3
"""At what there is: an object that goes while one looks is in another by then, with others."""
_KNOWN_BYTES: Final = 256 << 20
"""Of keys that a process remembers: objects never change."""


def paid_vectors(store: Store, incarnation: str) -> Scratch:
    """The objects of all backfills of a branch."""
    return Scratch(store, f"{_KIND}-{incarnation}")


class PaidVectors:
    """A cache of vectors in the store of the graph; safe to share between threads."""

    def __init__(self, objects: Scratch) -> None:
        self._objects = objects
        self._lock = threading.Lock()
        self._written: list[tuple[str, list[bytes], NDArray[np.float32]]] = []

    def iter_found(
        self, keys: Sequence[bytes], dimension: int
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Positions of keys that are known, with their vectors, some at a time."""
        wanted = pack_keys(keys)
        order = np.argsort(wanted[:, 0], kind="stable")
        is_missing = np.ones(len(keys), bool)
        seen: set[str] = set()
        for _ in range(_LOOKS if keys else 0):
            gone: list[str] = []
            names = self._unseen(seen, dimension)
            seen.update(names)
            for name, known in self._read_keys(names, gone):
                at = _matches(wanted, order, known)
                places = np.flatnonzero((at >= 0) & is_missing[at])
                for some, vectors in self._read_vectors(name, places, len(known), dimension, gone):
                    is_missing[at[some]] = False
                    yield at[some].tolist(), vectors
            if not gone or not is_missing.any():
                break

    def key_numbers(self) -> np.ndarray:
        """The first eight bytes of all keys that are known, in any order: one number each."""
        found = [known[:, 0] for _, known in self._read_keys(self._objects.names(_KIND), [])]
        return np.concatenate([np.array([], np.uint64), *found])

    def keep(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep these as an object that stays as it is: they are many."""
        self._write(keys, vectors)

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep these: nobody pays for them again."""
        name = self._write(keys, vectors)
        with self._lock:
            self._written.append((name, list(keys), vectors))

    def join(self) -> None:
        """Put into one object what was kept since."""
        with self._lock:
            written, self._written = self._written, []
        by_dimension: dict[int, list[tuple[str, list[bytes], NDArray[np.float32]]]] = {}
        for item in written:
            by_dimension.setdefault(item[2].shape[1], []).append(item)
        for items in by_dimension.values():
            if len(items) > 1:
                keys = [key for _, some, _ in items for key in some]
                self._write(keys, np.concatenate([vectors for _, _, vectors in items]))
                self._objects.remove([name for name, _, _ in items])

    def close(self) -> None:
        """Nothing is held."""

    def _write(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> str:
        content = pack_keys(keys).tobytes() + np.ascontiguousarray(vectors, "<f4").tobytes()
        return self._objects.put(f"{_KIND}-{len(keys)}-{vectors.shape[1]}", content)

    def _unseen(self, seen: set[str], dimension: int) -> list[str]:
        names = [name for name in self._objects.names(_KIND) if name not in seen]
        return [name for name in names if int(name.split("-")[2]) == dimension]

    def _read_keys(self, names: Sequence[str], gone: list[str]) -> Iterator[tuple[str, np.ndarray]]:
        with ThreadPoolExecutor(_READERS) as pool:
            for name, known in zip(names, pool.map(self._keys_of, names), strict=True):
                if known is None:
                    gone.append(name)
                else:
                    yield name, known

    def _keys_of(self, name: str) -> np.ndarray | None:
        place = (self._objects.store.root.text, self._objects.job, name)
        known = _known.get(place)
        if known is None:
            try:
                content = self._objects.read(name, 0, int(name.split("-")[1]) * KEY_BYTES)
            except ObjectNotFound:
                return None
            known = np.frombuffer(content, np.uint64).reshape(-1, 2)
            _known.add(place, known)
        return known

    def _read_vectors(
        self, name: str, places: np.ndarray, count: int, dimension: int, gone: list[str]
    ) -> Iterator[tuple[np.ndarray, NDArray[np.float32]]]:
        """Places in an object and the vectors there, a run of neighbours at a time."""
        cuts = np.flatnonzero(np.diff(places) > _NEAR) + 1
        for run in np.split(places, cuts) if len(places) else ():
            first, last = int(run[0]), int(run[-1]) + 1
            begin = count * KEY_BYTES
            size = 4 * dimension
            try:
                content = self._objects.read(name, begin + first * size, begin + last * size)
            except ObjectNotFound:
                gone.append(name)
                return
            vectors = np.frombuffer(content, "<f4").reshape(-1, dimension)[run - first]
            whole = np.isfinite(vectors).all(axis=1)
            yield run[whole], vectors[whole].astype(np.float32, copy=False)


class _Known:
    """Keys of objects that were read before, the last used ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: OrderedDict[tuple[str, str, str], np.ndarray] = OrderedDict()
        self._bytes = 0

    def get(self, place: tuple[str, str, str]) -> np.ndarray | None:
        with self._lock:
            found = self._keys.get(place)
            if found is not None:
                self._keys.move_to_end(place)
            return found

    def add(self, place: tuple[str, str, str], keys: np.ndarray) -> None:
        with self._lock:
            if place not in self._keys:
                self._keys[place] = keys
                self._bytes += keys.nbytes
            while self._bytes > _KNOWN_BYTES and len(self._keys) > 1:
                self._bytes -= self._keys.popitem(last=False)[1].nbytes


_known: Final = _Known()


def pack_keys(keys: Sequence[bytes]) -> np.ndarray:
    """Two numbers for each key."""
    content = b"".join(key[:KEY_BYTES] for key in keys)
    return np.frombuffer(content, np.uint64).reshape(-1, 2)


def _matches(wanted: np.ndarray, order: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each known key where it is among those wanted, or -1."""
    ascending = wanted[order, 0]
    at = np.searchsorted(ascending, known[:, 0]).clip(max=len(wanted) - 1)
    place = order[at]
    found: np.ndarray = np.where((wanted[place] == known).all(axis=1), place, -1)
    return found
