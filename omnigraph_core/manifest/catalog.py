"""A branch's catalog: where its images are and how they are read.

Images go out as snapshots, decoded and brought to the current format in memory; nothing here
writes except the two that make version 1 of a new one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.errors import ObjectNotFound, SnapshotNotFound
from omnigraph_core.manifest.migrations import upgrade_rows
from omnigraph_core.manifest.rows import decode_image, encode_image
from omnigraph_core.manifest.snapshot import Snapshot
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.storage import image as images

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import Image
    from omnigraph_core.storage.image import StoredImage
    from omnigraph_core.storage.session import Store


@dataclass(frozen=True, slots=True)
class Catalog:
    """Where the images of one branch are."""

    store: Store
    branch: str
    incarnation: str
    path: str

    @property
    def uri(self) -> str:
        return self.store.uri(self.path)


@dataclass(frozen=True, slots=True)
class CatalogState:
    """A snapshot together with the stored image its successor is committed on."""

    snapshot: Snapshot
    stored: StoredImage


def create_main_catalog(catalog: Catalog, image: Image) -> CatalogState:
    """Write the first image of a graph.

    Raises:
        AlreadyExists: there is a catalog at that path.
    """
    stored = images.create_image(catalog.store, catalog.path, encode_image(image))
    return as_state(catalog, image, stored)


def create_branch_catalog(catalog: Catalog, image: Image) -> CatalogState:
    """Write the first image of a branch, at the path of its fresh incarnation."""
    stored = images.create_own_image(catalog.store, catalog.path, encode_image(image))
    return as_state(catalog, image, stored)


def load_latest(catalog: Catalog) -> CatalogState:
    """The newest image.

    Raises:
        ObjectNotFound: there is no catalog.
        FormatTooNew: a newer release wrote it.
    """
    return _state(catalog, images.read_latest(catalog.store, catalog.path))


def load_since(catalog: Catalog, known: CatalogState) -> CatalogState:
    """The newest image, given one read before: one request if nothing happened since."""
    stored = images.read_newest_since(catalog.store, known.stored, max_age=PUBLISH_LEASE.read())
    if stored.version == known.stored.version:
        return CatalogState(replace(known.snapshot, read_at=time.time()), stored)
    return _state(catalog, stored)


def load_version(catalog: Catalog, version: int) -> CatalogState:
    """The image at exactly that version.

    Raises:
        SnapshotNotFound: it never existed, or cleanup has removed it.
    """
    found = try_load_version(catalog, version)
    if found is None:
        raise SnapshotNotFound(
            f"no version {version} on {catalog.branch}",
            hint="not published yet, or removed by cleanup; `list_commits` shows the versions",
        )
    return found


def try_load_version(catalog: Catalog, version: int) -> CatalogState | None:
    """The image at exactly that version, or None."""
    if not 0 < version < 2**63:  # above, Lance would look for a detached version
        return None
    try:
        return _state(catalog, images.read_version(catalog.store, catalog.path, version))
    except ObjectNotFound:
        return None


def as_state(catalog: Catalog, image: Image, stored: StoredImage) -> CatalogState:
    """The state right after publishing `image` as `stored`: nothing is read again."""
    snapshot = Snapshot(catalog.branch, catalog.incarnation, stored.version, image)
    return CatalogState(snapshot, stored)


def _state(catalog: Catalog, stored: StoredImage) -> CatalogState:
    where = f"{catalog.uri} (version {stored.version})"
    image = decode_image(upgrade_rows(stored.rows, where=where), where=where)
    return as_state(catalog, image, stored)
