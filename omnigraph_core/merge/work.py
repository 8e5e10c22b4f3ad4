"""What a merge does with one table: a case of three versions comes in, a plan for it goes out.

Rows are read where the versions alone do not decide. Nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from omnigraph_core.compare.changes import changed_rows
from omnigraph_core.errors import InvariantBroken
from omnigraph_core.merge.lost import find_lost
from omnigraph_core.merge.model import (
    MergeConflict,
    MergeConflictKind,
    TableDisposition,
    TableMerge,
)
from omnigraph_core.merge.row_merge import MergedViews
from omnigraph_core.merge.rows import merge_rows
from omnigraph_core.merge.sides import continued_keys, document_of, type_ids
from omnigraph_core.merge.tables import Way, is_same_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from omnigraph_core.compare.view import RowView
    from omnigraph_core.manifest.image import TableEntry
    from omnigraph_core.merge.model import MergeOptions
    from omnigraph_core.merge.row_merge import RowMerge
    from omnigraph_core.merge.sides import Side
    from omnigraph_core.merge.steps import Steps
    from omnigraph_core.merge.tables import TableCase
    from omnigraph_core.merge.undecided import Undecided
    from omnigraph_core.merge.workers import MergeWorkers
    from omnigraph_core.schema.document import SchemaDocument


@dataclass(frozen=True, slots=True)
class Sides:
    """The three snapshots of a merge."""

    base: Side
    ours: Side
    theirs: Side
    common: SchemaDocument | None = None
    """The newest that all descend from; None if all have the same schema."""
    undecided: Mapping[str, Undecided] = field(default_factory=dict)
    """Rows that the base cannot tell, by the keys of the merged schema."""
    our_steps: Steps | None = None
    """From the base to the target; None where one of them is no state that a commit made."""
    their_steps: Steps | None = None
    workers: MergeWorkers | None = None
    """Who compares, decides about and writes rows; None: this process."""

    def have_same_rules(self, case: TableCase) -> bool:
        """Whether target and source both keep their rows of a table to the merged type."""
        if case.ours is None or case.theirs is None:
            return False
        has_other = self.ours.has_other_rules(case.ours), self.theirs.has_other_rules(case.theirs)
        return not any(has_other)

    def we_keep_ids(self, case: TableCase, worth: int) -> bool:
        """Whether the target is known to have every id of a table that the base has.

        Args:
            worth: requests that may be spent to find out.
        """
        return _keep_ids(self.our_steps, case.base, case.ours, worth)

    def they_keep_ids(self, case: TableCase, worth: int) -> bool:
        """The same for the source."""
        return _keep_ids(self.their_steps, case.base, case.theirs, worth)

    def is_in_one_shape(self, case: TableCase) -> bool:
        """Whether all that have the table have it in the columns of the merged type."""
        pairs = ((self.base, case.base), (self.ours, case.ours), (self.theirs, case.theirs))
        return all(entry is None or side.is_in_shape(entry) for side, entry in pairs)

    def our_key_of(self, entry: TableEntry) -> str | None:
        """What the target calls the type of a table of the base; None if it has another one."""
        return (
            entry.table_key if self.common is None else self._key_in(self.ours, entry, self.common)
        )

    def their_key_of(self, entry: TableEntry) -> str | None:
        """The same for the source; that follows the base, or the base follows it."""
        documents = (document_of(side.snapshot.schema) for side in (self.base, self.theirs))
        earlier = min(documents, key=lambda document: document.next_identity_id)
        return self._key_in(self.theirs, entry, earlier)

    def _key_in(self, side: Side, entry: TableEntry, common: SchemaDocument) -> str | None:
        before, after = (document_of(item.snapshot.schema) for item in (self.base, side))
        key = continued_keys(before, after, common).get(entry.table_key)
        if key is None or key not in side.names:
            return key  # where the merged schema has no such type, it goes
        known = frozenset(type_ids(common).values())
        is_same = is_same_type(type_ids(before)[entry.table_key], type_ids(after)[key], known)
        return key if is_same else None

    def our_keys(self, keys: Iterable[str]) -> frozenset[str]:
        """The keys that the target has for tables of the merged schema; of new ones the same."""
        old = {new: key for key, new in self.ours.names.items()}
        return frozenset(old.get(key, key) for key in keys)


def _keep_ids(
    steps: Steps | None, before: TableEntry | None, after: TableEntry | None, worth: int
) -> bool:
    if steps is None or before is None or after is None:
        return False
    return steps.keep_ids(before, after, worth=worth)


@dataclass(frozen=True, slots=True)
class TableWork:
    """What is to be done with one table."""

    case: TableCase
    disposition: TableDisposition
    rows: RowMerge | None = None
    """There if rows of both sides were compared."""
    conflicts: tuple[MergeConflict, ...] = ()
    """About the table as a whole."""
    is_told: bool = True
    """False where the target has no table and gets none."""

    @property
    def key(self) -> str:
        """What the table is called afterwards; one that goes, as it was."""
        return self.case.key or self.case.label

    @property
    def outcome(self) -> TableMerge:
        if self.rows is None:
            return TableMerge(self.key, self.disposition, conflicts=len(self.conflicts))
        return TableMerge(
            self.key,
            self.disposition,
            inserted=self.rows.writes.inserted,
            updated=self.rows.writes.updated,
            deleted=len(self.rows.writes.deleted_ids),
            conflicts=len(self.rows.conflicts) + len(self.conflicts),
        )


def plan_table(case: TableCase, sides: Sides, options: MergeOptions) -> TableWork:
    """Decide about a table, and about its rows where both sides have changed it."""
    work = _planned(case, sides, options)
    if sides.common is None or case.key is None or work.conflicts:
        return work
    return replace(work, conflicts=tuple(_lost(case, sides)))


def _planned(case: TableCase, sides: Sides, options: MergeOptions) -> TableWork:
    undecided = sides.undecided.get(case.key or "")
    way = case.way if undecided is None or not case.is_divided else Way.ROWS
    if way is Way.REMOVE:
        return _removed(case, sides)
    if way is Way.NONE:
        return _dropped(case, sides)
    if case.key is None:
        raise InvariantBroken(f"the merged schema has a type for `{case.label}`")
    if way is Way.ADOPT and (case.ours is None or sides.theirs.is_in_shape(_there(case.theirs))):
        return TableWork(case, TableDisposition.ADOPTED)
    if way is Way.KEEP:
        return TableWork(case, _kept(case, sides))
    views = MergedViews(
        None if case.base is None else sides.base.view(case.base),
        sides.ours.view(_there(case.ours)),
        sides.theirs.view(_there(case.theirs)),
    )
    merge = merge_rows if sides.workers is None else sides.workers.merge_rows
    rows = merge(
        case.label,
        views,
        options,
        undecided=undecided,
        keep_ids=partial(sides.they_keep_ids, case) if sides.have_same_rules(case) else None,
    )
    if rows.writes.is_empty and not len(rows.conflicts):
        return TableWork(case, _kept(case, sides), rows)
    return TableWork(case, TableDisposition.MERGED, rows)


def _kept(case: TableCase, sides: Sides) -> TableDisposition:
    if sides.ours.is_in_shape(_there(case.ours)):
        return TableDisposition.KEPT
    return TableDisposition.RESHAPED


def _removed(case: TableCase, sides: Sides) -> TableWork:
    """The source has dropped the type."""
    base, ours = _there(case.base), _there(case.ours)
    if not case.is_ours_changed or not _differ(
        sides.base.view(base), sides.ours.view(ours), sides.workers
    ):
        return TableWork(case, TableDisposition.REMOVED)
    return _clash(case, "the source dropped this type, but the target has changed rows of it")


def _dropped(case: TableCase, sides: Sides) -> TableWork:
    """The target has dropped the type, or both have."""
    base = _there(case.base)
    is_changed = case.theirs is not None and case.is_theirs_changed
    if is_changed and _differ(
        sides.base.view(base), sides.theirs.view(_there(case.theirs)), sides.workers
    ):
        return _clash(case, "the target dropped this type, but the source has changed rows of it")
    return TableWork(case, TableDisposition.REMOVED, is_told=False)


def _lost(case: TableCase, sides: Sides) -> Iterator[MergeConflict]:
    """Values that one of the sides has written where the merged type has no place for them."""
    base = None if case.base is None else (sides.base, case.base)
    for word, side, entry, is_changed in (
        ("the target", sides.ours, case.ours, case.is_ours_changed),
        ("the source", sides.theirs, case.theirs, case.is_theirs_changed),
    ):
        if entry is not None and is_changed:
            compare = changed_rows if sides.workers is None else sides.workers.changed_rows
            found = find_lost(
                case.label, word, side, entry, base, common=sides.common, compare=compare
            )
            if found is not None:
                yield found


def _clash(case: TableCase, problem: str) -> TableWork:
    message = f"{problem}; undo one of the two on its branch, and merge again"
    conflict = MergeConflict(case.label, None, MergeConflictKind.SCHEMA_CONFLICT, message)
    return TableWork(case, TableDisposition.MERGED, conflicts=(conflict,))


def _differ(before: RowView, after: RowView, workers: MergeWorkers | None) -> bool:
    compare = changed_rows if workers is None else workers.changed_rows
    return not before.schema.equals(after.schema) or len(compare(before, after)) > 0


def _there(entry: TableEntry | None) -> TableEntry:
    if entry is None:
        raise InvariantBroken("a merge looks at the tables that a snapshot has")
    return entry
