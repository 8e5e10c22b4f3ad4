"""Everything cleanup must keep: which catalog versions stay, and the table versions they pin.

Reads refs, deleted branches, tags, leases and the commit log; deletes nothing.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ObjectNotFound
from omnigraph_core.history import refs
from omnigraph_core.history.ancestry import merge_base
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.retention import Version, retained
from omnigraph_core.manifest.catalog import load_latest, try_load_version
from omnigraph_core.storage.image import list_versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from omnigraph_core.engine.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.history.retention import Retention
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit

_PARALLEL: Final = 8

Pin = tuple[str, int]
"""A table's location and physical version."""


@dataclass(frozen=True, slots=True)
class CatalogRoots:
    """What stays and what goes of one branch's catalog, by version.

    A dead one belongs to a branch deleted longer than the grace period ago: it goes altogether,
    unless a tag or a lease names one of its versions.
    """

    ref: BranchRef
    kept: frozenset[int]
    doomed: frozenset[int]
    is_dead: bool = False

    def without(self, protected: Iterable[int]) -> CatalogRoots:
        """The same with versions moved to the kept ones."""
        found = self.doomed & frozenset(protected)
        return replace(self, kept=self.kept | found, doomed=self.doomed - found)


@dataclass(frozen=True, slots=True)
class _Head:
    ref: BranchRef
    state: CatalogState


def plan_catalogs(context: GraphContext, policy: Retention) -> tuple[CatalogRoots, ...]:
    """Decide for every branch, live or deleted.

    The commit log is caught up first: once versions are gone nothing else knows their commits.
    """
    now = time.time()
    live, dead = _all_refs(context, deleted_before=now - policy.grace)
    heads = [_Head(ref, load_latest(catalog_of(context.store, ref))) for ref in live]
    for head in heads:
        context.commits.catch_up(head.ref, head.state)
    _catch_up_dead(context, dead)
    commits = context.commits.log.commits()
    bases = _merge_bases(heads, commits)
    return (
        *(_plan(context, head, policy, commits, bases, now=now) for head in heads),
        *(_plan_dead(context, ref) for ref in dead),
    )


def _all_refs(
    context: GraphContext, *, deleted_before: float
) -> tuple[tuple[BranchRef, ...], tuple[BranchRef, ...]]:
    """Branches that are there or were a moment ago, and those long deleted."""
    # Marks first: a branch deleted in between is in both lists, never in none.
    deleted = refs.list_deleted(context.store)
    live = (refs.MAIN_REF, *refs.list_branch_refs(context.store))
    alive = {ref.incarnation for ref in live}
    gone = [mark for mark in deleted if mark.ref.incarnation not in alive]
    recent = [mark.ref for mark in gone if mark.deleted_at / 1_000_000 > deleted_before]
    dead = [mark.ref for mark in gone if mark.deleted_at / 1_000_000 <= deleted_before]
    return (*live, *recent), tuple(dead)


def _catch_up_dead(context: GraphContext, dead: Iterable[BranchRef]) -> None:
    for ref in dead:
        try:
            state = load_latest(catalog_of(context.store, ref))
        except ObjectNotFound:
            continue  # an earlier cleanup was killed while it removed this one
        context.commits.catch_up(ref, state)


def _plan_dead(context: GraphContext, ref: BranchRef) -> CatalogRoots:
    versions = frozenset(list_versions(context.store, ref.manifest))
    return CatalogRoots(ref, frozenset(), versions, is_dead=True)


def _merge_bases(
    heads: Iterable[_Head], commits: Iterable[GraphCommit]
) -> Mapping[str, frozenset[int]]:
    """Versions a later merge compares against, by incarnation: fork points and merge bases."""
    known = {commit.graph_commit_id: commit for commit in commits}
    by_incarnation = {head.ref.incarnation: head for head in heads}
    found: dict[str, set[int]] = {}
    for head in heads:
        fork = head.ref.forked_from
        if fork is None:
            continue
        found.setdefault(fork.incarnation, set()).add(fork.manifest_version)
        found.setdefault(head.ref.incarnation, set()).add(1)
        for other in {fork.incarnation, refs.MAIN_REF.incarnation} & by_incarnation.keys():
            base = merge_base(_id(head), _id(by_incarnation[other]), known.get)
            commit = known.get(base) if base is not None else None
            if commit is not None:
                found.setdefault(commit.incarnation, set()).add(commit.manifest_version)
    return {incarnation: frozenset(versions) for incarnation, versions in found.items()}


def _id(head: _Head) -> str:
    return head.state.snapshot.commit.graph_commit_id


def _plan(
    context: GraphContext,
    head: _Head,
    policy: Retention,
    commits: Iterable[GraphCommit],
    bases: Mapping[str, frozenset[int]],
    *,
    now: float,
) -> CatalogRoots:
    moments = {
        commit.manifest_version: commit.created_at
        for commit in commits
        if commit.incarnation == head.ref.incarnation
    }
    if head.ref.forked_from is not None:
        moments[1] = head.ref.created_at  # its first image is the fork, not a commit
    numbers = list_versions(context.store, head.ref.manifest)
    versions = [Version(number, moments.get(number)) for number in numbers]
    kept = retained(versions, policy, now=now)
    roots = CatalogRoots(head.ref, kept, frozenset(numbers) - kept)
    return roots.without(bases.get(head.ref.incarnation, ()))


def protect(context: GraphContext, plans: Collection[CatalogRoots]) -> tuple[CatalogRoots, ...]:
    """Spare what tags, leases and branches name: read after the doomed are announced.

    Leases before branches: who forks an old version holds it until the branch is there.
    """
    named: dict[str, set[int]] = {}
    for lease in refs.list_live_leases(context.store, time.time_ns() // 1000):
        named.setdefault(lease.incarnation, set()).add(lease.manifest_version)
    for tag in refs.list_tags(context.store):
        named.setdefault(tag.incarnation, set()).add(tag.manifest_version)
    planned = {plan.ref.incarnation for plan in plans}
    created = []
    for ref in refs.list_branch_refs(context.store):
        if ref.forked_from is not None:
            fork = ref.forked_from
            named.setdefault(fork.incarnation, set()).add(fork.manifest_version)
        if ref.incarnation not in planned:
            versions = frozenset(list_versions(context.store, ref.manifest))
            created.append(CatalogRoots(ref, versions, frozenset()))
    spared = [plan.without(named.get(plan.ref.incarnation, ())) for plan in plans]
    return (*spared, *created)


def pins(context: GraphContext, plans: Iterable[CatalogRoots]) -> dict[Pin, str]:
    """Every table version that a kept catalog version makes visible, and the table's key there."""
    wanted = [(plan.ref, version) for plan in plans for version in sorted(plan.kept)]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        found = pool.map(lambda item: _pins_of(context, *item), wanted)
        return {pin: table_key for group in found for pin, table_key in group.items()}


def _pins_of(context: GraphContext, ref: BranchRef, version: int) -> dict[Pin, str]:
    state = try_load_version(catalog_of(context.store, ref), version)
    if state is None:
        return {}  # another cleanup has just trimmed it
    tables = state.snapshot.tables.values()
    return {(entry.location, entry.physical_version): entry.table_key for entry in tables}
