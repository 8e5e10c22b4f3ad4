"""Tags and leases: names and claims that keep a version from cleanup.

They are written first and cleanups under way are looked for after; a cleanup does the reverse. A
version is never both promised here and removed there.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.errors import AlreadyExists, PreconditionFailed, SnapshotNotFound
from omnigraph_core.history import refs
from omnigraph_core.history.refs import Tag
from omnigraph_core.history.snapshots import state_at
from omnigraph_core.manifest.names import check_actor, check_tag_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.session import Store

_MICROSECONDS: Final = 1_000_000


def create_tag(store: Store, name: str, snapshot: Snapshot, *, actor: str | None) -> Tag:
    """Name a snapshot for good.

    Raises:
        ConfigError: not a name for a tag.
        AlreadyExists: the name is taken.
        PreconditionFailed, SnapshotNotFound: cleanup is removing, or has removed, that version.
    """
    tag = Tag(
        tag=check_tag_name(name),
        commit_id=snapshot.commit.graph_commit_id,
        branch=snapshot.branch,
        incarnation=snapshot.incarnation,
        manifest_version=snapshot.manifest_version,
        created_at=now_us(),
        actor=check_actor(actor),
    )
    if not refs.put_tag(store, tag):
        raise AlreadyExists(f"a tag `{tag.tag}` exists", hint="delete it first, or choose another")
    try:
        _confirm(store, tag.branch, tag.incarnation, tag.manifest_version)
    except (PreconditionFailed, SnapshotNotFound):
        refs.delete_tag(store, tag.tag)
        raise
    return tag


@contextlib.contextmanager
def hold(
    store: Store, snapshot: Snapshot, *, purpose: str, lasting: timedelta
) -> Iterator[CatalogState]:
    """Keep a snapshot readable for a block, at most for the given time.

    Raises:
        PreconditionFailed, SnapshotNotFound: cleanup is removing, or has removed, that version.
    """
    lease = refs.create_lease(
        store,
        incarnation=snapshot.incarnation,
        manifest_version=snapshot.manifest_version,
        purpose=purpose,
        expires_at=now_us() + round(lasting.total_seconds() * _MICROSECONDS),
    )
    try:
        yield _confirm(store, snapshot.branch, snapshot.incarnation, snapshot.manifest_version)
    finally:
        refs.release_lease(store, lease.id)


def _confirm(store: Store, branch: str, incarnation: str, version: int) -> CatalogState:
    """The version as it is there, now that the claim on it is written."""
    for intent in refs.list_cleanups(store):
        if version in intent.doomed.get(incarnation, ()):
            raise PreconditionFailed(f"version {version} of {branch}", "kept", "being cleaned up")
    return state_at(store, branch, incarnation, version)
