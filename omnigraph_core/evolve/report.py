"""What a schema change takes and what became of it, as people and programs read it.

Every step of a plan comes with the rows it concerns and the bytes of their files. Names on the wire
are added to, never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.schema.migrate import Step


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step, the rows whose values it reads, writes or takes away, and the bytes of their files.

    `stored_bytes` is what all columns of those rows take: no more than that is read or written.
    None if nothing is, or the store does not tell.
    """

    step: Step
    row_count: int = 0
    stored_bytes: int | None = None

    def to_json(self) -> dict[str, object]:
        return {
            **self.step.to_json(),
            "row_count": self.row_count,
            "stored_bytes": self.stored_bytes,
        }


@dataclass(frozen=True, slots=True)
class SchemaPlanReport:
    """The way from the schema of a branch to another; no steps when they are equal."""

    branch: str
    supported: bool
    steps: tuple[StepReport, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_json() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What became of data that was dropped for good.

    Files go once they are older than the grace period. `held_by` names branches, tags and readers
    that still have the data, and older versions of the branch itself that stay for now. A purge
    that failed tells its problem; the schema change has landed all the same.
    """

    versions_removed: int
    bytes_removed: int
    held_by: tuple[str, ...]
    grace_seconds: float
    problem: str | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "versions_removed": self.versions_removed,
            "bytes_removed": self.bytes_removed,
            "held_by": list(self.held_by),
            "grace_seconds": self.grace_seconds,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class SchemaApplyResult:
    """What a schema change did; without steps, or on a dry run, nothing.

    `manifest_version` is that of the branch afterwards.
    """

    branch: str
    applied: bool
    manifest_version: int
    steps: tuple[StepReport, ...]
    commit: GraphCommit | None = None
    is_dry_run: bool = False
    purge: PurgeReport | None = None
    supported: bool = True
    """Always: what cannot be carried out is refused."""

    def to_json(self) -> dict[str, object]:
        return {
            "branch": self.branch,
            "supported": self.supported,
            "applied": self.applied,
            "dry_run": self.is_dry_run,
            "manifest_version": self.manifest_version,
            "step_count": len(self.steps),
            "steps": [step.to_json() for step in self.steps],
            "commit_id": None if self.commit is None else self.commit.graph_commit_id,
            "actor_id": None if self.commit is None else self.commit.actor_id,
            "purge": None if self.purge is None else self.purge.to_json(),
        }
