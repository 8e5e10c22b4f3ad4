"""The lock of a schema change: a courtesy to others who are about to change the same schema.

One object per branch, with its owner and an expiry; who finds a live one is told whose it is. No
commit relies on it, so one that was left behind, or taken over too soon, costs work and no data.
"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.errors import SchemaApplyLocked, StorageError
from omnigraph_core.failpoints import declare
from omnigraph_core.history.control import Fields, Kind, decode, put_new
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.layout import SCHEMA_LOCKS, escape_name
from omnigraph_core.settings import SCHEMA_LOCK
from omnigraph_core.storage import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.storage.session import Store

_LOCKED: Final = declare("schema.after_lock", "the lock of a schema change is taken, nothing else")

_TRIES: Final = 3
"""Of taking a lock that others give back or leave behind at the same time."""


@dataclass(frozen=True, slots=True)
class SchemaLock:
    """Who changes the schema of a branch; times are microseconds since the epoch."""

    id: str
    branch: str
    owner: str
    since: int
    expires_at: int


def _lock(fields: Fields) -> SchemaLock:
    return SchemaLock(
        fields.text("id"),
        fields.text("branch"),
        fields.text("owner"),
        fields.whole("since"),
        fields.whole("expires_at"),
    )


_LOCKS: Final = Kind(SCHEMA_LOCKS, _lock, is_passing=True)


@contextlib.contextmanager
def schema_lock(store: Store, branch: str, *, actor: str | None) -> Iterator[SchemaLock]:
    """Hold the lock of a branch for a block; without an actor the process is its owner.

    Raises:
        SchemaApplyLocked: another one holds it; tells who, and until when.
    """
    lock = _take(store, branch, actor or f"{socket.gethostname()}:{os.getpid()}")
    try:
        _LOCKED.hit()
        yield lock
    finally:
        # What could not be given back expires; the work of the block has its own outcome.
        with contextlib.suppress(StorageError):
            _release(store, lock)


def try_read_lock(store: Store, branch: str) -> SchemaLock | None:
    """The lock of a branch, an expired one too; None if there is none, or nobody can read it."""
    path = _path(branch)
    content = objects.try_get(store, path)
    try:
        # An empty one, as a power cut leaves, is nobody's.
        return decode(_LOCKS, content, store.uri(path)) if content else None
    except StorageError:  # damaged: nothing tells whose it is
        return None


def _take(store: Store, branch: str, owner: str) -> SchemaLock:
    for _ in range(_TRIES):
        now = now_us()
        expires_at = now + round(SCHEMA_LOCK.read() * 1_000_000)
        lock = SchemaLock(new_ulid(), branch, owner, now, expires_at)
        if put_new(store, _path(branch), lock):
            return lock
        held = try_read_lock(store, branch)
        if held is not None and held.expires_at > now:
            raise _locked(held)
        objects.delete_all(store, [_path(branch)])
    raise SchemaApplyLocked(
        f"others are changing the schema of `{branch}` right now", hint="try again in a moment"
    )


def _locked(held: SchemaLock) -> SchemaApplyLocked:
    since, until = (
        datetime.fromtimestamp(moment / 1_000_000, UTC).isoformat(timespec="seconds")
        for moment in (held.since, held.expires_at)
    )
    return SchemaApplyLocked(
        f"the schema of `{held.branch}` is being changed by {held.owner}, since {since}",
        hint=f"try again when that is done, or after {until}, when the lock expires",
    )


def _release(store: Store, lock: SchemaLock) -> None:
    """Give the lock back, unless it has expired and somebody took it over."""
    if try_read_lock(store, lock.branch) == lock:
        objects.delete_all(store, [_path(lock.branch)])


def _path(branch: str) -> str:
    return _LOCKS.path(escape_name(branch))
