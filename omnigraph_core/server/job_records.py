"""What is known of a job: a record per job in the spool, seen by every worker of a server.

Whoever works on a job holds a claim on it that ends with the process: a job that says it is running
and is claimed by nobody has been left behind. Results and errors can be large and are kept apart,
so that looking at many jobs costs little.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.clock import now_us
from omnigraph_core.history.runs import JOB_PREFIX, RunStatus
from omnigraph_core.ids import is_ulid
from omnigraph_core.server.spool import Claim, digest_of, keep, try_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.server.spool import Spool


class JobStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it stands. Times are microseconds since the epoch; a job is known by its run."""

    job_id: str
    operation: str
    status: JobStatus
    branch: str | None
    actor_id: str | None
    created_at: int
    updated_at: int
    progress: Mapping[str, int] = field(default_factory=dict)
    result: Any = None
    error: Mapping[str, Any] | None = None
    has_begun: bool = False
    is_stoppable: bool = False
    """Whether it can be cancelled once it has begun."""

    def to_json(self) -> dict[str, object]:
        """As clients see it; what there is none of is left out."""
        members: dict[str, object] = {
            "job_id": self.job_id,
            "run_id": self.job_id,
            "operation": self.operation,
            "status": str(self.status),
            "branch": self.branch,
            "actor_id": self.actor_id,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "progress": dict(self.progress),
        }
        if self.result is not None:
            members["result"] = self.result
        if self.error is not None:
            members["error"] = dict(self.error)
        return members

    def moved(self, **changes: Any) -> JobRecord:
        return replace(self, updated_at=max(now_us(), self.updated_at), **changes)

    def in_brief(self) -> JobRecord:
        """The job without its result; of its error, what went wrong but not the facts about it."""
        error = self.error
        if error is not None:
            error = {name: error[name] for name in _BRIEF_ERROR if name in error}
        return replace(self, result=None, error=error)


_BRIEF_ERROR: Final = ("error", "code", "reason", "hint", "retryable")
_OUTCOME: Final = ("result", "error")

_STATUS_OF_RUN: Final = {
    RunStatus.RUNNING: JobStatus.RUNNING,
    RunStatus.PUBLISHED: JobStatus.DONE,
    RunStatus.FAILED: JobStatus.FAILED,
    RunStatus.ABORTED: JobStatus.CANCELLED,
}


def job_of_run(run: RunRecord) -> JobRecord:
    """What the registry of runs tells of a job that the spool no longer knows."""
    named = (run.operation_hash or "").removeprefix(JOB_PREFIX)
    operation, colon, _ = named.partition(":")
    is_left = run.status is RunStatus.RUNNING and run.is_expired
    return JobRecord(
        job_id=run.run_id,
        operation=operation if colon else "run",
        status=JobStatus.FAILED if is_left else _STATUS_OF_RUN[run.status],
        branch=run.target_branch,
        actor_id=run.actor_id,
        created_at=run.created_at,
        updated_at=run.updated_at,
        has_begun=True,
    )


class JobStore:
    """The records of the jobs of one graph."""

    def __init__(self, spool: Spool, uri: str) -> None:
        spool.sweep()
        self._place = spool.area("jobs", digest_of(uri))

    def read(self, job_id: str) -> JobRecord | None:
        record = self._read_brief(job_id)
        if record is None or record.status is JobStatus.RUNNING:
            return record
        outcome = try_read(self._outcome(job_id)) or {}
        return replace(record, **{name: outcome[name] for name in _OUTCOME if name in outcome})

    def list_brief(self, seen: str | None = None) -> Iterator[JobRecord]:
        """All of them, or those before one, newest first, each read when it is asked for."""
        names = (path.stem for path in self._place.glob("*.json"))
        for name in sorted((name for name in names if seen is None or name < seen), reverse=True):
            record = self._read_brief(name)
            if record is not None:
                yield record

    def _read_brief(self, job_id: str) -> JobRecord | None:
        found = try_read(self._path(job_id)) if is_ulid(job_id) else None
        return None if found is None else _decoded(found)

    def write(self, record: JobRecord) -> None:
        """
        Raises:
            StorageError: it cannot be written.
        """
        if record.result is not None or record.error is not None:
            # First, so that a job that has ended always has an outcome.
            outcome = {name: getattr(record, name) for name in _OUTCOME}
            keep(self._outcome(record.job_id), outcome)
        brief = record.in_brief()
        keep(self._path(record.job_id), {it.name: getattr(brief, it.name) for it in fields(brief)})

    def try_claim(self, job_id: str) -> Claim | None:
        """The claim of whoever works on it; None while somebody does."""
        return Claim.try_take(self._place / f"{job_id}{Claim.SUFFIX}")

    def ask_to_stop(self, job_id: str) -> None:
        self._mark(job_id).touch(mode=0o600)

    def take_back(self, job_id: str) -> None:
        """Forget that it was asked to stop."""
        self._mark(job_id).unlink(missing_ok=True)

    def is_to_stop(self, job_id: str) -> bool:
        return self._mark(job_id).exists()

    def _path(self, job_id: str) -> Path:
        return self._place / f"{job_id}.json"

    def _outcome(self, job_id: str) -> Path:
        return self._place / f"{job_id}.outcome"

    def _mark(self, job_id: str) -> Path:
        return self._place / f"{job_id}.stop"


def _decoded(found: dict[str, Any]) -> JobRecord:
    return JobRecord(**{**found, "status": JobStatus(found["status"])})
