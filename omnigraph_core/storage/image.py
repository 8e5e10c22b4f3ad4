"""A dataset whose every version is one small whole table, replaced by compare-and-swap.

Catalogs and logs are kept so. `try_commit` writes version N+1 only if nobody else did: of several
writers of one version exactly one wins, nothing is rebased, and every older version stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import lance
from lance.commit import CommitConflictError
from lance.dataset import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from omnigraph_core.clock import Moment
from omnigraph_core.errors import AlreadyExists, ObjectNotFound, StorageError
from omnigraph_core.failpoints import declare
from omnigraph_core.storage import objects
from omnigraph_core.storage.create import is_there, try_create
from omnigraph_core.storage.dataset import DATA_STORAGE_VERSION
from omnigraph_core.storage.translate import LIBRARY_ERRORS, storage_error, translated

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa
    from lance.fragment import FragmentMetadata

    from omnigraph_core.storage.session import Store

_WRITTEN: Final = declare(
    "image.after_files", "the next image's file is written, its version is not"
)
_COMMITTED: Final = declare("image.after_commit", "the next image is the newest version")

_MAX_VERSION: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class StoredImage:
    """One version of an image, with the handle its successor is committed on.

    `read_at` is when it was known to be the newest: a successor must be written before old versions
    can have been trimmed away. `identity` tells this version from one of a graph made there later.
    """

    path: str
    version: int
    rows: pa.Table
    dataset: LanceDataset
    read_at: Moment
    identity: object


def create_image(store: Store, path: str, rows: pa.Table) -> StoredImage:
    """Write version 1, where others may be about to do the same.

    Raises:
        AlreadyExists: there is one; it is left alone.
    """
    taken = AlreadyExists(f"a dataset exists at {store.uri(path)}")
    try:
        fragments = write_fragments(
            rows,
            store.uri(path),
            mode="create",
            data_storage_version=DATA_STORAGE_VERSION,
            storage_options=store.options,
        )
    except LIBRARY_ERRORS as problem:
        if is_there(store, path):
            raise taken from problem
        raise storage_error(problem, "creating", store.uri(path)) from problem
    dataset = try_create(store, path, rows.schema, fragments)
    if dataset is None:
        raise taken
    return _stored(store, path, rows, dataset, Moment())


def create_own_image(store: Store, path: str, rows: pa.Table) -> StoredImage:
    """Write version 1 at a path that nobody else can know: fewer requests, no race to win."""
    with translated("creating", store.uri(path)):
        dataset = lance.write_dataset(
            rows,
            store.uri(path),
            mode="create",
            data_storage_version=DATA_STORAGE_VERSION,
            storage_options=store.options,
        )
    return _stored(store, path, rows, dataset, Moment())


def read_latest(store: Store, path: str) -> StoredImage:
    """The newest version: one listing, one manifest, one data file.

    Raises:
        ObjectNotFound: there is no image at that path.
    """
    return _read(store, path, None)


def read_version(store: Store, path: str, version: int) -> StoredImage:
    """Exactly that version, without a listing.

    Raises:
        ObjectNotFound: that version does not exist, or no longer.
    """
    return _read(store, path, version)


def read_newest_since(store: Store, known: StoredImage, *, max_age: float) -> StoredImage:
    """The newest version, given one known before: a single request if nothing happened.

    The successor's name is probed instead of listing all versions, so the cost does not grow with
    history. An image older than `max_age` seconds may have trimmed successors: that one is listed.
    """
    now = Moment()
    if known.read_at.age() > max_age or has_version(store, known.path, known.version + 1):
        return read_latest(store, known.path)
    return replace(known, read_at=now)


def has_version(store: Store, path: str, version: int) -> bool:
    """Whether that version exists: one request."""
    return objects.exists(store, _version_path(path, version))


@dataclass(frozen=True, slots=True)
class PendingImage:
    """The next image's file, written and not yet part of any version."""

    rows: pa.Table
    fragments: tuple[FragmentMetadata, ...]


def write_next(store: Store, base: StoredImage, rows: pa.Table) -> PendingImage:
    """Write the file of the version after `base`. Nobody sees it until `try_commit`.

    Raises:
        StorageError: the store failed, or the directory is gone or another one by now.
    """
    _check_same(store, base)
    with translated("writing", store.uri(base.path)):
        fragments = write_fragments(
            rows,
            base.dataset,
            mode="overwrite",
            data_storage_version=DATA_STORAGE_VERSION,
            storage_options=store.options,
        )
    _WRITTEN.hit()
    return PendingImage(rows, tuple(fragments))


def _check_same(store: Store, base: StoredImage) -> None:
    try:
        is_same = store.identity_of(_version_path(base.path, base.version)) == base.identity
    except ObjectNotFound:
        is_same = False
    if not is_same:
        raise StorageError(
            f"{store.uri(base.path)} was removed or replaced while it was open",
            hint="open the graph again",
            is_refused=True,
        )


def try_commit(store: Store, base: StoredImage, pending: PendingImage) -> StoredImage | None:
    """Make the pending image the version after `base`; None when another writer was first.

    Raises:
        StorageError: the store failed; the version may or may not have been written.
    """
    # max_retries=0 makes an Overwrite strict: put-if-absent of exactly the next version. Any
    # other operation, or any retry, would be rebased onto what another writer has written.
    operation = LanceOperation.Overwrite(pending.rows.schema, list(pending.fragments))
    try:
        dataset = LanceDataset.commit(
            base.dataset,
            Transaction(base.version, operation),
            max_retries=0,
            storage_options=store.options,
        )
    except CommitConflictError:
        return None
    except LIBRARY_ERRORS as problem:
        raise storage_error(problem, "publishing", store.uri(base.path)) from problem
    _COMMITTED.hit()
    return _stored(store, base.path, pending.rows, dataset, Moment())


def list_versions(store: Store, path: str) -> dict[int, float]:
    """All versions that exist, oldest first, and when the store says they were written, in seconds
    since the epoch: one listing."""
    found = {}
    for entry in objects.list_objects(store, f"{path}/_versions"):
        stem, _, suffix = entry.path.rpartition("/")[2].partition(".")
        if suffix == "manifest" and stem.isdigit():
            found[_MAX_VERSION - int(stem)] = entry.last_modified.timestamp()
    return dict(sorted(found.items()))


def trim_versions(store: Store, path: str, versions: Collection[int]) -> int:
    """Remove old versions and the files only they use; the bytes removed. The newest stays."""
    if not versions:
        return 0
    with translated("trimming", store.uri(path)):
        dataset = lance.dataset(store.uri(path), storage_options=store.options)
        removed = dataset.cleanup_old_versions(
            versions=sorted(versions), error_if_tagged_old_versions=False
        )
        return int(removed.bytes_removed)


def _read(store: Store, path: str, version: int | None) -> StoredImage:
    where = store.uri(path) if version is None else f"{store.uri(path)} (version {version})"
    now = Moment()
    with translated("reading", where):
        # No shared session: what is newest must never come from a cache.
        dataset = lance.dataset(store.uri(path), version=version, storage_options=store.options)
        rows = dataset.to_table()
    if dataset.version < 1:
        raise StorageError(
            f"reading failed at {where}: the file of its newest version is damaged",
            hint="restore it from a copy of the graph",
        )
    return _stored(store, path, rows, dataset, now)


def _stored(
    store: Store, path: str, rows: pa.Table, dataset: LanceDataset, read_at: Moment
) -> StoredImage:
    version = int(dataset.version)
    identity = store.identity_of(_version_path(path, version))
    return StoredImage(path, version, rows, dataset, read_at, identity)


def _version_path(path: str, version: int) -> str:
    return f"{path}/_versions/{_MAX_VERSION - version:020d}.manifest"
