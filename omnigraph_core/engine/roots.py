"""Everything cleanup must keep: which catalog versions stay, and the table versions they pin.

Reads refs, deleted branches, tags, leases and the commit log; deletes nothing.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph_core.clock import now_us
from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import BranchNotFound, ObjectNotFound, StorageError
from omnigraph_core.history import refs
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.junctions import junctions
from omnigraph_core.history.refs import BranchRef
from omnigraph_core.history.retention import Version, retained
from omnigraph_core.manifest.catalog import load_latest, try_load_version
from omnigraph_core.manifest.layout import branch_manifest_path
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage.image import has_version, list_versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.retention import Retention
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import GraphCommit

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


def plan_catalogs(
    context: GraphContext,
    policy: Retention,
    *,
    branches: Collection[str] | None = None,
    is_preview: bool,
) -> tuple[CatalogRoots, ...]:
    """Decide for every branch, live or deleted.

    Unless it is a preview, the commit log is caught up first: once versions are gone nothing else
    knows their commits.

    Args:
        branches: the only ones that versions are taken from; all if not given.

    Raises:
        BranchNotFound: a branch that is named is not there, nor was.
    """
    now = time.time()
    live, dead = _all_refs(context, deleted_before=now - policy.grace)
    _check_known(branches, (*live, *dead))
    with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
        states = pool.map(lambda ref: load_latest(catalog_of(context.store, ref)), live)
        heads = [_Head(ref, state) for ref, state in zip(live, states, strict=True)]
    missing = [
        commit
        for head in (*heads, *_dead_heads(context, dead))
        for commit in context.commits.missing(head.ref, head.state)
    ]
    if not is_preview:
        context.commits.log.record(missing)
    commits = (*context.commits.log.commits(), *(missing if is_preview else ()))
    bases = _merge_bases(heads, commits)
    moments: dict[str, dict[int, float]] = {}
    for commit in commits:
        own = moments.setdefault(commit.incarnation, {})
        own[commit.manifest_version] = commit.created_at / 1_000_000
    plans = (
        *(
            _plan(context, ref, policy, moments.get(ref.incarnation, {}), now=now)
            if _is_chosen(ref, branches)
            else _keep_all(context, ref)
            for ref in live
        ),
        *(
            _plan_dead(context, ref) if _is_chosen(ref, branches) else _spare_dead(context, ref)
            for ref in dead
        ),
    )
    return tuple(plan.without(bases.get(plan.ref.incarnation, ())) for plan in plans)


def _is_chosen(ref: BranchRef, branches: Collection[str] | None) -> bool:
    return branches is None or ref.branch in branches


def _check_known(branches: Collection[str] | None, known: Iterable[BranchRef]) -> None:
    names = {ref.branch for ref in known}
    for name in branches or ():
        if name not in names:
            raise BranchNotFound(f"no branch `{name}`", hint=did_you_mean(name, sorted(names)))


def _all_refs(
    context: GraphContext, *, deleted_before: float
) -> tuple[tuple[BranchRef, ...], tuple[BranchRef, ...]]:
    """Branches that are there or were a moment ago, and those long deleted."""
    # Marks last: a branch deleted in between is in both lists, never in none.
    live = (refs.MAIN_REF, *refs.list_branch_refs(context.store))
    deleted = refs.list_deleted(context.store)
    alive = {ref.incarnation for ref in live}
    gone = [mark for mark in deleted if mark.ref.incarnation not in alive]
    recent = [mark.ref for mark in gone if mark.deleted_at / 1_000_000 > deleted_before]
    dead = [mark.ref for mark in gone if mark.deleted_at / 1_000_000 <= deleted_before]
    return (*live, *recent), tuple(dead)


def _dead_heads(context: GraphContext, dead: Iterable[BranchRef]) -> Iterator[_Head]:
    for ref in dead:
        try:
            yield _Head(ref, load_latest(catalog_of(context.store, ref)))
        except ObjectNotFound:
            continue  # an earlier cleanup was killed while it removed this one


def _plan_dead(context: GraphContext, ref: BranchRef) -> CatalogRoots:
    versions = frozenset(list_versions(context.store, ref.manifest))
    return CatalogRoots(ref, frozenset(), versions, is_dead=True)


def _spare_dead(context: GraphContext, ref: BranchRef) -> CatalogRoots:
    """All that can be read: of the rest an earlier cleanup has left only pieces."""
    catalog = catalog_of(context.store, ref)
    versions = list_versions(context.store, ref.manifest)
    readable = [number for number in versions if try_load_version(catalog, number) is not None]
    return CatalogRoots(ref, frozenset(readable), frozenset())


def _merge_bases(
    heads: Iterable[_Head], commits: Iterable[GraphCommit]
) -> Mapping[str, frozenset[int]]:
    """Versions a later merge compares against, by incarnation.

    Fork points, and all that a merge of any two branches needs.
    """
    known = {commit.graph_commit_id: commit for commit in commits}
    found: dict[str, set[int]] = {}
    for shared in map(known.__getitem__, junctions(map(_id, heads), known)):
        found.setdefault(shared.incarnation, set()).add(shared.manifest_version)
    for head in heads:
        fork = head.ref.forked_from
        if fork is not None:
            found.setdefault(fork.incarnation, set()).add(fork.manifest_version)
            found.setdefault(head.ref.incarnation, set()).add(1)
    return {incarnation: frozenset(versions) for incarnation, versions in found.items()}


def _id(head: _Head) -> str:
    return head.state.snapshot.commit.graph_commit_id


def _plan(
    context: GraphContext,
    ref: BranchRef,
    policy: Retention,
    moments: Mapping[int, float],
    *,
    now: float,
) -> CatalogRoots:
    if ref.forked_from is not None:  # its first image is the fork, not a commit
        moments = {**moments, 1: ref.created_at / 1_000_000}
    written = list_versions(context.store, ref.manifest)
    versions = [Version(number, moments.get(number), at) for number, at in written.items()]
    kept = retained(versions, policy, now=now)
    return CatalogRoots(ref, kept, frozenset(written) - kept)


def protect(context: GraphContext, plans: Collection[CatalogRoots]) -> tuple[CatalogRoots, ...]:
    """Spare what tags, leases and branches name: read after the doomed are announced.

    Leases before branches: who forks an old version holds it until the branch is there.
    """
    named: dict[str, set[int]] = {}
    for lease in refs.list_live_leases(context.store, now_us()):
        named.setdefault(lease.incarnation, set()).add(lease.manifest_version)
    for tag in refs.list_tags(context.store):
        named.setdefault(tag.incarnation, set()).add(tag.manifest_version)
    created = []
    for ref in refs.list_branch_refs(context.store):
        if ref.forked_from is not None:
            fork = ref.forked_from
            named.setdefault(fork.incarnation, set()).add(fork.manifest_version)
        created.append(ref)
    planned = {plan.ref.incarnation for plan in plans}
    late = {ref.incarnation: ref for ref in (*map(_unplanned, named), *created)}
    added = [ref for incarnation, ref in late.items() if incarnation not in planned]
    spared = [plan.without(named.get(plan.ref.incarnation, ())) for plan in plans]
    return (*map(_with_newest, spared), *(_keep_all(context, ref) for ref in added))


def _unplanned(incarnation: str) -> BranchRef:
    """A branch nothing is known of but its incarnation: named, so kept."""
    return BranchRef("?", incarnation, branch_manifest_path(incarnation), None, 0, None)


def _keep_all(context: GraphContext, ref: BranchRef) -> CatalogRoots:
    return CatalogRoots(ref, frozenset(list_versions(context.store, ref.manifest)), frozenset())


def _with_newest(plan: CatalogRoots) -> CatalogRoots:
    """Lance never removes the newest version: of a catalog that stays, its files stay too."""
    newest = max(plan.kept | plan.doomed, default=0)
    return plan.without([newest]) if plan.is_dead and plan.kept else plan


def pins(context: GraphContext, plans: Iterable[CatalogRoots]) -> dict[Pin, str]:
    """Every table version that a kept catalog version makes visible, and the table's key there."""
    wanted = [(plan.ref, version) for plan in plans for version in sorted(plan.kept)]
    with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
        found = pool.map(lambda item: _pins_of(context, *item), wanted)
        return {pin: table_key for group in found for pin, table_key in group.items()}


def _pins_of(context: GraphContext, ref: BranchRef, version: int) -> dict[Pin, str]:
    state = try_load_version(catalog_of(context.store, ref), version)
    if state is None:
        if has_version(context.store, ref.manifest, version):
            raise StorageError(
                f"version {version} of {context.store.uri(ref.manifest)} has lost its file",
                hint="restore it from a copy of the graph: cleanup cannot tell what it needs",
            )
        return {}  # another cleanup has just trimmed it
    tables = state.snapshot.tables.values()
    return {(entry.location, entry.physical_version): entry.table_key for entry in tables}
