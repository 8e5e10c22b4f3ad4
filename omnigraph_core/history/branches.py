"""Branches: created by one put-if-absent, deleted by removing one object.

Creating copies the source's image into a catalog of its own and touches no table, so its cost is
that of one small file whatever the graph holds.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.errors import (
    AlreadyExists,
    BranchInUse,
    BranchNotFound,
    ConfigError,
    PreconditionFailed,
)
from omnigraph_core.failpoints import declare
from omnigraph_core.history import refs
from omnigraph_core.history.refs import BranchRef, DeletedBranch, ForkPoint
from omnigraph_core.ids import new_ulid
from omnigraph_core.manifest.catalog import Catalog, create_branch_catalog, load_latest
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.layout import branch_manifest_path
from omnigraph_core.manifest.names import check_actor, check_branch_name, is_internal
from omnigraph_core.settings import PUBLISH_LEASE

if TYPE_CHECKING:
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.storage.session import Store

_CATALOG: Final = declare("branch.after_catalog", "a branch's catalog exists, the branch does not")
_CREATED: Final = declare("branch.after_ref", "the branch exists, its creator not yet told")
_MARKED: Final = declare("branch.after_deleted_mark", "marked as deleted, still there")
_DELETED: Final = declare("branch.after_delete", "the branch is gone, its deleter not yet told")

_CLOCK_SKEW: Final = timedelta(minutes=10)
"""How far the clock of the store may be behind that of whoever created a branch."""


def catalog_of(store: Store, ref: BranchRef) -> Catalog:
    """The catalog of a branch."""
    return Catalog(store, ref.branch, ref.incarnation, ref.manifest)


def find_branch(store: Store, name: str) -> BranchRef:
    """
    Raises:
        BranchNotFound: there is none of that name.
    """
    bare = name.strip()
    return refs.MAIN_REF if bare == MAIN else refs.read_branch(store, bare)


def create_branch(
    store: Store,
    name: str,
    source: CatalogState,
    *,
    is_internal_allowed: bool = False,
    actor: str | None,
) -> tuple[BranchRef, CatalogState]:
    """Fork a branch from a state of another one, its head or an older one.

    Raises:
        ConfigError: not a name for a branch.
        AlreadyExists: the name is taken.
    """
    branch = check_branch_name(name, is_internal_allowed=is_internal_allowed)
    incarnation = new_ulid()
    base = source.snapshot
    ref = BranchRef(
        branch=branch,
        incarnation=incarnation,
        manifest=branch_manifest_path(incarnation),
        forked_from=ForkPoint(
            base.branch, base.incarnation, base.manifest_version, base.commit.graph_commit_id
        ),
        created_at=now_us(),
        actor=check_actor(actor),
    )
    state = create_branch_catalog(catalog_of(store, ref), base.image)
    _CATALOG.hit()
    # A creator slower than that may name versions that cleanup has swept meanwhile.
    if source.stored.read_at.age() > PUBLISH_LEASE.read():
        raise PreconditionFailed(f"the source of `{branch}`", "read within the lease", "too old")
    if not refs.put_branch(store, ref):
        raise AlreadyExists(
            f"a branch `{branch}` exists", hint="choose another name, or delete that branch first"
        )
    _CREATED.hit()
    return ref, state


def delete_branch(
    store: Store,
    ref: BranchRef,
    *,
    if_commit: str | None = None,
    is_internal_allowed: bool = False,
    actor: str | None,
) -> None:
    """Remove a branch. What only it used stays readable by commit id until cleanup takes it.

    Args:
        if_commit: the commit that must be its head.

    Raises:
        PreconditionFailed: its head is not `if_commit`.
        ConfigError: main, or a branch of OmniGraph's own.
        BranchInUse: branches forked from it are there.
        BranchNotFound: it is gone, or another one has its name by now.
    """
    if ref.branch == MAIN:
        raise ConfigError(f"cannot delete branch '{MAIN}'")
    if is_internal(ref.branch) and not is_internal_allowed:
        raise ConfigError(f"the branch `{ref.branch}` is reserved for internal use")
    if children := descendants(store, ref):
        raise BranchInUse(
            f"`{ref.branch}` is the source of {', '.join(f'`{name}`' for name in children)}",
            hint="delete those first",
        )
    refs.put_deleted(store, DeletedBranch(ref, now_us(), check_actor(actor)))
    _MARKED.hit()
    check_still_there(store, ref)
    if if_commit is not None:
        # The mark stays: on a branch that is there it says nothing, and another may be at deleting.
        _check_head(store, ref, if_commit)
    refs.delete_branch_ref(store, ref.branch)
    _DELETED.hit()


def _check_head(store: Store, ref: BranchRef, expected: str) -> None:
    head = load_latest(catalog_of(store, ref)).snapshot.commit.graph_commit_id
    if head != expected:
        raise PreconditionFailed(f"the head of `{ref.branch}`", expected, head)


def descendants(store: Store, ref: BranchRef) -> tuple[str, ...]:
    """Public branches forked from this one. Only what was created since is read."""
    created = datetime.fromtimestamp(ref.created_at / 1_000_000, UTC)
    return tuple(
        other.branch
        for other in refs.list_branch_refs(store, since=created - _CLOCK_SKEW)
        if other.forked_from is not None
        and other.forked_from.incarnation == ref.incarnation
        and not is_internal(other.branch)
    )


def check_still_there(store: Store, ref: BranchRef) -> None:
    """
    Raises:
        BranchNotFound: the branch was deleted, whether or not one of its name was made again.
    """
    if ref.branch == MAIN:
        return
    now = refs.try_read_branch(store, ref.branch)
    if now is None or now.incarnation != ref.incarnation:
        raise BranchNotFound(
            f"the branch `{ref.branch}` was deleted meanwhile",
            hint="nothing written to it is visible",
        )
