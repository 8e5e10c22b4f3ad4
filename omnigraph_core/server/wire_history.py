"""The bodies of the operations on branches, commits and runs."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from omnigraph_core.server.wire import (
    BranchMergeOutcome,
    CommitOutput,
    Given,
    MergeConflictOutput,
    Microseconds,
    SparkJobs,
)


class BranchDetailOutput(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    name: str
    commit_id: str
    manifest_version: int
    source: str | None = Field(alias="from")
    from_commit_id: str | None
    created_at: Microseconds | None
    actor_id: str | None


class BranchListOutput(BaseModel):
    branches: list[str]
    details: list[BranchDetailOutput] | None = Field(None, description="With `details=true`.")
    next_page_token: str | None = None


class BranchCreateRequest(Given):
    model_config = ConfigDict(populate_by_name=True)

    name: str
    source: str | None = Field(
        None, alias="from", description="A branch, a commit id or tag:NAME; main by default."
    )


class ForkOutput(BaseModel):
    branch: str
    incarnation: str
    manifest_version: int
    commit_id: str


class BranchCreateOutput(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    uri: str
    source: str = Field(alias="from")
    name: str
    actor_id: str | None
    commit_id: str | None = None
    incarnation: str | None = None
    manifest: str | None = None
    forked_from: ForkOutput | None = None
    created_at: Microseconds | None = None


class BranchDeleteOutput(BaseModel):
    uri: str
    name: str
    actor_id: str | None


class BranchOutput(BaseModel):
    name: str
    incarnation: str
    manifest: str
    forked_from: ForkOutput | None
    created_at: Microseconds
    actor_id: str | None
    commit_id: str
    manifest_version: int


class MergeChoice(Given):
    table_key: str
    row_id: str
    choose: str = Field(description="`ours` or `theirs`.")


class Merging(Given):
    """What is chosen where both sides changed a row."""

    strategy: str | None = Field(None, description="`row` or `property`.")
    resolve: str | None = Field(None, description="`ours` or `theirs`.")
    choices: list[MergeChoice] | None = None


class BranchMergeRequest(Merging):
    source: str
    target: str | None = None
    dry_run: bool | None = None
    delete_branch: bool | None = None


class TableMergeOutput(BaseModel):
    table_key: str
    disposition: str
    inserted: int
    updated: int
    deleted: int
    conflicts: int


class BranchMergeOutput(BaseModel):
    source: str
    target: str
    outcome: BranchMergeOutcome
    actor_id: str | None
    commit_id: str | None = None
    base_commit_id: str | None = None
    source_commit_id: str | None = None
    target_commit_id: str | None = Field(None, description="The head that it was made on.")
    schema_changed: bool | None = None
    dry_run: bool | None = None
    source_deleted: bool | None = None
    source_note: str | None = Field(None, description="Why the source was not deleted.")
    resolved: int | None = Field(None, description="Conflicts that were decided by a choice.")
    tables: list[TableMergeOutput] | None = None
    conflict_counts: dict[str, int] | None = None
    merge_conflicts: list[MergeConflictOutput] | None = None
    spark: SparkJobs = None
    commit: CommitOutput | None = None


class PublishRequest(Merging):
    """Everything may be left out, the body too."""


class RunStatus(StrEnum):
    RUNNING = "running"
    PUBLISHED = "published"
    FAILED = "failed"
    ABORTED = "aborted"


class RunOutput(BaseModel):
    run_id: str
    target_branch: str
    run_branch: str
    base_snapshot_id: str
    base_manifest_version: int
    operation_hash: str | None
    actor_id: str | None
    status: RunStatus
    published_snapshot_id: str | None
    created_at: Microseconds
    updated_at: Microseconds
    is_expired: bool | None = None


class RunListOutput(BaseModel):
    runs: list[RunOutput]
    next_page_token: str | None = None


class CommitListOutput(BaseModel):
    commits: list[CommitOutput]
    next_page_token: str | None = None
