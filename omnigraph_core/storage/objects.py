"""Small control objects: refs, tags, leases. Whole objects come in and go out.

`put_if_absent` is the one conditional write: of several writers of one path exactly one wins, and
`check_conditional_put` proves at init that the store honours it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError

from omnigraph_core.errors import StorageError
from omnigraph_core.ids import new_ulid
from omnigraph_core.storage.translate import LIBRARY_ERRORS, is_missing, storage_error, translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from omnigraph_core.storage.session import Store


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An entry of a listing; the path is relative to the store's root."""

    path: str
    size: int
    last_modified: datetime


def put_if_absent(store: Store, path: str, content: bytes) -> bool:
    """Write an object unless one is there; whether we wrote it."""
    try:
        obstore.put(store.objects, path, content, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    except LIBRARY_ERRORS as problem:
        raise storage_error(problem, "writing", store.uri(path)) from problem
    store.sync()
    return True


def put(store: Store, path: str, content: bytes) -> None:
    """Write an object, replacing what is there."""
    with translated("writing", store.uri(path)):
        obstore.put(store.objects, path, content, use_multipart=False)
    store.sync()


def delete_once(store: Store, path: str) -> None:
    """Remove an object with a single request, never repeated by the client."""
    try:
        obstore.delete(store.deletions, path)
    except LIBRARY_ERRORS as problem:
        if not is_missing(problem):
            raise storage_error(problem, "deleting", store.uri(path)) from problem


def try_get(store: Store, path: str) -> bytes | None:
    """The object's content, or None."""
    try:
        return bytes(obstore.get(store.objects, path).bytes())
    except LIBRARY_ERRORS as problem:
        if is_missing(problem):
            return None
        raise storage_error(problem, "reading", store.uri(path)) from problem


def exists(store: Store, path: str) -> bool:
    """Whether an object is there: one request, no content."""
    try:
        obstore.head(store.objects, path)
    except LIBRARY_ERRORS as problem:
        if is_missing(problem):
            return False
        raise storage_error(problem, "looking for", store.uri(path)) from problem
    return True


def delete_all(store: Store, paths: Iterable[str]) -> None:
    """Remove objects; what is gone already counts as removed."""
    for path in paths:
        try:
            obstore.delete(store.objects, path)
        except LIBRARY_ERRORS as problem:
            if not is_missing(problem):
                raise storage_error(problem, "deleting", store.uri(path)) from problem


def iter_objects(store: Store, prefix: str) -> Iterator[StoredObject]:
    """Everything below a prefix, as the store lists it."""
    with translated("listing", store.uri(prefix)):
        for page in obstore.list(store.objects, prefix):
            for entry in page:
                yield StoredObject(entry["path"], entry["size"], entry["last_modified"])


def list_objects(store: Store, prefix: str) -> tuple[StoredObject, ...]:
    """Everything below a prefix, by path: one listing."""
    return tuple(sorted(iter_objects(store, prefix), key=lambda entry: entry.path))


def list_directories(store: Store, prefix: str) -> tuple[str, ...]:
    """The names one level below a prefix that hold something."""
    with translated("listing", store.uri(prefix)):
        found = obstore.list_with_delimiter(store.objects, prefix)["common_prefixes"]
    return tuple(sorted(path.rstrip("/").rpartition("/")[2] for path in found))


def check_conditional_put(store: Store) -> None:
    """Refuse a store on which two writers of one path would both succeed.

    Raises:
        StorageError: the second write replaced the first.
    """
    path = f"_preflight/{new_ulid()}"
    try:
        won = [put_if_absent(store, path, content) for content in (b"first", b"second")]
        kept = try_get(store, path)
    finally:
        delete_all(store, [path])
    if won != [True, False] or kept != b"first":
        raise StorageError(
            f"the store at {store.root} ignores conditional writes (If-None-Match)",
            hint="two writers could overwrite each other's commits there; "
            "use a store that answers 412, as AWS S3, MinIO, SeaweedFS or R2 do",
        )
