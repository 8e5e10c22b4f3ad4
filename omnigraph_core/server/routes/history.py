"""What takes commits back, repeats them elsewhere, and stages work in runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request, Response

from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server import jobs
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.merging import merge_document, merge_options
from omnigraph_core.server.threads import reading, writing
from omnigraph_core.server.wire_changes import (
    BeginRunRequest,
    PickRequest,
    PreviewRequest,
    ResetOutput,
    ResetRequest,
    RevertRequest,
    target_of,
)
from omnigraph_core.server.wire_history import BranchMergeOutput, RunOutput
from omnigraph_core.server.wire_loads import JobOutput

if TYPE_CHECKING:
    from omnigraph_core.server.graphs import Served

router = APIRouter()

_MERGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": BranchMergeOutput},
    202: {"model": JobOutput, "description": "With `Prefer: respond-async`."},
    **errors(409),
}


@router.post(
    "/commits/{commit_id}/revert",
    operation_id="revertCommit",
    tags=["commits"],
    summary="Take back what one commit changed",
    responses=_MERGED,
)
async def revert_commit(
    request: Request, graph: Graph, commit_id: str, body: RevertRequest | None = None
) -> Response:
    given = body or RevertRequest.model_validate({})
    branch = MAIN if given.branch is None else given.branch

    def revert(_progress: object, _check: object) -> object:
        result = graph.graph.revert(
            commit_id, branch=branch, dry_run=bool(given.dry_run), **merge_options(given)
        )
        return merge_document(result, graph.graph.actor)

    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="revert",
            branch=branch,
            call=revert,
            demand=lambda: _demand_step(graph, commit_id, branch),
        ),
    )


@router.post(
    "/commits/{commit_id}/pick",
    operation_id="pickCommit",
    tags=["commits"],
    summary="Make the changes of one commit on another branch",
    responses=_MERGED,
)
async def pick_commit(
    request: Request, graph: Graph, commit_id: str, body: PickRequest | None = None
) -> Response:
    given = body or PickRequest.model_validate({})
    into = MAIN if given.into is None else given.into

    def pick(_progress: object, _check: object) -> object:
        result = graph.graph.cherry_pick(
            commit_id, into=into, dry_run=bool(given.dry_run), **merge_options(given)
        )
        return merge_document(result, graph.graph.actor)

    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="pick",
            branch=into,
            call=pick,
            demand=lambda: _demand_step(graph, commit_id, into),
        ),
    )


def _demand_step(graph: Served, commit_id: str, branch: str) -> None:
    """Writing to the branch, and reading where the commit was made: its rows come over.

    Raises:
        PolicyDenied: the actor may not.
        NotFoundError: there is no such commit any more.
    """
    graph.graph.rights.demand(Action.CHANGE, branch=branch)
    graph.graph.snapshot_of(ReadTarget(snapshot_id=commit_id))


@router.post(
    "/branches/reset",
    operation_id="resetBranch",
    tags=["branches"],
    summary="Give a branch the state of a commit, a tag or another branch",
    description="Its history stays: the new state is a commit like any other.",
    responses={200: {"model": ResetOutput}, **errors(409)},
)
async def reset_branch(request: Request, graph: Graph, body: ResetRequest) -> Response:
    target = target_of(body.to)

    def reset() -> dict[str, object]:
        commit = graph.graph.branch_reset(body.branch, target, confirm=bool(body.confirm))
        return {
            "uri": graph.uri,
            "name": body.branch.strip(),
            "commit_id": commit.graph_commit_id,
            "commit": commit.to_json(),
            "actor_id": graph.graph.actor,
        }

    async def respond() -> Response:
        return answer(await writing(reset))

    return await once(request, graph, respond)


@router.post(
    "/runs",
    operation_id="beginRun",
    tags=["runs"],
    summary="Begin work on a branch of its own",
    responses={200: {"model": RunOutput}, **errors(409)},
)
async def begin_run(
    request: Request, graph: Graph, body: BeginRunRequest | None = None
) -> Response:
    given = body or BeginRunRequest.model_validate({})
    target = MAIN if given.target_branch is None else given.target_branch

    async def respond() -> Response:
        # Of a server that is killed before the answer is kept, a run may be left that nobody knows:
        # it expires without a trace in its target. An operation hash makes the repeat find it.
        run = await writing(
            lambda: graph.graph.begin_run(target, operation_hash=given.operation_hash)
        )
        return answer(run.to_json())

    return await once(request, graph, respond)


@router.post(
    "/runs/{run_id}/fail",
    operation_id="failRun",
    tags=["runs"],
    summary="Record that the work of a run has failed",
    responses={200: {"model": RunOutput}, **errors(409)},
)
async def fail_run(request: Request, graph: Graph, run_id: str) -> Response:
    async def respond() -> Response:
        return answer((await writing(lambda: graph.graph.fail_run(run_id))).to_json())

    return await once(request, graph, respond)


@router.post(
    "/runs/{run_id}/preview",
    operation_id="previewRun",
    tags=["runs"],
    summary="What publishing a run would do",
    responses={200: {"model": BranchMergeOutput}, **errors(409)},
)
async def preview_run(graph: Graph, run_id: str, body: PreviewRequest | None = None) -> Response:
    given = body or PreviewRequest.model_validate({})
    result = await reading(lambda: graph.graph.preview_run(run_id, **merge_options(given)))
    return answer(merge_document(result, graph.graph.actor))
