"""The bodies of the operations on schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from omnigraph_core.server.wire import CommitOutput, Given


class SchemaOutput(BaseModel):
    schema_source: str
    schema_hash: str | None = None
    document: dict[str, Any] | None = None


class SchemaPlanRequest(Given):
    schema_source: str
    branch: str | None = None
    allow_data_loss: bool | None = None


class SchemaPlanOutput(BaseModel):
    uri: str
    branch: str
    supported: bool
    step_count: int
    steps: list[dict[str, Any]]


class SchemaApplyRequest(Given):
    schema_source: str
    branch: str | None = None
    allow_data_loss: bool | None = None
    dry_run: bool | None = None


class PurgeOutput(BaseModel):
    """What became of data that was dropped for good."""

    versions_removed: int
    bytes_removed: int
    held_by: list[str] = Field(description="Branches, tags and readers that still have it.")
    grace_seconds: float
    problem: str | None


class SchemaApplyOutput(BaseModel):
    uri: str
    supported: bool
    applied: bool
    step_count: int
    manifest_version: int
    steps: list[dict[str, Any]]
    branch: str | None = None
    dry_run: bool | None = None
    commit_id: str | None = None
    actor_id: str | None = None
    purge: PurgeOutput | None = None
    commit: CommitOutput | None = None
