"""The way from the schema of a snapshot to another: a text comes in, a plan goes out.

Nothing is read but the schema in force; whatever continues keeps its identity, and its table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.diagnostics import Source
from omnigraph_core.evolve.report import StepReport
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.manifest.image import AcceptedSchema
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.continuity import continuity, next_document
from omnigraph_core.schema.document import (
    catalog_from_document,
    document_from_json,
    render_document,
    schema_hash,
)
from omnigraph_core.schema.migrate import DataWork, TypeKind, plan_migration
from omnigraph_core.schema.migrate.steps import DropType
from omnigraph_core.schema.reshape import is_same_shape, reshape
from omnigraph_core.storage.row_space import stored_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog
    from omnigraph_core.schema.continuity import Continuity
    from omnigraph_core.schema.document import SchemaDocument
    from omnigraph_core.schema.migrate import MigrationPlan, Step
    from omnigraph_core.schema.reshape import ColumnSource, GraphType


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table that continues, and how its rows are seen afterwards."""

    old_key: str
    type: GraphType
    sources: Mapping[str, ColumnSource]
    has_other_columns: bool

    @property
    def new_key(self) -> str:
        return self.type.table_key


@dataclass(frozen=True, slots=True)
class PlannedSchema:
    """A plan between two schemas, and what becomes of every table."""

    plan: MigrationPlan
    accepted: AcceptedSchema
    """As it will be in force."""
    before: Catalog
    after: Catalog
    kept: tuple[KeptTable, ...]
    added: tuple[GraphType, ...]
    dropped: tuple[str, ...]
    """Keys of tables that go."""

    @property
    def old_keys(self) -> dict[str, str]:
        """Later key → earlier key, of tables that continue."""
        return {table.new_key: table.old_key for table in self.kept}


def plan_schema(
    snapshot: Snapshot, desired: str | AcceptedSchema, *, allow_data_loss: bool
) -> PlannedSchema:
    """The plan from the schema of a snapshot to a desired one, supported or not.

    Args:
        desired: a source text, or a schema whose identities are known.

    Raises:
        SchemaSyntaxError, SchemaError: the text is wrong.
    """
    old = document_from_json(json.loads(snapshot.schema.document))
    accepted, new, after = _desired(desired, old)
    before = accepted_catalog(snapshot.schema)
    plan = plan_migration(old, after, allow_data_loss=allow_data_loss)
    going_on = continuity(old, new)
    kept = (
        *_kept("node", before.nodes, after.nodes, going_on.nodes, going_on),
        *_kept("edge", before.edges, after.edges, going_on.edges, going_on),
    )
    continued, later = {item.old_key for item in kept}, {item.new_key for item in kept}
    types: tuple[GraphType, ...] = (*after.nodes.values(), *after.edges.values())
    return PlannedSchema(
        plan,
        accepted,
        before,
        after,
        kept,
        tuple(type for type in types if type.table_key not in later),
        tuple(key for key in snapshot.tables if key not in continued),
    )


def require_supported(planned: PlannedSchema) -> None:
    """
    Raises:
        UnsupportedMigration: every change that cannot be carried out.
    """
    planned.plan.require_supported(Source(planned.accepted.source, "<schema>"))


def _desired(
    desired: str | AcceptedSchema, old: SchemaDocument
) -> tuple[AcceptedSchema, SchemaDocument, Catalog]:
    if isinstance(desired, AcceptedSchema):
        given = document_from_json(json.loads(desired.document))
        return desired, given, catalog_from_document(given)
    compiled = compile_schema(desired)
    new = next_document(compiled, old)
    return AcceptedSchema(desired, render_document(new), schema_hash(new)), new, compiled


def _kept(
    kind: str,
    before: Mapping[str, GraphType],
    after: Mapping[str, GraphType],
    names: Mapping[str, str],
    going_on: Continuity,
) -> list[KeptTable]:
    found = []
    for old_name, new_name in names.items():
        old, new = before[old_name], after[new_name]
        renamed = going_on.properties[kind, old_name]
        found.append(
            KeptTable(
                old.table_key,
                new,
                reshape(old, new, renamed),
                has_other_columns=not is_same_shape(old, new, renamed),
            )
        )
    return found


def step_reports(
    context: GraphContext, snapshot: Snapshot, planned: PlannedSchema
) -> tuple[StepReport, ...]:
    """Every step with the rows it concerns: reads metadata of tables that there is work in."""
    sizes: dict[str, int | None] = {}
    return tuple(_report(context, snapshot, planned, step, sizes) for step in planned.plan.steps)


def _report(
    context: GraphContext,
    snapshot: Snapshot,
    planned: PlannedSchema,
    step: Step,
    sizes: dict[str, int | None],
) -> StepReport:
    key = _table_key(step)
    entry = None if key is None else snapshot.tables.get(planned.old_keys.get(key, key))
    has_work = step.data_work not in (None, DataWork.NONE)
    if entry is None or not (has_work or isinstance(step, DropType)):
        return StepReport(step)
    if entry.table_key not in sizes:
        table = context.table(entry.location, entry.physical_version)
        sizes[entry.table_key] = stored_bytes(table)
    return StepReport(step, entry.row_count, sizes[entry.table_key] if has_work else None)


def _table_key(step: Step) -> str | None:
    """The table a step is about, as it is called after the steps before."""
    kind = getattr(step, "type_kind", None)
    name = getattr(step, "type_name", None) or getattr(step, "name", None)
    if name is None or kind not in (TypeKind.NODE, TypeKind.EDGE):
        return None
    return node_table_key(name) if kind is TypeKind.NODE else edge_table_key(name)
