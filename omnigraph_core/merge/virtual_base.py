"""The base of branches that merged each other crosswise: several commits come in, one state out.

The commits are merged with each other, and what they disagree about is left out: only both sides
together can tell it. What is staged for that is never published, it is read by one merge and left
to cleanup; a dry run stages it too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from omnigraph_core.compare.changes import MISSING
from omnigraph_core.errors import SnapshotNotFound
from omnigraph_core.history.bases import Join
from omnigraph_core.manifest.changes import apply_changes
from omnigraph_core.merge.loosened import loosened
from omnigraph_core.merge.model import MergeConflict, MergeConflictKind, MergeOptions
from omnigraph_core.merge.planned import MergeState, merge_state_schemas, plan_merge
from omnigraph_core.merge.schemas import SchemaMerge
from omnigraph_core.merge.sides import document_of, side_of
from omnigraph_core.merge.stage import stage_tables
from omnigraph_core.merge.undecided import EVERY_ROW, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from omnigraph_core.history.bases import MergeBase
    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.manifest.image import AcceptedSchema
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.merge.model import MergeStrategy
    from omnigraph_core.merge.planned import PlannedMerge
    from omnigraph_core.merge.sides import Side
    from omnigraph_core.merge.work import TableWork
    from omnigraph_core.merge.workers import MergeWorkers


@dataclass(frozen=True, slots=True)
class OpenedBase:
    """What a merge compares both sides with; with conflicts nothing of use."""

    state: MergeState
    conflicts: tuple[MergeConflict, ...] = ()


def open_base(
    context: GraphContext,
    base: MergeBase,
    snapshot_of: Callable[[str], Snapshot],
    strategy: MergeStrategy,
    workers: MergeWorkers | None = None,
) -> OpenedBase:
    """The state of a base; one that has to be made of several commits is staged.

    Args:
        snapshot_of: the state that a commit made.
        workers: who does what grows with the rows; None: this process.

    Raises:
        SnapshotNotFound: cleanup has removed one that is needed.
    """
    return _Opening(context, snapshot_of, MergeOptions(strategy), workers).opened(base)


@dataclass(frozen=True, slots=True)
class _Opening:
    context: GraphContext
    snapshot_of: Callable[[str], Snapshot]
    options: MergeOptions
    workers: MergeWorkers | None

    def opened(self, base: MergeBase) -> OpenedBase:
        if not isinstance(base, Join):
            return OpenedBase(MergeState.of(self.snapshot_of(base)))
        ours = self.opened(base.ours)
        if ours.conflicts:
            return ours
        theirs = MergeState.of(self.snapshot_of(base.theirs))
        root = self._root(base.root) or _nothing(ours.state, theirs)
        return self._joined(root, ours.state, theirs)

    def _root(self, root: MergeBase | None) -> MergeState | None:
        """What commits to be joined are compared with; None if that is not known any more."""
        try:
            opened = None if root is None else self.opened(root)
        except SnapshotNotFound:
            return None
        return None if opened is None or opened.conflicts else opened.state

    def _joined(self, root: MergeState, ours: MergeState, theirs: MergeState) -> OpenedBase:
        schema = merge_state_schemas(root, ours, theirs)
        if schema.conflicts:
            return OpenedBase(ours, tuple(_explained(schema.conflicts, ours, theirs)))
        states = (root, ours, theirs)
        loose = loosened(schema.accepted, self._sides(states, schema.accepted))
        is_changed = loose.hash != ours.snapshot.schema.hash
        planned = plan_merge(
            self.context,
            states,
            SchemaMerge(loose, (), is_changed=is_changed),
            self.options,
            workers=self.workers,
        )
        found = [conflict for work in planned.works for conflict in work.conflicts]
        if found:
            return OpenedBase(ours, tuple(_explained(found, ours, theirs)))
        return OpenedBase(_staged(planned, ours, schema.accepted, loose))

    def _sides(
        self, states: tuple[MergeState, MergeState, MergeState], merged: AcceptedSchema
    ) -> list[Side]:
        """The two that are joined, seen in a schema."""
        common = document_of(states[0].schema)
        return [
            side_of(self.context, state.snapshot, merged, common=common) for state in states[1:]
        ]


def _nothing(ours: MergeState, theirs: MergeState) -> MergeState:
    """A root that is not known: whatever the two disagree about is undecided."""
    image = replace(ours.snapshot.image, tables={})
    keys = {*ours.snapshot.tables, *theirs.snapshot.tables}
    undecided = dict.fromkeys(keys, EVERY_ROW)
    return MergeState(replace(ours.snapshot, image=image), ours.schema, undecided, is_made=True)


def _explained(
    conflicts: Iterable[MergeConflict], ours: MergeState, theirs: MergeState
) -> Iterator[MergeConflict]:
    commits = [state.snapshot.commit.graph_commit_id for state in (ours, theirs)]
    for conflict in conflicts:
        message = (
            f"both branches contain the commits {commits[0]} and {commits[1]}, whose schemas "
            f"exclude each other, so nothing tells what each has changed since "
            f"({conflict.message}); bring the commits of the source one by one instead"
        )
        yield MergeConflict(conflict.table_key, None, MergeConflictKind.SCHEMA_CONFLICT, message)


def _staged(
    planned: PlannedMerge, ours: MergeState, schema: AcceptedSchema, loose: AcceptedSchema
) -> MergeState:
    """The state that a merge of two commits gives, without the rows they disagree about."""
    sides, snapshot = planned.sides, ours.snapshot
    undecided = {sides.ours.names.get(key, key): rows for key, rows in ours.undecided.items()}
    for work in planned.works:
        if work.rows is not None and len(work.rows.conflicts):
            found = Undecided(work.rows.conflicts.ids)
            undecided[work.key] = undecided.get(work.key, found) | found
    changes = stage_tables([_without_conflicts(work) for work in planned.works], sides)
    image = apply_changes(snapshot.image, changes, branch=snapshot.commit.manifest_branch)
    made = replace(snapshot, image=replace(image, schema=loose))
    return MergeState(made, schema, undecided, is_made=True)


def _without_conflicts(work: TableWork) -> TableWork:
    rows = work.rows
    if rows is None or not len(rows.conflicts):
        return work
    gone = rows.conflicts.ours[rows.conflicts.ours != MISSING]
    leaving = np.concatenate([rows.writes.leaving, gone])
    return replace(work, rows=replace(rows, writes=replace(rows.writes, leaving=leaving)))
