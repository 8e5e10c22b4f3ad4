"""Removing a branch: a branch comes in, it is gone, and the commit log knows what it held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph_core.errors import ConflictError, StorageError
from omnigraph_core.history import branches
from omnigraph_core.manifest.catalog import load_latest

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef


def remove_branch(
    context: GraphContext,
    ref: BranchRef,
    *,
    if_commit: str | None = None,
    is_internal_allowed: bool,
    actor: str | None,
) -> None:
    """Remove a branch whatever runs work towards it; its commits stay known.

    Args:
        if_commit: the commit that must be its head.

    Raises:
        PreconditionFailed: its head is not `if_commit`.
        ConfigError: main, or a branch of OmniGraph's own.
        BranchNotFound: it is gone.
        BranchInUse: branches forked from it are there.
    """
    branches.delete_branch(
        context.store,
        ref,
        if_commit=if_commit,
        is_internal_allowed=is_internal_allowed,
        actor=actor,
    )
    context.forget(ref)
    try:  # after: nothing is committed on it any more
        context.commits.catch_up(ref, load_latest(branches.catalog_of(context.store, ref)))
    except (StorageError, ConflictError):
        return  # cleanup does it before it removes the catalog
