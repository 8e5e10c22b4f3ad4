"""A schema change prepared on a state of a branch: a schema comes in, staged changes go out.

Rows are checked as they will be before anything is staged; what is staged nobody sees until a
commit names it. So a change that is refused or killed leaves the branch as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.compare.view import RowView
from omnigraph_core.errors import AlreadyExists
from omnigraph_core.evolve.plan import plan_schema, require_supported, step_reports
from omnigraph_core.evolve.tables import evolve_table
from omnigraph_core.evolve.validate import check_tightened
from omnigraph_core.failpoints import declare
from omnigraph_core.ids import edge_table_key, new_ulid, node_table_key
from omnigraph_core.manifest.changes import (
    AcceptSchema,
    RegisterTable,
    RenameTable,
    TombstoneTable,
    UpdateTable,
)
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.layout import table_location
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.schema.migrate import DropMode, TypeKind
from omnigraph_core.schema.migrate.steps import DropProperty
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.purge import purge_dropped
from omnigraph_core.violations import Violations
from omnigraph_core.write.refuse import refuse

if TYPE_CHECKING:
    from omnigraph_core.evolve.plan import KeptTable, PlannedSchema
    from omnigraph_core.evolve.report import StepReport
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.migrate import MigrationPlan
    from omnigraph_core.schema.reshape import GraphType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.rearrange import WrittenColumns
    from omnigraph_core.storage.session import Store

_TABLE: Final = declare("schema.after_table", "one more table of a new type exists, unnamed")
_STAGED: Final = declare("schema.after_stage", "a schema change is staged, nothing is published")


@dataclass(frozen=True, slots=True)
class PreparedSchema:
    """A schema change that is checked and, unless it is a rehearsal, staged.

    `read` are keys of the tables that were looked at and must not move; without steps there are no
    changes.
    """

    plan: MigrationPlan
    accepted: AcceptedSchema
    steps: tuple[StepReport, ...]
    changes: tuple[Change, ...] = ()
    read: frozenset[str] = frozenset()


def prepare_schema(
    context: GraphContext,
    state: CatalogState,
    desired: str | AcceptedSchema,
    *,
    allow_data_loss: bool,
    is_rehearsal: bool = False,
    done: WrittenColumns | None = None,
) -> PreparedSchema:
    """Plan, check the rows and stage.

    Args:
        is_rehearsal: check only, write nothing.
        done: columns written by attempts that others have overtaken; grows by those of this one.

    Raises:
        CompileError: the text is wrong, or a change cannot be carried out.
        DataError: rows do not allow it; with all of them.
    """
    snapshot = state.snapshot
    planned = plan_schema(snapshot, desired, allow_data_loss=allow_data_loss)
    if not planned.plan.steps:
        return PreparedSchema(planned.plan, snapshot.schema, ())
    require_supported(planned)
    steps = step_reports(context, snapshot, planned)
    preparation = _Preparation(context, snapshot, planned, done)
    read = preparation.check()
    changes = () if is_rehearsal else preparation.stage()
    return PreparedSchema(planned.plan, planned.accepted, steps, changes, read)


class _Preparation:
    """One change on its way: the tables of a snapshot and what they become."""

    def __init__(
        self,
        context: GraphContext,
        snapshot: Snapshot,
        planned: PlannedSchema,
        done: WrittenColumns | None,
    ) -> None:
        self._context = context
        self._snapshot = snapshot
        self._planned = planned
        self._done = done
        self._kept = {table.new_key: table for table in planned.kept}

    def check(self) -> frozenset[str]:
        """Refuse rows that the plan does not allow; the present keys of the tables looked at."""
        violations = Violations()
        planned = self._planned
        read = check_tightened(planned.before, planned.after, planned.plan, self._view, violations)
        refuse(violations)
        return frozenset(planned.old_keys[key] for key in read)

    def _view(self, new_key: str) -> RowView | None:
        kept = self._kept.get(new_key)
        return None if kept is None else RowView.of(self._table(kept), kept.type, kept.sources)

    def _table(self, kept: KeptTable) -> Table:
        entry = self._snapshot.table(kept.old_key)
        return self._context.table(entry.location, entry.physical_version)

    def stage(self) -> tuple[Change, ...]:
        """Everything the change takes, staged."""
        planned, purged = self._planned, _purged_keys(self._planned.plan)
        changed = (self._changed(kept, is_purged=kept.new_key in purged) for kept in planned.kept)
        changes: tuple[Change, ...] = (
            *(change for change in changed if change is not None),
            *(self._added(type) for type in planned.added),
            *map(TombstoneTable, planned.dropped),
            AcceptSchema(planned.accepted),
        )
        _STAGED.hit()
        return changes

    def _changed(self, kept: KeptTable, *, is_purged: bool) -> Change | None:
        table = None
        if kept.has_other_columns:
            table = evolve_table(self._table(kept), kept.type, kept.sources, done=self._done)
        if is_purged and table is not None:
            table = purge_dropped(table) or table
        update = None
        if table is not None:
            update = UpdateTable.of(kept.new_key, table, TableOperation.SCHEMA)
        if kept.old_key != kept.new_key:
            return RenameTable(kept.old_key, kept.new_key, update)
        return update

    def _added(self, type: GraphType) -> RegisterTable:
        is_known = type.table_key in self._snapshot.image.tombstones
        table = _create(self._context.store, type, is_name_used=is_known)
        _TABLE.hit()
        return RegisterTable.of(type.table_key, table)


def _purged_keys(plan: MigrationPlan) -> frozenset[str]:
    """Tables with a column that is dropped for good."""
    return frozenset(
        (node_table_key if step.type_kind is TypeKind.NODE else edge_table_key)(step.type_name)
        for step in plan.steps
        if isinstance(step, DropProperty) and step.mode is DropMode.HARD
    )


def _create(store: Store, type: GraphType, *, is_name_used: bool) -> Table:
    """An empty table at a place where nothing is.

    What is found there may belong to another branch, to a type of that name that is no more, or be
    about to be swept: none of them may be shared.
    """
    schema = table_schema(type)
    if not is_name_used:
        try:
            return create_table(store, table_location(type.table_key), schema)
        except AlreadyExists:
            pass  # a place of its own then
    return create_table(store, table_location(type.table_key, token=new_ulid().lower()), schema)
