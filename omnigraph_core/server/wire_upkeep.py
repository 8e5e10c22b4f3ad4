"""The bodies of maintenance, indexes, embeddings and stored queries."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from omnigraph_core.server.wire import Given, SparkJobs

LONGEST = 10**12
"""Seconds: far beyond any graph, and still a date."""
Seconds = Annotated[int, Field(ge=0, le=LONGEST)]


class OptimizeRequest(Given):
    """Everything may be left out, the body too."""

    branch: str | None = None
    include_inherited: bool | None = Field(
        default=None, description="Also the tables that are as another branch made them."
    )


class TableOptimizeOutput(BaseModel):
    table_key: str
    fragments_removed: int
    fragments_added: int
    indexes_built: list[str]
    committed: bool
    reason: str | None


class OptimizeOutput(BaseModel):
    uri: str
    branch: str
    tables: list[TableOptimizeOutput]
    spark: SparkJobs = None


class CleanupRequest(Given):
    """`keep`, `older_than_secs` or both are needed."""

    keep: int | None = Field(
        default=None, ge=1, le=2**53, description="The newest versions that stay."
    )
    older_than_secs: Seconds | None = Field(default=None, description="Younger versions stay.")
    grace_secs: Seconds | None = Field(
        default=None, description="What is so young stays in any case."
    )
    branches: list[str] | None = Field(
        default=None, description="The only ones to take versions from."
    )
    confirm: bool | None = Field(
        default=None, description="Without it nothing is removed, only shown."
    )


class BranchCleanupOutput(BaseModel):
    branch: str
    old_versions_removed: int
    versions_kept: int


class TableCleanupOutput(BaseModel):
    table_key: str | None
    location: str
    bytes_removed: int
    old_versions_removed: int
    files_removed: int


class CleanupOutput(BaseModel):
    uri: str
    keep_versions: int | None
    older_than_secs: int | None
    is_preview: bool
    old_versions_removed: int
    bytes_removed: int
    derived_files_removed: int
    derived_bytes_removed: int
    branches: list[BranchCleanupOutput]
    tables: list[TableCleanupOutput]
    spark: SparkJobs = None


class VerifyRequest(Given):
    """Everything may be left out, the body too."""

    branch: str | None = Field(default=None, description="All branches, and tags, without it.")
    deep: bool | None = Field(default=None, description="Every version that is kept, and all rows.")


class FindingOutput(BaseModel):
    severity: str
    code: str
    place: str
    message: str
    hint: str | None


class VerifyOutput(BaseModel):
    uri: str
    branch: str | None
    is_deep: bool
    is_sound: bool
    checked: dict[str, int]
    findings: list[FindingOutput]


class BranchRequest(Given):
    """Everything may be left out, the body too."""

    branch: str | None = Field(default=None, description="Main by default.")


class IndexOutput(BaseModel):
    table_key: str
    name: str
    column: str
    kind: str
    state: str
    rows: int
    covered_rows: int
    segments: int
    is_inherited: bool
    is_built: bool


class IndexListOutput(BaseModel):
    uri: str
    branch: str | None = Field(description="Null for a commit or a tag.")
    indexes: list[IndexOutput]
    spark: SparkJobs = None


class EmbeddingOutput(BaseModel):
    type: str
    property: str
    model: str
    ready: int
    pending: int
    stale: int


class EmbeddingListOutput(BaseModel):
    uri: str
    branch: str | None = Field(description="Null for a commit or a tag.")
    embeddings: list[EmbeddingOutput]


class BackfillOutput(BaseModel):
    uri: str
    branch: str
    vectors_made: int
    commits: list[str]
    spark: SparkJobs = None


ParamKind = Literal[
    "string",
    "bool",
    "int",
    "bigint",
    "float",
    "date",
    "datetime",
    "blob",
    "vector",
    "list",
]


class QueryParamOutput(BaseModel):
    name: str
    kind: ParamKind
    item_kind: ParamKind | None = None
    vector_dim: int | None = None
    nullable: bool


class StoredQueryOutput(BaseModel):
    name: str
    tool_name: str
    description: str | None = None
    instruction: str | None = None
    mutation: bool
    params: list[QueryParamOutput]


class StoredQueryListOutput(BaseModel):
    queries: list[StoredQueryOutput]


class InvokeRequest(Given):
    """Everything may be left out, the body too."""

    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = Field(default=None, description="A commit id; for reads.")
    expect_mutation: bool | None = Field(
        default=None,
        description="Refuse unless the query changes the graph, or unless it does not.",
    )
