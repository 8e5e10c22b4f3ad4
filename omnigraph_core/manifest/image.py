"""What a catalog version says: tables, tombstones, schema, and the commit that made it.

Pure values. An `Image` is complete: nothing older has to be read to know the state of a branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAIN: Final = "main"


class TableOperation(StrEnum):
    """How a table's current version was made; a rewrite holds the same rows as the one before."""

    CREATE = "create"
    APPEND = "append"
    UPSERT = "upsert"
    DELETE = "delete"
    OVERWRITE = "overwrite"
    COMPACTION = "compaction"
    INDEX = "index"
    SCHEMA = "schema"
    ADOPT = "adopt"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One visible table.

    `table_version` is our own counter, 1, 2, 3 …; `physical_version` is Lance's number of the
    detached version that holds the rows, an unsigned 64-bit one. `branch` names the branch that
    made the version, None for main.
    """

    table_key: str
    location: str
    table_version: int
    physical_version: int
    branch: str | None
    row_count: int
    fragment_count: int
    operation: TableOperation


@dataclass(frozen=True, slots=True)
class GraphCommit:
    """One publish: who, when, on what. `created_at` is in microseconds since the epoch.

    `manifest_branch` is None for main. `incarnation` tells a branch from a later one of the same
    name, and names the catalog whose version `manifest_version` this commit made.

    A commit made under an idempotency key carries it, with the digest of the request and its result
    as JSON text: a repeat of the request is answered from them.
    """

    graph_commit_id: str
    manifest_branch: str | None
    incarnation: str
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    operation: str
    idempotency_key: str | None = None
    request_digest: str | None = None
    summary: str | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        """First parent, then the merged one."""
        both = (self.parent_commit_id, self.merged_parent_commit_id)
        return tuple(parent for parent in both if parent is not None)

    def to_json(self) -> dict[str, object]:
        """The same on every surface."""
        return {
            "graph_commit_id": self.graph_commit_id,
            "manifest_branch": self.manifest_branch,
            "manifest_version": self.manifest_version,
            "parent_commit_id": self.parent_commit_id,
            "merged_parent_commit_id": self.merged_parent_commit_id,
            "actor_id": self.actor_id,
            "created_at": self.created_at,
            "operation": self.operation,
        }


@dataclass(frozen=True, slots=True)
class AcceptedSchema:
    """The schema in force: its source, its compiled document as JSON text, and its hash."""

    source: str
    document: str
    hash: str


@dataclass(frozen=True, slots=True)
class Image:
    """The whole state of a branch at one catalog version.

    `commits` are the newest ones of this lineage, oldest first; the last one is the head.
    `tombstones` hide every version of a table up to and including the given one.
    """

    tables: Mapping[str, TableEntry]
    tombstones: Mapping[str, int]
    schema: AcceptedSchema
    commits: tuple[GraphCommit, ...]

    @property
    def head(self) -> GraphCommit:
        return self.commits[-1]

    def version_of(self, table_key: str) -> int:
        """The table's version; for a removed table that of its tombstone, 0 if never there."""
        entry = self.tables.get(table_key)
        return entry.table_version if entry else self.tombstones.get(table_key, 0)

    def find_keyed(self, incarnation: str, idempotency_key: str) -> GraphCommit | None:
        """The commit of a catalog with that key, if it is among the newest."""
        return find_keyed(self.commits, incarnation, idempotency_key)

    def complete_since(self, incarnation: str) -> int:
        """From which version on every commit of a catalog is here; 1 if none is missing."""
        own = [c.manifest_version for c in self.commits if c.incarnation == incarnation]
        # Inherited commits are older than all of its own.
        return min(own) if len(own) == len(self.commits) else 1


def find_keyed(
    commits: Iterable[GraphCommit], incarnation: str, idempotency_key: str
) -> GraphCommit | None:
    """The commit a catalog's own branch made with that key."""
    sought = (incarnation, idempotency_key)
    return next((c for c in commits if (c.incarnation, c.idempotency_key) == sought), None)
