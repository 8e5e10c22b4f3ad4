"""Branches, commits and snapshots as the façade offers them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from omnigraph_core.engine.protection import hold
from omnigraph_core.engine.removal import remove_branch
from omnigraph_core.engine.run_ends import give_up_expired, judged
from omnigraph_core.errors import BranchInUse, ConfigError
from omnigraph_core.history import branches, refs
from omnigraph_core.history.ancestry import ancestors
from omnigraph_core.history.runs import RunRegistry, RunStatus, mark_aborted
from omnigraph_core.history.snapshots import ReadTarget, state_at, state_at_commit
from omnigraph_core.manifest.catalog import load_version
from omnigraph_core.settings import PUBLISH_LEASE

if TYPE_CHECKING:
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit


def create_branch(
    context: GraphContext,
    name: str,
    source: ReadTarget,
    *,
    is_internal_allowed: bool = False,
    actor: str | None,
) -> BranchRef:
    """Fork a branch from another one's head, or from a commit or tag.

    Raises:
        ConfigError: not a name for a branch.
        AlreadyExists: the name is taken.
        BranchNotFound, CommitNotFound, TagNotFound, SnapshotNotFound: no such source.
    """
    is_head = source.branch is not None
    return fork_branch(
        context,
        name,
        resolve(context, source),
        is_head=is_head,
        is_internal_allowed=is_internal_allowed,
        actor=actor,
    )


def fork_branch(
    context: GraphContext,
    name: str,
    state: CatalogState,
    *,
    is_head: bool,
    is_internal_allowed: bool = False,
    actor: str | None,
) -> BranchRef:
    """Fork a branch from a state, the head of a branch or an older one.

    Raises:
        ConfigError: not a name for a branch.
        AlreadyExists: the name is taken.
        SnapshotNotFound: cleanup has removed the state.
    """
    if is_head:
        ref, created = branches.create_branch(
            context.store, name, state, is_internal_allowed=is_internal_allowed, actor=actor
        )
    else:
        # An old version may be swept while its pins are copied; a head never is.
        lasting = timedelta(seconds=2 * PUBLISH_LEASE.read())
        held = hold(context.store, state.snapshot, purpose="branch_create", lasting=lasting)
        with held as kept:
            ref, created = branches.create_branch(
                context.store, name, kept, is_internal_allowed=is_internal_allowed, actor=actor
            )
    context.remember(created)
    return ref


def delete_branch(
    context: GraphContext,
    name: str,
    *,
    if_commit: str | None = None,
    is_internal_allowed: bool = False,
    actor: str | None,
) -> BranchRef:
    """Remove a branch; its commits stay known.

    Args:
        if_commit: the commit that must be its head.

    Returns:
        The branch that was.

    Raises:
        PreconditionFailed: its head is not `if_commit`.
        ConfigError: main, or a branch of OmniGraph's own.
        BranchNotFound: there is none of that name.
        BranchInUse: branches forked from it, or running runs, depend on it; runs that have expired
            do not, and are aborted.
    """
    ref = branches.find_branch(context.store, name)
    runs = judged(context, RunRegistry(context.store).list(ref.branch, RunStatus.RUNNING))
    if live := [run for run in runs if not run.is_expired]:
        raise BranchInUse(
            f"`{ref.branch}` is the target of {'; '.join(map(_shown, live))}",
            hint="publish or abort these runs first",
        )
    remove_branch(
        context, ref, if_commit=if_commit, is_internal_allowed=is_internal_allowed, actor=actor
    )
    give_up_expired(context, runs, mark_aborted)
    return ref


def _shown(run: RunRecord) -> str:
    since = datetime.fromtimestamp(run.created_at / 1_000_000, UTC)
    owner = "nobody named" if run.actor_id is None else run.actor_id
    return f"run {run.run_id}, begun by {owner} at {since:%Y-%m-%dT%H:%M:%SZ}"


def resolve(context: GraphContext, target: ReadTarget) -> CatalogState:
    """The state a target names.

    Raises:
        BranchNotFound, CommitNotFound, TagNotFound: no such target.
        SnapshotNotFound: cleanup has removed that version.
    """
    if target.branch is not None:
        return context.head(target.branch)[1]
    if target.tag is not None:
        tag = refs.read_tag(context.store, target.tag)
        return state_at(context.store, tag.branch, tag.incarnation, tag.manifest_version)
    commit = context.commits.find(target.snapshot_id or "")
    return state_at_commit(context.store, commit)


def state_at_version(context: GraphContext, branch: str, version: int) -> CatalogState:
    """A branch at one of its manifest versions.

    Raises:
        BranchNotFound: there is none of that name.
        SnapshotNotFound: it never was, or cleanup has removed it.
    """
    ref = branches.find_branch(context.store, branch)
    return load_version(branches.catalog_of(context.store, ref), version)


def list_commits(
    context: GraphContext, branch: str, *, limit: int | None = None
) -> tuple[GraphCommit, ...]:
    """Every commit a branch contains, merged ones too, newest first.

    Raises:
        BranchNotFound: there is none of that name.
    """
    if limit is not None and limit < 0:
        raise ConfigError(f"`limit` is {limit}, give 0 or more")
    ref, state = context.head(branch)
    known = context.commits.of_branch(ref, state)
    found = list(ancestors(state.snapshot.commit.graph_commit_id, known.get))
    found.sort(key=lambda commit: (commit.created_at, commit.graph_commit_id), reverse=True)
    return tuple(islice(found, limit))
