"""The bodies of the operations of 0.3, and of those beside them: what comes in is checked.

What goes out is built by the code that answers and only described here. Keys that are not known are
ignored; null counts as absent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Microseconds = Annotated[int, Field(description="Microseconds since the epoch.")]
Version = Annotated[int, Field(ge=0, le=2**63 - 1, description="A manifest version.")]
Seconds = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False, description="Seconds.")]
Age = Annotated[
    float,
    Field(
        ge=0,
        le=1e9,
        allow_inf_nan=False,
        description="Seconds that the newest known commit of a branch may count as the newest.",
    ),
]
Bytes = Annotated[int, Field(gt=0, le=2**63 - 1, description="Bytes.")]


class ErrorCode(StrEnum):
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL = "internal"


class LoadMode(StrEnum):
    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


class BranchMergeOutcome(StrEnum):
    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


class MergeConflictKindOutput(StrEnum):
    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA_CONFLICT = "schema_conflict"


class MergeConflictOutput(BaseModel):
    table_key: str
    row_id: str | None
    kind: MergeConflictKindOutput
    message: str


class ErrorOutput(BaseModel):
    """Every answer that is no success."""

    error: str
    code: ErrorCode | None = None
    reason: str | None = Field(None, description="A stable dotted name of what went wrong.")
    hint: str | None = None
    details: dict[str, Any] | None = None
    retryable: bool | None = None
    merge_conflicts: list[MergeConflictOutput] | None = None
    request_id: str | None = None


class HealthOutput(BaseModel):
    status: Literal["ok"]
    version: str = Field(description="The version of the interface.")
    source_version: str | None = None
    omnigraph_version: str | None = None


class Given(BaseModel):
    """A body that somebody sends: all of its text is text."""

    @model_validator(mode="before")
    @classmethod
    def _is_text(cls, given: Any) -> Any:
        left = [given]
        while left:  # not by recursion: a body may be nested as deeply as JSON can be read
            item = left.pop()
            if isinstance(item, str):
                if not item.isascii():
                    _check_text(item)
            elif isinstance(item, dict):
                left += [*item, *item.values()]
            elif isinstance(item, list):
                left += item
        return given


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise ValueError("it holds half of a surrogate pair, which is no text") from problem


# Reading


class Place(Given):
    """Which snapshot is read: the head of `main` if nothing is said."""

    model_config = ConfigDict(populate_by_name=True)

    branch: str | None = None
    snapshot: str | None = Field(None, description="A commit id.")
    tag: str | None = None
    version: Version | None = None
    at: str | None = Field(None, description="A moment: the branch as it was then.")


class ReadRequest(Place):
    query_source: str
    query_name: str | None = None
    params: dict[str, Any] | None = None
    timeout: Seconds | None = None
    memory: Bytes | None = None
    max_age: Age | None = None


class QueryText(Given):
    """A query under either of its names; one of them is needed."""

    query: str | None = None
    name: str | None = None
    query_source: str | None = Field(None, description="Another name of `query`.")
    query_name: str | None = Field(None, description="Another name of `name`.")
    params: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _has_text(self) -> Self:
        if self.query is None and self.query_source is None:
            raise ValueError("`query` is required")
        return self

    @property
    def source(self) -> str:
        return self.query if self.query is not None else self.query_source or ""

    @property
    def chosen(self) -> str | None:
        return self.name if self.name is not None else self.query_name


class ExplainRequest(QueryText, Place):
    timeout: Seconds | None = None
    memory: Bytes | None = None
    profile: bool | None = Field(None, description="Run it, and tell rows and time of each step.")


class QueryRequest(QueryText, Place):
    timeout: Seconds | None = None
    memory: Bytes | None = None
    max_age: Age | None = None


class ReadTargetOutput(BaseModel):
    branch: str | None
    snapshot: str | None


class ReadOutput(BaseModel):
    query_name: str
    target: ReadTargetOutput
    row_count: int
    columns: list[str] | None = None
    rows: list[dict[str, Any]]
    graph_commit_id: str | None = None
    manifest_version: int | None = None


class ExportRequest(Given):
    branch: str | None = None
    snapshot: str | None = Field(None, description="A commit id.")
    tag: str | None = None
    type_names: list[str] | None = None
    table_keys: list[str] | None = None


class EntityOutput(BaseModel):
    entity: dict[str, Any] | None


class SnapshotTableOutput(BaseModel):
    table_key: str
    table_path: str
    table_version: int
    table_branch: str | None
    row_count: int
    physical_version: str | None = Field(None, description="A number beyond 2^53, as text.")
    fragment_count: int | None = None
    operation: str | None = None


class CommitOutput(BaseModel):
    graph_commit_id: str
    manifest_branch: str | None = Field(description="Null for main.")
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: Microseconds
    operation: str | None = None


class SnapshotOutput(BaseModel):
    branch: str
    manifest_version: int
    tables: list[SnapshotTableOutput]
    graph_commit_id: str | None = None
    commit: CommitOutput | None = None
    incarnation: str | None = None
    schema_hash: str | None = None


# Writing


class ChangeRequest(Given):
    query_source: str
    query_name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    embed: str | None = None


class MutateRequest(QueryText):
    branch: str | None = None
    embed: str | None = None


class ChangeOutput(BaseModel):
    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitOutput | None = None
    is_repeat: bool | None = None


class IngestRequest(Given):
    model_config = ConfigDict(populate_by_name=True)

    data: str = Field(description="Lines of JSON.")
    branch: str | None = None
    source: str | None = Field(None, alias="from")
    mode: LoadMode | None = None
    format: str | None = None
    type: str | None = None
    embed: str | None = None
    dry_run: bool | None = None
    skip_bad: bool | None = None
    rejects: bool | None = Field(None, description="Return the records that break a rule.")


class LoadRequest(IngestRequest):
    """Without `from` the branch has to be there."""


class IngestTableOutput(BaseModel):
    table_key: str
    rows_loaded: int


class IngestOutput(BaseModel):
    uri: str
    branch: str
    base_branch: str
    branch_created: bool
    mode: LoadMode
    tables: list[IngestTableOutput]
    actor_id: str | None
    commit: CommitOutput | None = None
    rejects: str | None = None


# Branches, commits, runs


class BranchListOutput(BaseModel):
    branches: list[str]
    details: list[dict[str, Any]] | None = None
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


class BranchMergeOutput(BaseModel):
    source: str
    target: str
    outcome: BranchMergeOutcome
    actor_id: str | None
    commit_id: str | None = None
    tables: list[dict[str, Any]] | None = None
    merge_conflicts: list[MergeConflictOutput] | None = None


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


class GraphOutput(BaseModel):
    graph_id: str
    uri: str


class GraphListOutput(BaseModel):
    graphs: list[GraphOutput]
