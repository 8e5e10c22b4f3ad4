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
SparkJobs = Annotated[
    dict[str, Any] | None,
    Field(description="The Spark UI and the jobs with metrics; absent if Spark ran no job."),
]


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
    properties: list[str] | None = Field(None, description="Those that both sides changed.")
    base: dict[str, Any] | None = Field(None, description="The row before either side changed it.")
    ours: dict[str, Any] | None = Field(None, description="The row of the target.")
    theirs: dict[str, Any] | None = Field(None, description="The row of the source.")


class PreconditionOutput(BaseModel):
    expected: str = Field(description="The commit that the request demands as the head.")
    actual: str | None = Field(None, description="The head that the branch has.")


class ErrorOutput(BaseModel):
    """Every answer that is no success."""

    error: str
    code: ErrorCode | None = None
    reason: str | None = Field(None, description="A stable dotted name of what went wrong.")
    hint: str | None = None
    details: dict[str, Any] | None = None
    retryable: bool | None = None
    merge_conflicts: list[MergeConflictOutput] | None = None
    precondition_failure: PreconditionOutput | None = Field(None, description="With status 412.")
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
    commit_id: str | None = None
    manifest_version: int | None = None
    repeated: bool | None = Field(None, description="It was done before under the same key.")
    commit: CommitOutput | None = None


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
    commit_id: str | None = None
    manifest_version: int | None = None
    nodes_loaded: int | None = None
    edges_loaded: int | None = None
    node_types_loaded: int | None = None
    edge_types_loaded: int | None = None
    records_rejected: int | None = None
    vectors_made: int | None = None
    vectors_pending: int | None = None
    dry_run: bool | None = None
    repeated: bool | None = Field(None, description="It was done before under the same key.")
    spark: dict[str, Any] | None = Field(
        None, description="The Spark UI and the jobs of a load on Spark, with metrics."
    )
    rejects: str | None = Field(None, description="The records that break a rule, as JSON lines.")
    rejects_complete: bool | None = Field(None, description="False if there were too many to list.")


class GraphOutput(BaseModel):
    graph_id: str
    uri: str


class GraphListOutput(BaseModel):
    graphs: list[GraphOutput]
