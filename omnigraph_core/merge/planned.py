"""What a merge would do, before anything is checked or written: three states in, plans out.

Schemas are merged first, then it is found which tables are one, then each is decided about. Rows
are compared only where both sides have changed a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph_core.merge.model import MergeConflict, MergeConflictKind
from omnigraph_core.merge.schemas import SchemaMerge, merge_schemas
from omnigraph_core.merge.sides import document_of, side_of
from omnigraph_core.merge.steps import Steps
from omnigraph_core.merge.tables import SideTables, pair_tables
from omnigraph_core.merge.work import Sides, plan_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.sides import Side
    from omnigraph_core.merge.tables import TableCase
    from omnigraph_core.merge.undecided import Undecided
    from omnigraph_core.merge.work import TableWork
    from omnigraph_core.merge.workers import MergeWorkers


@dataclass(frozen=True, slots=True)
class MergeState:
    """One of the three states of a merge. A snapshot, or the like of one made of several."""

    snapshot: Snapshot
    schema: AcceptedSchema
    """What it asks of rows; columns of its tables may allow nulls besides."""
    undecided: Mapping[str, Undecided] = field(default_factory=dict)
    """Rows it cannot tell, by table key."""
    is_made: bool = False
    """No commit has its tables: they are staged for one merge."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> MergeState:
        return cls(snapshot, snapshot.schema)


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    schema: SchemaMerge
    sides: Sides
    works: tuple[TableWork, ...]
    """Where schemas are in conflict, of the tables only that look the same on all sides."""


def merge_state_schemas(
    base: MergeState,
    ours: MergeState,
    theirs: MergeState,
    common: AcceptedSchema | None = None,
) -> SchemaMerge:
    """The merged schema.

    Args:
        common: the schema of the newest commit that both sides contain, if that is not the base.
    """
    schemas = (base.schema, ours.schema, theirs.schema)
    is_three_way = len({schema.hash for schema in schemas}) == 3
    if common is None or not is_three_way or _is_older(base.schema, common):
        return merge_schemas(*schemas)
    conflict = MergeConflict(
        "schema",
        None,
        MergeConflictKind.SCHEMA_CONFLICT,
        "the commit changes the schema of a line of history that the target is no part of: nothing "
        "tells which types are the same; change the target's schema first, then bring the rows",
    )
    return SchemaMerge(ours.schema, (conflict,), is_changed=False)


def _is_older(base: AcceptedSchema, common: AcceptedSchema) -> bool:
    """Whether the base knows no type or property that both sides cannot know by its id."""
    return document_of(base).next_identity_id <= document_of(common).next_identity_id


def plan_merge(
    context: GraphContext,
    states: tuple[MergeState, MergeState, MergeState],
    schema: SchemaMerge,
    options: MergeOptions,
    *,
    common: AcceptedSchema | None = None,
    workers: MergeWorkers | None = None,
) -> PlannedMerge:
    """Decide about every table.

    Args:
        states: base, ours, theirs.
        common: as above.
        workers: who does what grows with the rows; None: this process.
    """
    sides = _sides(context, states, schema, common or states[0].schema, workers)
    cases = _cases(sides)
    if schema.conflicts:
        cases = tuple(case for case in cases if sides.is_in_one_shape(case))
    return PlannedMerge(schema, sides, tuple(plan_table(case, sides, options) for case in cases))


def _sides(
    context: GraphContext,
    states: tuple[MergeState, MergeState, MergeState],
    schema: SchemaMerge,
    common: AcceptedSchema,
    workers: MergeWorkers | None,
) -> Sides:
    base, ours, theirs = (state.snapshot for state in states)
    merged = ours.schema if schema.conflicts else schema.accepted
    if len({merged.hash, base.schema.hash, ours.schema.hash, theirs.schema.hash}) == 1:
        shared = None
    else:
        shared = document_of(common)
    sides = (
        side_of(context, base, merged, common=shared),
        side_of(context, ours, merged, common=None),
        side_of(context, theirs, merged, common=shared),
    )
    return Sides(
        *sides,
        common=shared,
        undecided=_undecided(states, sides),
        our_steps=_steps(context, states[0], states[1]),
        their_steps=_steps(context, states[0], states[2]),
        workers=workers,
    )


def _steps(context: GraphContext, earlier: MergeState, later: MergeState) -> Steps | None:
    if earlier.is_made or later.is_made:
        return None
    return Steps(context, earlier.snapshot, later.snapshot)


def _undecided(
    states: tuple[MergeState, MergeState, MergeState], sides: tuple[Side, Side, Side]
) -> dict[str, Undecided]:
    """The rows that any of the states cannot tell, by the keys of the merged schema."""
    found: dict[str, Undecided] = {}
    for state, side in zip(states, sides, strict=True):
        for key, rows in state.undecided.items():
            name = side.names.get(key)
            if name is not None:
                found[name] = found[name] | rows if name in found else rows
    return found


def _cases(sides: Sides) -> tuple[TableCase, ...]:
    base, ours, theirs = sides.base, sides.ours, sides.theirs
    return pair_tables(
        base.snapshot.tables.values(),
        SideTables(ours.snapshot.tables.values(), ours.names, sides.our_key_of),
        SideTables(theirs.snapshot.tables.values(), theirs.names, sides.their_key_of),
    )
