"""Data that was dropped for good: older versions of the branch go, and who still has it is told.

Versions of other branches, tags and held snapshots stay as they are; so does whatever is younger
than the grace period, until a later cleanup.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.clock import now_us
from omnigraph_core.engine.cleanup import cleanup
from omnigraph_core.errors import ConflictError, NotFoundError, SnapshotNotFound, StorageError
from omnigraph_core.evolve.report import PurgeReport
from omnigraph_core.history import refs
from omnigraph_core.history.branches import catalog_of
from omnigraph_core.history.retention import retention
from omnigraph_core.history.snapshots import state_at
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.manifest.catalog import load_latest
from omnigraph_core.schema.arrow import origin_column, uri_column
from omnigraph_core.schema.document import document_from_json
from omnigraph_core.schema.migrate import DropMode
from omnigraph_core.schema.migrate.steps import DropProperty, DropType
from omnigraph_core.storage.purge import stored_field_ids
from omnigraph_core.storage.row_space import column_identities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.engine.cleanup import CleanupReport
    from omnigraph_core.evolve.plan import PlannedSchema
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DroppedData:
    """A table that is gone for good, or a property of it: its id and those of its columns."""

    location: str
    property_id: int | None = None
    field_ids: frozenset[int] = frozenset()


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
    return DroppedData(
        entry.location,
        _property_ids(base)[entry.table_key][name],
        frozenset(ids[item][0] for item in columns if item in ids),
    )


def _property_ids(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Table key → property → its id in the schema document."""
    document = document_from_json(json.loads(snapshot.schema.document))
    tables = {node_table_key(type.name): type.properties for type in document.nodes}
    tables |= {edge_table_key(type.name): type.properties for type in document.edges}
    return {
        key: {item.name: item.prop_id for item in properties} for key, properties in tables.items()
    }


def purge(context: GraphContext, branch: str, dropped: Sequence[DroppedData]) -> PurgeReport:
    """Remove the older versions of a branch that nothing protects; the branch has changed already.

    So a failure is told, not raised.
    """
    policy = retention(1, None)
    try:
        removed = cleanup(context, policy, branches=(branch,), is_preview=False)
        holders = (*_own_versions(removed, branch), *_holders(context, branch, dropped))
    except (StorageError, ConflictError, NotFoundError) as problem:
        return PurgeReport(0, 0, (), policy.grace, str(problem))
    return PurgeReport(removed.old_versions_removed, removed.bytes_removed, holders, policy.grace)


def _own_versions(removed: CleanupReport, branch: str) -> Iterator[str]:
    older = sum(item.versions_kept - 1 for item in removed.branches if item.branch == branch)
    if older > 0:
        yield f"{older} older version{'' if older == 1 else 's'} of branch {branch}"


def _holders(context: GraphContext, branch: str, dropped: Sequence[DroppedData]) -> Iterator[str]:
    for label, state in _others(context, branch):
        if _holds(context, state.snapshot, dropped):
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


def _holds(context: GraphContext, snapshot: Snapshot, dropped: Sequence[DroppedData]) -> bool:
    """Whether a table, a property under whatever name, or a file has some of the data.

    A property that was widened has other fields than before; one that was dropped without loss is
    in no schema, but in the files.
    """
    entries = {entry.location: entry for entry in snapshot.tables.values()}
    properties = _property_ids(snapshot)
    for data in dropped:
        entry = entries.get(data.location)
        if entry is None:
            continue
        if data.property_id in (None, *properties[entry.table_key].values()):
            return True
        table = context.table(entry.location, entry.physical_version)
        if data.field_ids & stored_field_ids(table):
            return True
    return False
