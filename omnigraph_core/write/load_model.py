"""How to load, and what a load did."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from omnigraph_core.job_report import SparkResult, spark_member
from omnigraph_core.write.commit import WriteOptions
from omnigraph_core.write.embed import EmbedMode

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.write.progress import Listener


class LoadMode(StrEnum):
    """`overwrite` replaces all rows of the types in the input; `append` refuses ids that exist;
    `merge` replaces them."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load.

    `rejects` names a file for the records that break a rule. Good records are loaded beside bad
    ones only if `is_skipping_bad`.
    """

    mode: LoadMode = LoadMode.MERGE
    write: WriteOptions = field(default_factory=WriteOptions)
    embed: EmbedMode = EmbedMode.NOW
    is_dry_run: bool = False
    is_skipping_bad: bool = False
    rejects: Path | None = None
    progress: Listener | None = None
    only: tuple[str, ...] | None = None
    """Table keys of the types to load; records of the others are passed over."""


@dataclass(frozen=True, slots=True)
class TableLoad:
    table_key: str
    rows_loaded: int

    def to_json(self) -> dict[str, object]:
        return {"table_key": self.table_key, "rows_loaded": self.rows_loaded}


@dataclass(frozen=True, slots=True)
class LoadResult(SparkResult):
    """What a load did. `commit` is None if there was nothing to load, or for a dry run."""

    branch: str
    mode: LoadMode
    tables: tuple[TableLoad, ...]
    commit: GraphCommit | None
    records_rejected: int = 0
    vectors_made: int = 0
    vectors_pending: int = 0
    is_dry_run: bool = False
    is_repeat: bool = False

    @property
    def nodes_loaded(self) -> int:
        return self._rows("node:")

    @property
    def edges_loaded(self) -> int:
        return self._rows("edge:")

    @property
    def node_types_loaded(self) -> int:
        return sum(table.table_key.startswith("node:") for table in self.tables)

    @property
    def edge_types_loaded(self) -> int:
        return sum(table.table_key.startswith("edge:") for table in self.tables)

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "mode": str(self.mode),
            "nodes_loaded": self.nodes_loaded,
            "edges_loaded": self.edges_loaded,
            "node_types_loaded": self.node_types_loaded,
            "edge_types_loaded": self.edge_types_loaded,
            **self.landed_json(),
        }

    def landed_json(self) -> dict[str, object]:
        """What every report of a load adds."""
        return {
            "commit_id": None if self.commit is None else self.commit.graph_commit_id,
            "manifest_version": None if self.commit is None else self.commit.manifest_version,
            "records_rejected": self.records_rejected,
            "vectors_made": self.vectors_made,
            "vectors_pending": self.vectors_pending,
            "dry_run": self.is_dry_run,
            "repeated": self.is_repeat,
            **spark_member(self),
        }

    def _rows(self, kind: str) -> int:
        return sum(t.rows_loaded for t in self.tables if t.table_key.startswith(kind))
