"""The bodies of uploads and jobs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from omnigraph_core.server.wire import (
    CommitOutput,
    ErrorOutput,
    IngestTableOutput,
    LoadMode,
    Microseconds,
    SparkJobs,
)


class LoadOutput(BaseModel):
    uri: str
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: LoadMode
    tables: list[IngestTableOutput]
    actor_id: str | None
    commit: CommitOutput | None
    commit_id: str | None
    manifest_version: int | None
    nodes_loaded: int
    edges_loaded: int
    node_types_loaded: int
    edge_types_loaded: int
    records_rejected: int
    vectors_made: int
    vectors_pending: int
    dry_run: bool
    repeated: bool
    spark: SparkJobs = None
    rejects: str | None = Field(
        default=None, description="The records that break a rule, as JSON lines."
    )
    rejects_complete: bool | None = Field(
        default=None, description="False if there were too many to list."
    )


class JobStatusOutput(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobOutput(BaseModel):
    """An operation that goes on beside the request for it."""

    job_id: str
    run_id: str = Field(description="The run that records it; the same id.")
    operation: str
    status: JobStatusOutput
    branch: str | None
    actor_id: str | None
    created_at: Microseconds
    updated_at: Microseconds
    progress: dict[str, int] = Field(
        description="Rows that are read, validated, embedded and staged; bytes that were sent."
    )
    result: Any = Field(default=None, description="What the operation answers, once it is done.")
    error: ErrorOutput | None = None


class JobListOutput(BaseModel):
    jobs: list[JobOutput]
    next_page_token: str | None = None
