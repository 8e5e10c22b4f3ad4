"""The words of a diff: one change of one row, what to look for, and how much changed where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from omnigraph_core.job_report import SparkResult, spark_member

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.query.typed import EntityKind


class ChangeOp(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Endpoints:
    src: str
    dst: str


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One row that differs. `manifest_version` is the one it is changed at: that of `to`.

    An edge has the ends it has afterwards, a deleted one those it had. `before` and `after` are
    rows as JSON, and `properties` the names of those that differ; all three only where asked for.
    """

    table_key: str
    kind: EntityKind
    type_name: str
    id: str
    op: ChangeOp
    manifest_version: int
    endpoints: Endpoints | None = None
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    properties: tuple[str, ...] = ()

    def to_json(self, *, has_values: bool = True) -> dict[str, object]:
        members: dict[str, object] = {
            "table_key": self.table_key,
            "kind": str(self.kind),
            "type_name": self.type_name,
            "id": self.id,
            "op": str(self.op),
            "manifest_version": self.manifest_version,
        }
        if self.endpoints is not None:
            members["endpoints"] = {"src": self.endpoints.src, "dst": self.endpoints.dst}
        if has_values:
            members |= {
                "before": self.before,
                "after": self.after,
                "properties": list(self.properties),
            }
        return members


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """What to look for; every part that is given must hold. Empty parts do not restrict."""

    kinds: frozenset[EntityKind] = frozenset()
    type_names: frozenset[str] = frozenset()
    ops: frozenset[ChangeOp] = frozenset()

    def wants(self, op: ChangeOp) -> bool:
        return not self.ops or op in self.ops


EVERYTHING: Final = ChangeFilter()


@dataclass(frozen=True, slots=True)
class TableChanges:
    """How many rows of a table differ. A renamed type is named as it is called afterwards."""

    table_key: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def total(self) -> int:
        return self.inserts + self.updates + self.deletes


@dataclass(frozen=True, slots=True)
class ChangeStats:
    """Counts of what the filter lets through, whether or not the rows are listed."""

    inserts: int
    updates: int
    deletes: int
    types_affected: tuple[str, ...]
    """Names, sorted."""
    tables: tuple[TableChanges, ...]
    """Only tables with changes, by key."""
    schema_steps: tuple[str, ...] = ()
    """What the schema has of other shape, one line each; empty if it is the same."""

    @property
    def total(self) -> int:
        return self.inserts + self.updates + self.deletes


@dataclass(frozen=True, slots=True)
class ChangeSet(SparkResult):
    """Everything that differs between two snapshots: nodes then edges, by type, then id.

    `branch` is the one both are of, None if they are of two. Before the first commit there is
    nothing: version 0, and no commit.
    """

    from_version: int
    to_version: int
    from_commit_id: str | None
    to_commit_id: str
    branch: str | None
    changes: tuple[EntityChange, ...]
    stats: ChangeStats
    is_complete: bool = True
    """False where a limit left changes out of the list; the counts are those of all."""

    def to_json(self, *, has_values: bool = True) -> dict[str, object]:
        return {
            "from_version": self.from_version,
            "to_version": self.to_version,
            "from_commit_id": self.from_commit_id,
            "to_commit_id": self.to_commit_id,
            "branch": self.branch,
            "complete": self.is_complete,
            "stats": {
                "inserts": self.stats.inserts,
                "updates": self.stats.updates,
                "deletes": self.stats.deletes,
                "types_affected": list(self.stats.types_affected),
                "tables": [
                    {
                        "table_key": table.table_key,
                        "inserts": table.inserts,
                        "updates": table.updates,
                        "deletes": table.deletes,
                    }
                    for table in self.stats.tables
                ],
                "schema_steps": list(self.stats.schema_steps),
            },
            **spark_member(self),
            "changes": [change.to_json(has_values=has_values) for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """One block of the feed: a commit of a branch and what it changed."""

    commit: GraphCommit
    changes: ChangeSet

    def to_json(self, *, has_values: bool = True) -> dict[str, object]:
        return {
            "commit": self.commit.to_json(),
            "changes": self.changes.to_json(has_values=has_values),
        }


@dataclass(frozen=True, slots=True)
class ChangePage:
    """What a poll gives: whole blocks, oldest first, and where to go on."""

    blocks: tuple[CommitChanges, ...]
    cursor: str
    is_caught_up: bool = True
    """Nothing newer was there."""

    def to_json(self, *, has_values: bool = True) -> dict[str, object]:
        return {
            "cursor": self.cursor,
            "caught_up": self.is_caught_up,
            "blocks": [block.to_json(has_values=has_values) for block in self.blocks],
        }
