"""What names and protects versions: branches, tags, leases of readers, intents of cleanups.

Each is one control object. A branch or a tag exists exactly while its object does; creating one is
a put-if-absent, so of several creators of one name one wins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import (
    BranchNotFound,
    InvariantBroken,
    PreconditionFailed,
    TagNotFound,
)
from omnigraph_core.history.control import (
    Fields,
    Kind,
    damaged,
    encode,
    list_segments,
    list_values,
    put_new,
    try_read,
)
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.layout import (
    BRANCH_REFS,
    CLEANUPS,
    DELETED_REFS,
    LEASES,
    MANIFEST,
    TAG_REFS,
    branch_ref_path,
    tag_ref_path,
    unescape_name,
)
from omnigraph_core.manifest.names import is_internal
from omnigraph_core.storage import objects

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from omnigraph_core.storage.session import Store


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """What a branch was created from."""

    branch: str
    incarnation: str
    manifest_version: int
    commit_id: str


@dataclass(frozen=True, slots=True)
class BranchRef:
    """A branch. `manifest` is the path of its catalog; times are microseconds since the epoch."""

    branch: str
    incarnation: str
    manifest: str
    forked_from: ForkPoint | None
    created_at: int
    actor: str | None


MAIN_REF: Final = BranchRef(MAIN, MAIN, MANIFEST, None, 0, None)
"""Main exists with the graph: it has no object."""


@dataclass(frozen=True, slots=True)
class DeletedBranch:
    """A branch that is gone or about to go; what it used stays until cleanup takes it."""

    ref: BranchRef
    deleted_at: int
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one commit that keeps its version from being cleaned up."""

    tag: str
    commit_id: str
    branch: str
    incarnation: str
    manifest_version: int
    created_at: int
    actor: str | None


@dataclass(frozen=True, slots=True)
class Lease:
    """A long reader's claim on a version, kept from cleanup until it expires."""

    id: str
    incarnation: str
    manifest_version: int
    purpose: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class CleanupIntent:
    """A cleanup under way: the catalog versions it is about to drop, by incarnation."""

    id: str
    started_at: int
    expires_at: int
    doomed: Mapping[str, tuple[int, ...]]


def _fork_point(fields: Fields) -> ForkPoint:
    return ForkPoint(
        fields.text("branch"),
        fields.text("incarnation"),
        fields.whole("manifest_version"),
        fields.text("commit_id"),
    )


def _branch(fields: Fields) -> BranchRef:
    fork = fields.optional_object("forked_from")
    return BranchRef(
        fields.text("branch"),
        fields.text("incarnation"),
        fields.text("manifest"),
        None if fork is None else _fork_point(fork),
        fields.whole("created_at"),
        fields.optional_text("actor"),
    )


def _deleted(fields: Fields) -> DeletedBranch:
    return DeletedBranch(
        _branch(fields.object("ref")), fields.whole("deleted_at"), fields.optional_text("actor")
    )


def _tag(fields: Fields) -> Tag:
    return Tag(
        fields.text("tag"),
        fields.text("commit_id"),
        fields.text("branch"),
        fields.text("incarnation"),
        fields.whole("manifest_version"),
        fields.whole("created_at"),
        fields.optional_text("actor"),
    )


def _lease(fields: Fields) -> Lease:
    return Lease(
        fields.text("id"),
        fields.text("incarnation"),
        fields.whole("manifest_version"),
        fields.text("purpose"),
        fields.whole("expires_at"),
    )


def _cleanup(fields: Fields) -> CleanupIntent:
    doomed = fields.object("doomed")
    return CleanupIntent(
        fields.text("id"),
        fields.whole("started_at"),
        fields.whole("expires_at"),
        {incarnation: doomed.wholes(incarnation) for incarnation in doomed.values},
    )


_BRANCHES: Final = Kind(BRANCH_REFS, _branch)
_DELETED: Final = Kind(DELETED_REFS, _deleted)
_TAGS: Final = Kind(TAG_REFS, _tag)
_LEASES: Final = Kind(LEASES, _lease, is_passing=True)
_CLEANUPS: Final = Kind(CLEANUPS, _cleanup, is_passing=True)


def try_read_branch(store: Store, name: str) -> BranchRef | None:
    """The branch of that name, or None."""
    if name == MAIN:
        return MAIN_REF
    ref = try_read(store, _BRANCHES, branch_ref_path(name))
    if ref is not None and ref.branch != name:
        raise damaged(store.uri(branch_ref_path(name)), f"it names the branch `{ref.branch}`")
    return ref


def read_branch(store: Store, name: str) -> BranchRef:
    """
    Raises:
        BranchNotFound: there is none of that name; names a close one.
    """
    ref = try_read_branch(store, name)
    if ref is None:
        close = did_you_mean(name, list_branch_names(store))
        raise BranchNotFound(f"no branch `{name}`", hint=close)
    return ref


def put_branch(store: Store, ref: BranchRef) -> bool:
    """Make a branch exist; False when the name is taken."""
    if ref.branch == MAIN:
        return False
    return put_new(store, branch_ref_path(ref.branch), ref)


def list_branch_names(store: Store, *, has_internal: bool = False) -> tuple[str, ...]:
    """Main, then the others sorted: one listing, no object is read."""
    names = sorted(map(unescape_name, list_segments(store, _BRANCHES)))
    return (MAIN, *(name for name in names if has_internal or not is_internal(name)))


def list_branch_refs(store: Store, *, since: datetime | None = None) -> tuple[BranchRef, ...]:
    """Every branch but main, internal ones too, by name.

    Args:
        since: only branches created at or after this moment, by the store's clock.
    """
    found = list_values(store, _BRANCHES, since=since)
    return tuple(sorted(found, key=lambda ref: ref.branch))


def delete_branch_ref(store: Store, name: str) -> None:
    """Make a branch not exist; harmless when it does not."""
    if name == MAIN:
        raise InvariantBroken(f"`{MAIN}` is never deleted")
    objects.delete_once(store, branch_ref_path(name))


def put_deleted(store: Store, deleted: DeletedBranch) -> None:
    """Remember a branch that goes; a deletion tried again counts from then on."""
    objects.put(store, _DELETED.path(deleted.ref.incarnation), encode(deleted))


def try_read_deleted(store: Store, incarnation: str) -> DeletedBranch | None:
    """The mark of a deleted branch, or None."""
    return try_read(store, _DELETED, _DELETED.path(incarnation))


def list_deleted(store: Store) -> tuple[DeletedBranch, ...]:
    return list_values(store, _DELETED)


def remove_deleted(store: Store, incarnation: str) -> None:
    """Forget a deleted branch, once nothing is left of it."""
    objects.delete_all(store, [_DELETED.path(incarnation)])


def put_tag(store: Store, tag: Tag) -> bool:
    """Make a tag exist; False when the name is taken."""
    return put_new(store, tag_ref_path(tag.tag), tag)


def try_read_tag(store: Store, name: str) -> Tag | None:
    """The tag of that name, or None."""
    name = name.strip()
    tag = try_read(store, _TAGS, tag_ref_path(name))
    if tag is not None and tag.tag != name:
        raise damaged(store.uri(tag_ref_path(name)), f"it names the tag `{tag.tag}`")
    return tag


def read_tag(store: Store, name: str) -> Tag:
    """
    Raises:
        TagNotFound: there is none of that name; names a close one.
    """
    tag = try_read_tag(store, name)
    if tag is None:
        raise TagNotFound(f"no tag `{name}`", hint=did_you_mean(name, list_tag_names(store)))
    return tag


def list_tag_names(store: Store) -> tuple[str, ...]:
    """Sorted: one listing, no object is read."""
    return tuple(sorted(map(unescape_name, list_segments(store, _TAGS))))


def list_tags(store: Store) -> tuple[Tag, ...]:
    """By name."""
    return tuple(sorted(list_values(store, _TAGS), key=lambda tag: tag.tag))


def delete_tag(store: Store, name: str) -> None:
    """Make a tag not exist; harmless when it does not."""
    objects.delete_all(store, [tag_ref_path(name)])


def create_lease(
    store: Store, *, incarnation: str, manifest_version: int, purpose: str, expires_at: int
) -> Lease:
    """Claim a version. Read it only after: cleanup looks for leases before it drops anything."""
    lease = Lease(new_ulid(), incarnation, manifest_version, purpose, expires_at)
    objects.put(store, _LEASES.path(lease.id), encode(lease))
    return lease


def renew_lease(store: Store, lease: Lease, *, now: int, expires_at: int) -> Lease:
    """Extend a claim that holds still.

    Raises:
        PreconditionFailed: it has expired; what it protected may be gone.
    """
    if lease.expires_at <= now:
        raise PreconditionFailed(f"lease {lease.id}", "live", "expired")
    renewed = replace(lease, expires_at=expires_at)
    objects.put(store, _LEASES.path(lease.id), encode(renewed))
    return renewed


def release_lease(store: Store, lease_id: str) -> None:
    """Give up a claim; harmless when it is gone."""
    objects.delete_all(store, [_LEASES.path(lease_id)])


def list_leases(store: Store) -> tuple[Lease, ...]:
    """All of them, expired ones too."""
    return list_values(store, _LEASES)


def list_live_leases(store: Store, now: int) -> tuple[Lease, ...]:
    return tuple(lease for lease in list_leases(store) if lease.expires_at > now)


def put_cleanup(store: Store, intent: CleanupIntent) -> None:
    """Announce a cleanup, or what it has decided since."""
    objects.put(store, _CLEANUPS.path(intent.id), encode(intent))


def list_cleanups(store: Store) -> tuple[CleanupIntent, ...]:
    """All of them, those that never ended too."""
    return list_values(store, _CLEANUPS)


def delete_cleanup(store: Store, intent_id: str) -> None:
    """Say that a cleanup has ended; harmless when that is known."""
    objects.delete_all(store, [_CLEANUPS.path(intent_id)])
