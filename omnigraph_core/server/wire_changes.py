"""The bodies of diffs, of the feed of changes, and of what takes commits back."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from omnigraph_core.diff.model import ChangeOp
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.server.targets import named_target
from omnigraph_core.server.wire import CommitOutput, Given, Microseconds, SparkJobs
from omnigraph_core.server.wire_history import Merging


class TargetRef(BaseModel):
    """A branch, a commit or a tag: one of them."""

    branch: str | None = None
    snapshot: str | None = Field(default=None, description="A commit id.")
    tag: str | None = None


def target_of(named: str | TargetRef) -> ReadTarget:
    """
    Raises:
        ConfigError: it names nothing, or several things.
    """
    if isinstance(named, str):
        return named_target(named)
    return ReadTarget(named.branch, named.snapshot, named.tag)


class DiffRequest(Given):
    """Each end is a branch, a commit id or tag:NAME."""

    model_config = ConfigDict(populate_by_name=True)

    source: str | TargetRef = Field(alias="from")
    to: str | TargetRef
    kinds: list[EntityKind] | None = None
    type_names: list[str] | None = None
    ops: list[ChangeOp] | None = None
    values: bool | None = Field(default=None, description="Rows before and after; true by default.")
    limit: int | None = Field(default=None, ge=0, le=2**53, description="Changes that are listed.")


class EndpointsOutput(BaseModel):
    src: str
    dst: str


class EntityChangeOutput(BaseModel):
    table_key: str
    kind: EntityKind
    type_name: str
    id: str
    op: ChangeOp
    manifest_version: int
    endpoints: EndpointsOutput | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    properties: list[str] | None = None


class TableChangesOutput(BaseModel):
    table_key: str
    inserts: int
    updates: int
    deletes: int


class ChangeStatsOutput(BaseModel):
    inserts: int
    updates: int
    deletes: int
    types_affected: list[str]
    tables: list[TableChangesOutput]
    schema_steps: list[str]


class ChangeSetOutput(BaseModel):
    """What differs between two states."""

    from_version: int
    to_version: int
    from_commit_id: str | None
    to_commit_id: str
    branch: str | None = Field(description="The branch of both; null if they are of two.")
    complete: bool = Field(description="False where a limit left changes out of the list.")
    stats: ChangeStatsOutput
    spark: SparkJobs = None
    changes: list[EntityChangeOutput]


class CommitChangesOutput(BaseModel):
    commit: CommitOutput
    changes: ChangeSetOutput


class ChangePageOutput(BaseModel):
    """What was committed after a cursor, oldest first, and the cursor to go on with."""

    uri: str
    branch: str
    cursor: str
    caught_up: bool
    blocks: list[CommitChangesOutput]


class CursorOutput(BaseModel):
    uri: str
    branch: str
    cursor: str


class RevertRequest(Merging):
    """Everything may be left out, the body too."""

    branch: str | None = Field(default=None, description="The branch to write to; main by default.")
    dry_run: bool | None = None


class PickRequest(Merging):
    """Everything may be left out, the body too."""

    into: str | None = Field(default=None, description="The branch to write to; main by default.")
    dry_run: bool | None = None


class ResetRequest(Given):
    branch: str
    to: str | TargetRef = Field(description="A commit id, a branch or tag:NAME.")
    confirm: bool | None = Field(default=None, description="Without it nothing is changed.")


class ResetOutput(BaseModel):
    uri: str
    name: str
    commit_id: str
    commit: CommitOutput
    actor_id: str | None


class BeginRunRequest(Given):
    """Everything may be left out, the body too."""

    target_branch: str | None = Field(default=None, description="Main by default.")
    operation_hash: str | None = Field(
        default=None,
        description="Names the work: a run of that name that runs or is published is meant.",
    )


class PreviewRequest(Merging):
    """Everything may be left out, the body too."""


class TagRequest(Given):
    name: str
    target: str | TargetRef | None = Field(
        default=None, description="A branch, a commit id or tag:NAME; main by default."
    )


class TagOutput(BaseModel):
    uri: str | None = Field(default=None, description="Of a tag that was just made.")
    name: str
    commit_id: str
    branch: str
    incarnation: str
    manifest_version: int
    created_at: Microseconds
    actor_id: str | None


class TagListOutput(BaseModel):
    tags: list[TagOutput]
    next_page_token: str | None = None


class TagDeleteOutput(BaseModel):
    uri: str
    name: str
