"""Long work beside the request that asked for it: jobs of a server, and waiting for their end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.client.decode.reading import maybe, understood
from omnigraph_core.client.pages import iter_pages
from omnigraph_core.client.requests import get, segment, write
from omnigraph_core.errors import ConflictError
from omnigraph_core.errors.wire import error_document, error_from
from omnigraph_core.write.progress import Progress, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.client.decode.reading import Document
    from omnigraph_core.client.requests import Call
    from omnigraph_core.client.transport import Transport
    from omnigraph_core.errors import OmnigraphError
    from omnigraph_core.write.progress import Listener

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 1.0


class JobStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands. Times are microseconds since the epoch.

    `progress` counts what has passed each step. `result` is what the operation answers with, and
    `error` what it failed with.
    """

    job_id: str
    run_id: str
    operation: str
    status: JobStatus
    branch: str | None
    actor_id: str | None
    created_at: int
    updated_at: int
    progress: Mapping[str, int] = field(default_factory=dict)
    result: Any = None
    error: OmnigraphError | None = None

    def to_json(self) -> dict[str, object]:
        """As the server tells it; what there is none of is left out."""
        members: dict[str, object] = {
            "job_id": self.job_id,
            "run_id": self.run_id,
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
            members["error"] = error_document(self.error)
        return members


class Jobs:
    """The jobs of a graph, which only a server has."""

    _http: Transport

    def list_jobs(self) -> tuple[Job, ...]:
        """The jobs of the last day, newest first, without their results."""
        found = iter_pages(self._http, "/jobs", "jobs")
        return tuple(understood(decode_job, item) for item in found)

    def get_job(self, job_id: str) -> Job:
        """
        Raises:
            NotFoundError: there is none of that id.
        """
        return understood(decode_job, self._http.fetch(get(f"/jobs/{segment(job_id)}")))

    def cancel_job(self, job_id: str) -> Job:
        """Stop a job; it may still be running when this returns.

        Raises:
            NotFoundError: there is none of that id.
            ConflictError: it has ended, or cannot be stopped any more.
        """
        call = write("POST", f"/jobs/{segment(job_id)}/cancel")
        return understood(decode_job, self._http.fetch(call))

    def _worked(self, call: Call, progress: Listener | None = None) -> Any:
        """What an operation answers with, carried out as a job.

        Raises:
            OmnigraphError: what it failed with.
            ConflictError: somebody has cancelled it.
        """
        document = self._http.fetch(call.as_job())
        job = understood(decode_job, document)
        is_repeat = job.status is JobStatus.DONE  # a new one has only begun
        told = _Told(progress)
        wait = _FIRST_WAIT
        while job.status is JobStatus.RUNNING:
            told.tell(job.progress)
            time.sleep(wait)
            wait = min(_LONGEST_WAIT, wait * 1.5)
            document = self._http.fetch(get(f"/jobs/{segment(job.job_id)}"))
            job = understood(decode_job, document)
        told.tell(job.progress)
        if call.mend is not None and job.error is not None:
            raise error_from(call.mend(document["error"]), 500)
        return _repeated(outcome(job)) if is_repeat else outcome(job)


def _repeated(result: Any) -> Any:
    """What a job answered with, told again; of a load it says so."""
    is_load = isinstance(result, dict) and "repeated" in result
    return {**result, "repeated": True} if is_load else result


class _Told:
    """Tells a listener what it has not been told."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._told: dict[Step, int] = {}

    def tell(self, progress: Mapping[str, int]) -> None:
        for step in Step:
            rows = progress.get(step, 0)
            if self._listener is not None and rows > self._told.get(step, 0):
                self._told[step] = rows
                self._listener(Progress(step, rows))


def outcome(job: Job) -> Any:
    """What a job that has ended answers with.

    Raises:
        OmnigraphError: what it failed with.
        ConflictError: somebody has cancelled it, or its result is not known any more.
    """
    if job.status is JobStatus.DONE and job.result is not None:
        return job.result
    if job.error is not None:
        raise job.error
    if job.status is JobStatus.CANCELLED:
        raise ConflictError(f"the job {job.job_id} was cancelled")
    raise ConflictError(
        f"the job {job.job_id} is {job.status}, and its result is no longer known",
        hint="the run of the same id tells what became of it",
    )


def decode_job(document: Document) -> Job:
    """A job from its document."""
    return Job(
        job_id=document["job_id"],
        run_id=document["run_id"],
        operation=document["operation"],
        status=JobStatus(document["status"]),
        branch=document.get("branch"),
        actor_id=document.get("actor_id"),
        created_at=document["created_at"],
        updated_at=document["updated_at"],
        progress=document.get("progress") or {},
        result=document.get("result"),
        error=maybe(lambda found: error_from(found, 500), document.get("error")),
    )
