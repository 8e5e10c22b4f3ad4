"""The three-way merge of snapshots: base, target and source come in, staged changes go out.

First everything is decided and checked, then everything is staged: with a conflict anywhere, or in
a dry run, no file is written. What the target already has is kept, what only the source changed is
taken over by pointer, and rows are compared only where both have changed a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.manifest.changes import AcceptSchema
from omnigraph_core.merge.check import check_result
from omnigraph_core.merge.groups import connected
from omnigraph_core.merge.model import MergeConflict, TableDisposition, TableMerge
from omnigraph_core.merge.planned import MergeState, merge_state_schemas, plan_merge
from omnigraph_core.merge.resolve import refuse_choices
from omnigraph_core.merge.shown import Room, describe_conflicts
from omnigraph_core.merge.stage import stage_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.changes import Change
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.work import Sides, TableWork
    from omnigraph_core.merge.workers import MergeWorkers


@dataclass(frozen=True, slots=True)
class StagedMerge:
    """A merge that is ready to be published, or what stands in its way."""

    changes: tuple[Change, ...]
    read: frozenset[str]
    """Keys of the target's tables that must not move: the merge relies on them."""
    tables: tuple[TableMerge, ...]
    conflicts: tuple[MergeConflict, ...]
    resolved: int
    schema: AcceptedSchema | None
    """The merged one, if it differs from the target's."""


def stage_merge(
    context: GraphContext,
    base: Snapshot | MergeState,
    ours: CatalogState,
    theirs: Snapshot,
    options: MergeOptions,
    *,
    common: AcceptedSchema | None = None,
    workers: MergeWorkers | None = None,
) -> StagedMerge:
    """Bring what changed from the base to the source into the target.

    Args:
        common: the schema of the newest commit that target and source both contain, where that is
            not the base.
        workers: who does what grows with the rows; None: this process.

    Raises:
        ConfigError: a choice is made for a row that is not in conflict; tells all.
    """
    states = (
        base if isinstance(base, MergeState) else MergeState.of(base),
        MergeState.of(ours.snapshot),
        MergeState.of(theirs),
    )
    schema = merge_state_schemas(*states, common)
    planned = plan_merge(context, states, schema, options, common=common, workers=workers)
    works, sides = planned.works, planned.sides
    conflicts, read = _conflicts(works), frozenset[str]()
    if not schema.conflicts:
        _check_choices(works, options)
        violated, read = check_result(works, sides, schema.accepted)
        conflicts += violated
    conflicts = [*schema.conflicts, *conflicts]
    changes: tuple[Change, ...] = ()
    if not conflicts and not options.is_dry_run:
        accepted = (AcceptSchema(schema.accepted),) if schema.is_changed else ()
        changes = (*stage_tables(works, sides), *accepted)
    return StagedMerge(
        changes=changes,
        read=read | _relied_on(works, sides, schema.accepted),
        tables=tuple(work.outcome for work in works if work.is_told),
        conflicts=tuple(sorted(conflicts, key=_order)),
        resolved=sum(work.rows.resolved for work in works if work.rows is not None),
        schema=schema.accepted if schema.is_changed and not schema.conflicts else None,
    )


def refused(conflicts: tuple[MergeConflict, ...]) -> StagedMerge:
    """A merge that nothing can be decided of."""
    return StagedMerge((), frozenset(), (), conflicts, resolved=0, schema=None)


def _conflicts(works: Iterable[TableWork]) -> list[MergeConflict]:
    found: list[MergeConflict] = []
    room = Room()
    for work in works:
        found += work.conflicts
        if work.rows is not None:
            found += describe_conflicts(work.rows, room)
    return found


def _check_choices(works: Sequence[TableWork], options: MergeOptions) -> None:
    """Refuse choices for what is not in conflict: they were made about another state."""
    settled = {
        (work.rows.label, id)
        for work in works
        if work.rows is not None
        for id in work.rows.settled_ids
    }
    refuse_choices(
        f"{table_key}:{row_id}: there is no such conflict of rows"
        for table_key, row_id in sorted(options.resolution.rows)
        if (table_key, row_id) not in settled
    )


def _relied_on(works: Sequence[TableWork], sides: Sides, schema: AcceptedSchema) -> frozenset[str]:
    """The target's tables that the source has changed, and those that rules join to them.

    Were one of them to move meanwhile, rows of others would meet rows that nobody has looked at.
    """
    keys = {
        work.key
        for work in works
        if work.case.is_theirs_changed or work.disposition is not TableDisposition.KEPT
    }
    return sides.our_keys(connected(accepted_catalog(schema), keys))


def _order(conflict: MergeConflict) -> tuple[str, bool, str, str]:
    return (
        conflict.table_key,
        conflict.row_id is not None,
        conflict.row_id or "",
        str(conflict.kind),
    )
