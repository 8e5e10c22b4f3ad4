"""The words of a merge: how it is to be done, what came of it, and what stands in its way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.job_report import SparkResult, spark_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omnigraph_core.manifest.image import GraphCommit

_NAMED: Final = 3
"""Conflicts that a summary names."""


class MergeOutcome(StrEnum):
    ALREADY_UP_TO_DATE = "already_up_to_date"
    """The target contains the source; nothing was written."""
    FAST_FORWARD = "fast_forward"
    """The target had nothing of its own since they parted: it is now what the source is."""
    MERGED = "merged"


class MergeStrategy(StrEnum):
    ROW = "row"
    """Two sides that changed one row differently are in conflict."""
    PROPERTY = "property"
    """Two sides that changed different properties of one row both win."""


class MergeSide(StrEnum):
    OURS = "ours"
    """The target."""
    THEIRS = "theirs"
    """The source."""


class MergeConflictKind(StrEnum):
    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA_CONFLICT = "schema_conflict"
    """The sides changed the schema in ways that exclude each other."""

    @property
    def is_choice(self) -> bool:
        """Whether choosing a side settles it; the others need other rows, or another schema."""
        return self in _CHOICES


_CHOICES: Final = frozenset(
    {
        MergeConflictKind.DIVERGENT_INSERT,
        MergeConflictKind.DIVERGENT_UPDATE,
        MergeConflictKind.DELETE_VS_UPDATE,
    }
)


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One thing that cannot be decided. `table_key` is the target's; of a schema the type's.

    Of the first 1 000 conflicts of rows, up to 32 MiB, the rows are there, as JSON, None where a
    side has no such row. Of others `has_rows` is False and None says nothing: their JSON has no
    `base`, `ours` and `theirs`; the sides can be read by the id.
    """

    table_key: str
    row_id: str | None
    kind: MergeConflictKind
    message: str
    properties: tuple[str, ...] = ()
    """Which properties both sides changed to different values."""
    base: Mapping[str, object] | None = None
    ours: Mapping[str, object] | None = None
    theirs: Mapping[str, object] | None = None
    has_rows: bool = False
    """Whether `base`, `ours` and `theirs` tell the rows."""

    def to_json(self) -> dict[str, object]:
        """The same on every surface; what does not apply is left out, but for `row_id`."""
        members: dict[str, object] = {
            "table_key": self.table_key,
            "row_id": self.row_id,
            "kind": str(self.kind),
            "message": self.message,
        }
        if self.properties:
            members["properties"] = list(self.properties)
        if self.has_rows:
            members |= {"base": self.base, "ours": self.ours, "theirs": self.theirs}
        return members


def summary_of(conflicts: Iterable[MergeConflict]) -> str:
    """The first conflicts by name, and how many more there are.

    >>> summary_of([MergeConflict("node:Part", "p1", MergeConflictKind.DIVERGENT_UPDATE, "…")])
    'merge conflicts: node:Part:p1 (divergent_update)'
    """
    found = list(conflicts)
    named = [
        f"{item.table_key}{'' if item.row_id is None else f':{item.row_id}'} ({item.kind})"
        for item in found[:_NAMED]
    ]
    if len(found) > _NAMED:
        named.append(f"and {len(found) - _NAMED} more")
    return f"merge conflicts: {'; '.join(named)}"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is chosen where both sides changed a row; a row's own choice comes before the rest's."""

    otherwise: MergeSide | None = None
    rows: Mapping[tuple[str, str], MergeSide] = field(default_factory=dict)
    """By table key, as the target calls it, and row id."""

    def side_of(self, table_key: str, row_id: str) -> MergeSide | None:
        return self.rows.get((table_key, row_id), self.otherwise)


@dataclass(frozen=True, slots=True)
class MergeOptions:
    strategy: MergeStrategy = MergeStrategy.ROW
    resolution: Resolution = field(default_factory=Resolution)
    is_dry_run: bool = False


class TableDisposition(StrEnum):
    """What a merge does with one table."""

    KEPT = "kept"
    """As in the target: the source has not changed it, or both are equal."""
    ADOPTED = "adopted"
    """As in the source: the pointer is taken over, no row is read or written."""
    MERGED = "merged"
    """Both sides changed it: rows were compared, and those of the source's changes written."""
    RESHAPED = "reshaped"
    """The target's rows in the columns of the merged schema."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class TableMerge:
    """What a merge does, or would do, to one table; counts are rows written to the target."""

    table_key: str
    disposition: TableDisposition
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    conflicts: int = 0

    def to_json(self) -> dict[str, object]:
        return {
            "table_key": self.table_key,
            "disposition": str(self.disposition),
            "inserted": self.inserted,
            "updated": self.updated,
            "deleted": self.deleted,
            "conflicts": self.conflicts,
        }


@dataclass(frozen=True, slots=True)
class MergeResult(SparkResult):
    """What came of a merge; of a dry run, what would.

    A dry run lists its conflicts here; a merge that has any raises `MergeConflicts`.
    """

    source: str
    target: str
    outcome: MergeOutcome
    base_commit_id: str
    source_commit_id: str
    target_commit_id: str
    """The target's head the merge was made on."""
    commit: GraphCommit | None
    tables: tuple[TableMerge, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: int = 0
    """Conflicts that a resolution has decided."""
    is_schema_changed: bool = False
    is_dry_run: bool = False
    is_source_deleted: bool = False
    source_note: str | None = None
    """Why the source is still there though it was to be deleted, or what was lost with it."""

    def to_json(self) -> dict[str, object]:
        kinds = Counter(str(item.kind) for item in self.conflicts)
        return {
            "source": self.source,
            "target": self.target,
            "outcome": str(self.outcome),
            "commit_id": None if self.commit is None else self.commit.graph_commit_id,
            "base_commit_id": self.base_commit_id,
            "source_commit_id": self.source_commit_id,
            "target_commit_id": self.target_commit_id,
            "schema_changed": self.is_schema_changed,
            "dry_run": self.is_dry_run,
            "source_deleted": self.is_source_deleted,
            **({} if self.source_note is None else {"source_note": self.source_note}),
            "resolved": self.resolved,
            "tables": [table.to_json() for table in self.tables],
            "conflict_counts": dict(sorted(kinds.items())),
            "merge_conflicts": [conflict.to_json() for conflict in self.conflicts],
            **spark_member(self),
        }
