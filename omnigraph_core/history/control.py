"""Control objects, one small JSON file each: a value comes in, the same value goes out.

One codec for every kind of them. Reading a damaged object raises StorageError with its path;
fields a newer release has added are ignored.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from omnigraph_core.errors import StorageError
from omnigraph_core.manifest.layout import REF_SUFFIX
from omnigraph_core.storage import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from omnigraph_core.storage.session import Store

T = TypeVar("T")

_READERS: Final = 16
"""Objects that are read at once: each is one round trip, and none depends on another."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of control object: the directory it lives in and how it is read."""

    directory: str
    decode: Callable[[Fields], T]
    is_passing: bool = False
    """Means something for a while only: an empty one, as a power cut leaves, is left out."""

    def path(self, segment: str) -> str:
        return f"{self.directory}/{segment}{REF_SUFFIX}"


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object that says where it was read: typed reads, or an error that names the place."""

    values: Mapping[str, object]
    where: str

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else self._refuse(name, "text")

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        """A whole number, zero or more."""
        found = _whole(self.values.get(name))
        return self._refuse(name, "a whole number") if found is None else found

    def wholes(self, name: str) -> tuple[int, ...]:
        value = self.values.get(name)
        given = value if isinstance(value, list) else [None]
        found = tuple(number for number in map(_whole, given) if number is not None)
        if len(found) < len(given):
            self._refuse(name, "a list of whole numbers")
        return found

    def object(self, name: str) -> Fields:
        value = self.values.get(name)
        return Fields(value, self.where) if isinstance(value, dict) else self._refuse(name, "{…}")

    def optional_object(self, name: str) -> Fields | None:
        return None if self.values.get(name) is None else self.object(name)

    def _refuse(self, name: str, expected: str) -> NoReturn:
        found = f"{self.values[name]!r:.60}" if name in self.values else "nothing"
        raise damaged(self.where, f"`{name}` should be {expected}, found {found}")


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def damaged(where: str, what: str) -> StorageError:
    """The error to raise about an object that cannot be what was written."""
    return StorageError(
        f"the object at {where} is damaged: {what}",
        hint="restore it from a copy of the graph; delete it only if you know what it stood for",
    )


def encode(value: Any) -> bytes:
    """A frozen dataclass as one JSON object."""
    return (json.dumps(asdict(value), indent=2) + "\n").encode()


def decode(kind: Kind[T], content: bytes, where: str) -> T:
    """The value an object holds.

    Raises:
        StorageError: it is damaged.
    """
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise damaged(where, f"not JSON: {problem}") from problem
    if not isinstance(values, dict):
        raise damaged(where, "not a JSON object")
    return kind.decode(Fields(values, where))


def put_new(store: Store, path: str, value: Any) -> bool:
    """Write an object unless another one is there; whether the one there is ours."""
    content = encode(value)
    # After a lost answer the store's client asks again and is told of the object it has written.
    return objects.put_if_absent(store, path, content) or objects.try_get(store, path) == content


def try_read(store: Store, kind: Kind[T], path: str) -> T | None:
    """The value at a path, or None."""
    content = objects.try_get(store, path)
    return None if content is None else decode(kind, content, store.uri(path))


def list_segments(store: Store, kind: Kind[T]) -> tuple[str, ...]:
    """The file names of all objects of a kind, without their suffix: one listing, none is read."""
    return tuple(
        path.removeprefix(f"{kind.directory}/").removesuffix(REF_SUFFIX)
        for path, _ in _listed(store, kind)
    )


def list_values(store: Store, kind: Kind[T], *, since: datetime | None = None) -> tuple[T, ...]:
    """Every object of a kind, by path; one that vanishes between listing and reading is left out.

    Args:
        since: reads only objects written at or after this moment, by the store's clock.
    """
    # Stores tell times in whole seconds, rounded down.
    earliest = None if since is None else since.replace(microsecond=0)
    paths = [
        path for path, written in _listed(store, kind) if earliest is None or written >= earliest
    ]
    if not paths:
        return ()
    with ThreadPoolExecutor(max_workers=min(_READERS, len(paths))) as pool:
        values = list(pool.map(lambda path: try_read(store, kind, path), paths))
    return tuple(value for value in values if value is not None)


def _listed(store: Store, kind: Kind[T]) -> list[tuple[str, datetime]]:
    return [
        (entry.path, entry.last_modified)
        for entry in objects.list_objects(store, kind.directory)
        if entry.path.endswith(REF_SUFFIX) and not (kind.is_passing and entry.size == 0)
    ]
