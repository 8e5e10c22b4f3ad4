"""Applying a schema: prepared on the newest state of a branch, published with one commit.

Rows that others write meanwhile make it prepare again, with the columns it has written for the rows
that stayed; a schema that others change makes it stop,
because what its author has seen is no more. Whatever was dropped for good is purged afterwards.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.constants import PREPARE_BUDGET
from omnigraph_core.engine.purging import find_dropped, purge
from omnigraph_core.errors import ConflictError, PreconditionFailed
from omnigraph_core.evolve.apply import PreparedSchema, prepare_schema
from omnigraph_core.evolve.plan import plan_schema, require_supported, step_reports
from omnigraph_core.evolve.report import SchemaApplyResult, SchemaPlanReport
from omnigraph_core.failpoints import declare
from omnigraph_core.history import door
from omnigraph_core.history.locks import schema_lock
from omnigraph_core.manifest.changes import touched
from omnigraph_core.manifest.names import check_actor
from omnigraph_core.manifest.publisher import CommitDraft
from omnigraph_core.manifest.requirements import StagedWithin, requirements_of
from omnigraph_core.manifest.retry import back_off
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.storage.rearrange import WrittenColumns

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from omnigraph_core.history.context import GraphContext
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.manifest.catalog import CatalogState
    from omnigraph_core.manifest.snapshot import Snapshot

_PUBLISHED: Final = declare("schema.after_publish", "a schema change is visible, nothing is purged")

_OPERATION: Final = "schema_apply"

_LONGEST: Final = 2
"""The attempt from which on waits do not get longer."""


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A schema to be brought into force on a branch."""

    source: str
    branch: str
    allow_data_loss: bool = False
    actor: str | None = None


def report_plan(context: GraphContext, request: SchemaRequest) -> SchemaPlanReport:
    """What applying would do; reads no rows.

    Raises:
        CompileError: the text is wrong.
        BranchNotFound: there is none of that name.
    """
    snapshot = context.head(request.branch)[1].snapshot
    planned = plan_schema(snapshot, request.source, allow_data_loss=request.allow_data_loss)
    steps = step_reports(context, snapshot, planned)
    return SchemaPlanReport(request.branch, planned.plan.supported, steps)


def rehearse_schema(context: GraphContext, request: SchemaRequest) -> SchemaApplyResult:
    """As `apply_schema` up to the point where something would be written."""
    _, state = context.head(request.branch)
    prepared = _prepare(context, state, request, is_rehearsal=True)
    return _unchanged(request, state.snapshot, prepared, is_dry_run=True)


def apply_schema(context: GraphContext, request: SchemaRequest) -> SchemaApplyResult:
    """Bring a schema into force with one commit; none if it is in force already.

    Raises:
        CompileError: the text is wrong, or a change cannot be carried out.
        DataError: rows do not allow it; with all of them.
        SchemaApplyLocked: somebody else is about it.
        ConflictError: the schema changed meanwhile, or the tables kept moving.
    """
    check_actor(request.actor)
    _, state = context.head(request.branch)
    planned = plan_schema(state.snapshot, request.source, allow_data_loss=request.allow_data_loss)
    if not planned.plan.steps:
        return _unchanged(
            request, state.snapshot, PreparedSchema(planned.plan, planned.accepted, ())
        )
    require_supported(planned)
    with schema_lock(context.store, request.branch, actor=request.actor):
        landed = _land(context, request, state.snapshot)
    _PUBLISHED.hit()
    if not landed.prepared.changes:
        return _unchanged(request, landed.snapshot, landed.prepared)
    dropped = find_dropped(context, landed.base, planned)
    return SchemaApplyResult(
        request.branch,
        applied=True,
        manifest_version=landed.snapshot.manifest_version,
        steps=landed.prepared.steps,
        commit=landed.snapshot.commit,
        purge=purge(context, request.branch, dropped) if dropped else None,
    )


@dataclass(frozen=True, slots=True)
class _Landed:
    """What was published, on top of what."""

    prepared: PreparedSchema
    base: Snapshot
    snapshot: Snapshot


def _land(context: GraphContext, request: SchemaRequest, seen: Snapshot) -> _Landed:
    """Prepare and publish, again for as long as only rows have moved.

    Args:
        seen: the state whose schema the author of the change knows.
    """
    lost: ConflictError | None = None
    begun = _Begun()
    for attempt in range(PREPARE_BUDGET.value + 1):
        with _turn(context, request, is_first=lost is None):
            ref, state = context.head(request.branch)
            base = state.snapshot
            if base.schema.hash != seen.schema.hash:
                return _Landed(_already_there(base, request, seen), base, base)
            try:
                return _publish(context, request, ref, state, begun)
            except ConflictError as conflict:
                context.forget(ref)
                if not conflict.retryable:
                    raise
                lost = conflict
        # Never for long: what comes in meanwhile is to be written too.
        back_off(min(attempt, _LONGEST))
    assert lost is not None  # or the first attempt would have returned
    lost.hint = (
        f"others wrote to the tables each time the change was ready: pause the writers of branch "
        f"{request.branch} and apply again, or apply on a new branch and merge that"
    )
    raise lost


class _Begun:
    """What attempts that others have overtaken leave to the next: nobody sweeps it for a while."""

    def __init__(self) -> None:
        self.since = 0.0
        self.done = WrittenColumns()

    def go_on(self, snapshot: Snapshot) -> StagedWithin:
        """What must hold for a commit with columns that were written since the first attempt."""
        lease = PUBLISH_LEASE.read()
        if snapshot.read_at - self.since > lease / 2:
            self.since, self.done = snapshot.read_at, WrittenColumns()
        return StagedWithin(self.since, lease)


def _turn(
    context: GraphContext, request: SchemaRequest, *, is_first: bool
) -> AbstractContextManager[None]:
    """Who has lost a race takes turns with the writers of this process."""
    return nullcontext() if is_first else context.commits.turns.turn(request.branch)


def _publish(
    context: GraphContext,
    request: SchemaRequest,
    ref: BranchRef,
    state: CatalogState,
    begun: _Begun,
) -> _Landed:
    in_time = begun.go_on(state.snapshot)
    prepared = _prepare(context, state, request, done=begun.done)
    relied_on = requirements_of(
        state.snapshot, touched=touched(prepared.changes), read=prepared.read
    )
    draft = CommitDraft(
        prepared.changes,
        (*relied_on, in_time),
        _OPERATION,
        actor=request.actor,
    )
    published = door.commit(context.commits, ref, draft, base=state)
    context.remember(published)
    return _Landed(prepared, state.snapshot, published.snapshot)


def _already_there(base: Snapshot, request: SchemaRequest, seen: Snapshot) -> PreparedSchema:
    """Somebody else has changed the schema: fine if to the same.

    Raises:
        PreconditionFailed: a plan made now might take back what they did.
    """
    planned = plan_schema(base, request.source, allow_data_loss=request.allow_data_loss)
    if planned.plan.steps:
        raise PreconditionFailed("schema", seen.schema.hash, base.schema.hash)
    return PreparedSchema(planned.plan, base.schema, ())


def _prepare(
    context: GraphContext,
    state: CatalogState,
    request: SchemaRequest,
    *,
    is_rehearsal: bool = False,
    done: WrittenColumns | None = None,
) -> PreparedSchema:
    return prepare_schema(
        context,
        state,
        request.source,
        allow_data_loss=request.allow_data_loss,
        is_rehearsal=is_rehearsal,
        done=done,
    )


def _unchanged(
    request: SchemaRequest,
    snapshot: Snapshot,
    prepared: PreparedSchema,
    *,
    is_dry_run: bool = False,
) -> SchemaApplyResult:
    return SchemaApplyResult(
        request.branch,
        applied=False,
        manifest_version=snapshot.manifest_version,
        steps=prepared.steps,
        is_dry_run=is_dry_run,
    )
