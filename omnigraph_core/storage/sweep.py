"""The files of a table: which there are, which a version needs, and removing the others.

A listing and the versions to keep come in; what no kept version needs may go. Files are kept or
removed by `unit`: the files of an index segment, or a data file and its blobs, are one unit, known
by the version's metadata alone. Lance's own cleanup knows nothing of detached versions.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore

from omnigraph_core.failpoints import declare
from omnigraph_core.storage import objects
from omnigraph_core.storage.dataset import EMPTY_VERSION
from omnigraph_core.storage.fragments import current_fragments
from omnigraph_core.storage.translate import LIBRARY_ERRORS, is_missing, storage_error, translated
from omnigraph_core.storage.uri import Scheme

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store

_DELETED: Final = declare("sweep.after_some", "one more batch of files is deleted")

BATCH_SIZE: Final = 1_000
"""Files per request: what S3 deletes at once."""

_FIRST_DETACHED: Final = 1 << 63
_MAX_VERSION: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table; the path is relative to the table's location."""

    path: str
    size: int
    last_modified: datetime

    @property
    def unit(self) -> str:
        return unit_of(self.path)


def unit_of(path: str) -> str:
    """What a file is kept or removed with, in the names of `reachable_files`.

    >>> unit_of("_indices/5f1b/tokens.lance"), unit_of("data/0110/1000.blob")
    ('_indices/5f1b', 'data/0110.lance')
    """
    folder, *rest = path.split("/")
    if folder == "_indices" and len(rest) > 1:
        return f"{folder}/{rest[0]}"
    if folder == "data" and len(rest) > 1:
        return f"{folder}/{rest[0]}.lance"
    if folder == "_transactions":
        return f"{folder}/{rest[-1].partition('-')[0]}"
    return path


def _manifest(physical_version: int) -> str:
    if physical_version >= _FIRST_DETACHED:
        return f"_versions/d{physical_version}.manifest"
    return f"_versions/{_MAX_VERSION - physical_version:020d}.manifest"


PERMANENT: Final = frozenset(
    {_manifest(EMPTY_VERSION), "_versions/latest_version_hint.json", "_transactions/0"}
)
"""Units that make a location a table: its empty first version. Transactions of later versions are
not among what is kept: a version holds its own."""


def list_files(store: Store, location: str) -> tuple[TableFile, ...]:
    """Everything below a table's location, by path: one listing."""
    return tuple(sorted(iter_files(store, location), key=lambda file: file.path))


def iter_files(store: Store, location: str) -> Iterator[TableFile]:
    """The same as the store lists it."""
    start = len(location) + 1
    for found in objects.iter_objects(store, location):
        yield TableFile(found.path[start:], found.size, found.last_modified)


def reachable_files(table: Table) -> frozenset[str]:
    """The units the table's version needs, with PERMANENT: reads the version's metadata only."""
    return PERMANENT | frozenset(_reachable(table))


def delete_files(
    store: Store, location: str, paths: Sequence[str], *, batch_size: int = BATCH_SIZE
) -> None:
    """Remove files, some at a time; what is gone already counts as removed.

    Args:
        paths: relative to the location, as `list_files` gives them.
    """
    for start in range(0, len(paths), batch_size):
        batch = [f"{location}/{path}" for path in paths[start : start + batch_size]]
        try:
            obstore.delete(store.objects, batch)
        except LIBRARY_ERRORS as problem:
            if not is_missing(problem):
                raise storage_error(problem, "deleting", store.uri(location)) from problem
            # Some may be left: a batch may end at the first file that is not there.
            objects.delete_all(store, batch)
        _DELETED.hit()


def prune_directories(store: Store, prefix: str, *, older_than: float) -> None:
    """Remove empty directories below a prefix of a local store, if long untouched.

    Args:
        older_than: in seconds since the epoch; younger ones may be about to be written into.
    """
    if store.root.scheme is not Scheme.LOCAL:
        return
    for path, _, _ in os.walk(Path(store.root.text) / prefix, topdown=False):
        with contextlib.suppress(OSError):  # not empty, or gone
            if Path(path).stat().st_mtime < older_than:
                Path(path).rmdir()


def _reachable(table: Table) -> Iterator[str]:
    yield _manifest(table.physical_version)
    for fragment in current_fragments(table):
        for file in fragment.files:
            yield f"data/{file.path}"
        for overlay in fragment.overlays:
            yield f"data/{overlay.data_file.path}"
        if fragment.deletion_file is not None:
            yield fragment.deletion_file.path(fragment.id)
    with translated("reading the indexes", table.uri):
        descriptions = table.dataset.describe_indices()
    for description in descriptions:
        for segment in description.segments:
            yield f"_indices/{segment.uuid}"
