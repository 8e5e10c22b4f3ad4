"""Cleanup: mark everything a kept version can reach, sweep the rest.

The order is what makes it safe beside running writers and readers. Files are listed before roots
are read, so nothing written meanwhile is a candidate; versions are trimmed before files are swept,
so a version that exists is readable; and nothing younger than the grace period is touched at all.
Killed at any point it leaves garbage for the next one.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from omnigraph_core.clock import now_us
from omnigraph_core.constants import EMBED_BATCH_KEPT_SECONDS
from omnigraph_core.engine.optimize import LOGS
from omnigraph_core.engine.roots import pins, plan_catalogs, protect
from omnigraph_core.engine.runs import drop_run_branches
from omnigraph_core.engine.sweeping import SweeperHere
from omnigraph_core.errors import StorageError
from omnigraph_core.failpoints import declare
from omnigraph_core.history import refs
from omnigraph_core.history.refs import CleanupIntent
from omnigraph_core.ids import new_ulid
from omnigraph_core.job_report import SparkResult, job_facts, spark_member
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.layout import BRANCH_MANIFESTS, branch_manifest_path
from omnigraph_core.settings import MAINTENANCE_CONCURRENCY
from omnigraph_core.storage.derived import DERIVED, list_derived, read_pins
from omnigraph_core.storage.image import trim_versions
from omnigraph_core.storage.log import open_log, trim
from omnigraph_core.storage.objects import list_directories
from omnigraph_core.storage.scratch import SCRATCH, list_scratch, remove_scratch
from omnigraph_core.storage.sweep import delete_files, list_files, prune_directories
from omnigraph_core.write.batch_records import scratch_of_batch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from contextlib import AbstractContextManager

    from omnigraph_core.engine.roots import CatalogRoots, Pin
    from omnigraph_core.engine.sweeping import Garbage, Sweeper
    from omnigraph_core.engine.workers import Workers
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.retention import Retention
    from omnigraph_core.storage.objects import StoredObject
    from omnigraph_core.storage.session import Store

_ANNOUNCED: Final = declare("cleanup.after_intent", "the doomed versions are announced")
_TRIMMED: Final = declare("cleanup.after_trim", "old catalog versions are gone, their files not")

_ANNOUNCEMENT_SECONDS: Final = 86_400
"""After that an announcement is taken for one of a cleanup that was killed."""


@dataclass(frozen=True, slots=True)
class BranchCleanup:
    """Versions of a branch that are, or would be, removed."""

    branch: str
    old_versions_removed: int
    versions_kept: int

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "old_versions_removed": self.old_versions_removed,
            "versions_kept": self.versions_kept,
        }


@dataclass(frozen=True, slots=True)
class TableCleanup:
    """What is, or would be, removed of one table; `table_key` is None if no kept version has it."""

    table_key: str | None
    location: str
    old_versions_removed: int
    files_removed: int
    bytes_removed: int

    def to_json(self) -> dict[str, object]:
        return {
            "table_key": self.table_key,
            "location": self.location,
            "bytes_removed": self.bytes_removed,
            "old_versions_removed": self.old_versions_removed,
            "files_removed": self.files_removed,
        }


@dataclass(frozen=True, slots=True)
class CleanupReport(SparkResult):
    """What is, or would be, removed; derived files are made again when they are needed."""

    is_preview: bool
    branches: tuple[BranchCleanup, ...]
    tables: tuple[TableCleanup, ...]
    derived_files_removed: int = 0
    derived_bytes_removed: int = 0

    @property
    def bytes_removed(self) -> int:
        """Of tables."""
        return sum(table.bytes_removed for table in self.tables)

    @property
    def old_versions_removed(self) -> int:
        """Of branches."""
        return sum(branch.old_versions_removed for branch in self.branches)

    def to_json(self) -> dict[str, object]:
        return {
            "is_preview": self.is_preview,
            "old_versions_removed": self.old_versions_removed,
            "bytes_removed": self.bytes_removed,
            "derived_files_removed": self.derived_files_removed,
            "derived_bytes_removed": self.derived_bytes_removed,
            "branches": [branch.to_json() for branch in self.branches],
            "tables": [table.to_json() for table in self.tables],
            **spark_member(self),
        }


def cleanup(
    context: GraphContext,
    policy: Retention,
    *,
    branches: Collection[str] | None = None,
    is_preview: bool,
    workers: Workers | None = None,
) -> CleanupReport:
    """Remove old versions and every file that nothing kept needs.

    Args:
        branches: the only ones that versions are taken from; every version of the others stays.
        workers: who lists, marks and removes files of tables; by default threads of this process.

    Raises:
        BranchNotFound: a branch that is named is not there, nor was.
        StorageError: a root cannot be read; nothing was removed.
    """
    started, store = time.time(), context.store
    older_than = started - policy.grace
    with (
        _described(context, workers, branches),
        _listed(store, workers, older_than=older_than) as tables,
    ):
        derived = list_derived(store)
        plans = plan_catalogs(context, policy, branches=branches, is_preview=is_preview)
        intent = None if is_preview else _announce(context, plans)
        plans = protect(context, plans)
        kept = pins(context, plans)
        garbage = tables.mark(kept)
        outdated = _find_outdated(context, derived, kept, older_than=older_than)
        if intent is not None:
            _trim(context, plans)
            refs.delete_cleanup(store, intent.id)
            _TRIMMED.hit()
            tables.sweep()
            delete_files(store, DERIVED, [_below_derived(file) for file in outdated])
            _remove_unfinished_catalogs(context, plans, older_than=older_than)
            _remove_leftovers(context, policy, now=started)
    derived_bytes = sum(file.size for file in outdated)
    rows = _table_rows(garbage, kept)
    return CleanupReport(is_preview, _branch_rows(plans), rows, len(outdated), derived_bytes)


def _described(
    context: GraphContext, workers: Workers | None, branches: Collection[str] | None
) -> AbstractContextManager[object]:
    """Name branches and types in the jobs of others; this process has no jobs to describe."""
    if workers is None:
        return nullcontext()
    names = refs.list_branch_names(context.store) if branches is None else sorted(branches)
    _, main = context.head(MAIN)
    return job_facts(branch=names, tables=main.snapshot.table_keys)


def _listed(
    store: Store, workers: Workers | None, *, older_than: float
) -> AbstractContextManager[Sweeper]:
    if workers is None:
        return nullcontext(SweeperHere(store, older_than=older_than))
    return workers.sweeper(store, older_than=older_than)


def _announce(context: GraphContext, plans: Iterable[CatalogRoots]) -> CleanupIntent:
    """Say which versions are about to go.

    The announcement comes first, and what tags and leases name is read after it; who makes a tag or
    a lease does the reverse. So at least one of the two sees the other.
    """
    now = now_us()
    doomed = {plan.ref.incarnation: tuple(sorted(plan.doomed)) for plan in plans if plan.doomed}
    intent = CleanupIntent(new_ulid(), now, now + _ANNOUNCEMENT_SECONDS * 1_000_000, doomed)
    refs.put_cleanup(context.store, intent)
    _ANNOUNCED.hit()
    return intent


def _trim(context: GraphContext, plans: Iterable[CatalogRoots]) -> None:
    for plan in plans:
        if plan.is_dead and not plan.kept:
            _remove_catalog(context, plan.ref.incarnation)
        else:
            trim_versions(context.store, plan.ref.manifest, plan.doomed)


def _remove_catalog(context: GraphContext, incarnation: str) -> None:
    path = branch_manifest_path(incarnation)
    files = list_files(context.store, path)
    delete_files(context.store, path, [file.path for file in files])
    refs.remove_deleted(context.store, incarnation)


def _find_outdated(
    context: GraphContext,
    derived: Iterable[StoredObject],
    kept: Collection[Pin],
    *,
    older_than: float,
) -> tuple[StoredObject, ...]:
    """The old derived files made from a table version that is not kept."""
    old = [file for file in derived if file.last_modified.timestamp() < older_than]
    with ThreadPoolExecutor(MAINTENANCE_CONCURRENCY.read()) as pool:
        needed = pool.map(lambda file: _is_needed(context, file, kept), old)
        return tuple(file for file, is_needed in zip(old, needed, strict=True) if not is_needed)


def _below_derived(file: StoredObject) -> str:
    return file.path.removeprefix(f"{DERIVED}/")


def _is_needed(context: GraphContext, file: StoredObject, kept: Collection[Pin]) -> bool:
    try:
        made_from = read_pins(context.store, file)
    except StorageError:
        return True  # it may be whole: the next cleanup will see
    return made_from is not None and all(pin in kept for pin in made_from)


def _remove_unfinished_catalogs(
    context: GraphContext, plans: Iterable[CatalogRoots], *, older_than: float
) -> None:
    """Catalogs whose branch never came to be: their creator was killed or lost the name."""
    known = {plan.ref.incarnation for plan in plans}
    for incarnation in list_directories(context.store, BRANCH_MANIFESTS):
        if incarnation not in known:
            files = list_files(context.store, branch_manifest_path(incarnation))
            if all(file.last_modified.timestamp() < older_than for file in files):
                _remove_catalog(context, incarnation)


def _remove_leftovers(context: GraphContext, policy: Retention, *, now: float) -> None:
    """Expired leases and announcements, branches of ended runs, what jobs have left for their
    parts, and old versions of the logs."""
    store, microseconds = context.store, round(now * 1_000_000)
    for lease in refs.list_leases(store):
        if lease.expires_at < microseconds:
            refs.release_lease(store, lease.id)
    for intent in refs.list_cleanups(store):
        if intent.expires_at < microseconds:
            refs.delete_cleanup(store, intent.id)
    drop_run_branches(context, older_than=microseconds - round(policy.grace * 1_000_000))
    remove_scratch(store, _old_scratch(store, policy, now=now))
    for prefix in ("nodes", "edges", BRANCH_MANIFESTS, SCRATCH):
        prune_directories(store, prefix, older_than=now - policy.grace)
    for path in LOGS:
        log = open_log(store, path)
        if log is not None:
            trim(log, timedelta(seconds=policy.grace))


def _old_scratch(store: Store, policy: Retention, *, now: float) -> list[StoredObject]:
    """What jobs have left long ago. A batch at a provider may take longer than other jobs."""
    found = list_scratch(store)
    kept_since = now - max(policy.grace, EMBED_BATCH_KEPT_SECONDS.value)
    awaited = {
        job
        for item in found
        if item.last_modified.timestamp() >= kept_since
        for job in scratch_of_batch(item.path)
    }
    return [
        item
        for item in found
        if item.last_modified.timestamp() < now - policy.grace
        and item.path.split("/")[1] not in awaited
    ]


def _branch_rows(plans: Iterable[CatalogRoots]) -> tuple[BranchCleanup, ...]:
    return tuple(BranchCleanup(plan.ref.branch, len(plan.doomed), len(plan.kept)) for plan in plans)


def _table_rows(
    garbage: Mapping[str, Garbage], kept: Mapping[Pin, str]
) -> tuple[TableCleanup, ...]:
    keys = {location: table_key for (location, _), table_key in kept.items()}
    return tuple(
        TableCleanup(keys.get(location), location, found.versions, found.files, found.bytes)
        for location, found in sorted(garbage.items())
    )
