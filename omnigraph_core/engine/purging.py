"""Data that was dropped for good: older versions of the branch go, and who still has it is told.

Versions of other branches, tags and held snapshots stay as they are; so does whatever is younger
than the grace period, until a later cleanup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.clock import now_us
from omnigraph_core.engine.cleanup import cleanup
from omnigraph_core.errors import ConflictError, SnapshotNotFound, StorageError
from omnigraph_core.evolve.report import PurgeReport
from omnigraph_core.history import refs
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.retention import retention
from omnigraph_core.history.snapshots import state_at
from omnigraph_core.manifest.catalog import load_latest
from omnigraph_core.schema.arrow import origin_column, uri_column
from omnigraph_core.schema.migrate import DropMode
from omnigraph_core.schema.migrate.steps import DropProperty, DropType
from omnigraph_core.storage.row_space import column_identities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.evolve.plan import PlannedSchema
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.image import Image
    from omnigraph_core.manifest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DroppedData:
    """A table, or some columns of it by their field ids, that is gone for good."""

    location: str
    field_ids: frozenset[int] | None = None


def find_dropped(
    context: GraphContext, base: Snapshot, planned: PlannedSchema
) -> tuple[DroppedData, ...]:
    """What a plan takes away for good, as the snapshot before it knows it."""
    found = []
    for step in planned.plan.steps:
        if isinstance(step, DropType) and step.mode is DropMode.HARD:
            found.append(DroppedData(base.table(f"{step.type_kind}:{step.name}").location))
        elif isinstance(step, DropProperty) and step.mode is DropMode.HARD:
            found.append(_dropped_columns(context, base, planned, step))
    return tuple(found)


def _dropped_columns(
    context: GraphContext, base: Snapshot, planned: PlannedSchema, step: DropProperty
) -> DroppedData:
    entry = base.table(planned.old_keys[f"{step.type_kind}:{step.type_name}"])
    ids = column_identities(context.table(entry.location, entry.physical_version))
    name = step.property_name
    columns = (name, uri_column(name), origin_column(name))
    return DroppedData(entry.location, frozenset(ids[item][0] for item in columns if item in ids))


def purge(context: GraphContext, branch: str, dropped: Sequence[DroppedData]) -> PurgeReport:
    """Remove the older versions of a branch that nothing protects; the branch has changed already.

    So a failure is told, not raised.
    """
    policy = retention(1, None)
    try:
        removed = cleanup(context, policy, branches=(branch,), is_preview=False)
        holders = (*_own_versions(removed, branch), *_holders(context, branch, dropped))
    except (StorageError, ConflictError) as problem:
        return PurgeReport(0, 0, (), policy.grace, str(problem))
    return PurgeReport(removed.old_versions_removed, removed.bytes_removed, holders, policy.grace)


def _own_versions(removed: CleanupReport, branch: str) -> Iterator[str]:
    older = sum(item.versions_kept - 1 for item in removed.branches if item.branch == branch)
    if older > 0:
        yield f"{older} older version{'' if older == 1 else 's'} of branch {branch}"


def _holders(context: GraphContext, branch: str, dropped: Sequence[DroppedData]) -> Iterator[str]:
    for label, state in _others(context, branch):
        if _holds(context, state.snapshot.image, dropped):
            yield label


def _others(context: GraphContext, branch: str) -> Iterator[tuple[str, CatalogState]]:
    """Every state outside the branch that cleanup keeps for somebody."""
    store = context.store
    for ref in (refs.MAIN_REF, *refs.list_branch_refs(store)):
        if ref.branch != branch:
            yield f"branch {ref.branch}", load_latest(catalog_of(store, ref))
    for tag in refs.list_tags(store):
        state = _try_state(context, tag.incarnation, tag.manifest_version)
        if state is not None:
            yield f"tag {tag.tag}", state
    for lease in refs.list_live_leases(store, now_us()):
        state = _try_state(context, lease.incarnation, lease.manifest_version)
        if state is not None:
            yield f"reader {lease.purpose}", state


def _try_state(context: GraphContext, incarnation: str, version: int) -> CatalogState | None:
    """The state; None if it is gone, and its name or claim with it."""
    try:
        return state_at(context.store, "?", incarnation, version)
    except SnapshotNotFound:
        return None


def _holds(context: GraphContext, image: Image, dropped: Sequence[DroppedData]) -> bool:
    for entry in image.tables.values():
        for data in dropped:
            if entry.location != data.location:
                continue
            if data.field_ids is None:
                return True
            table = context.table(entry.location, entry.physical_version)
            ids = {id for id, _ in column_identities(table).values()}
            if data.field_ids & ids:
                return True
    return False
