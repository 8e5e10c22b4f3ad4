"""Runs: work beside a branch, listed, looked at, published and given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from omnigraph_core.history.runs import RunStatus as Status
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.merging import merge_options
from omnigraph_core.server.paging import Limit, PageToken, page, told
from omnigraph_core.server.threads import reading, writing
from omnigraph_core.server.wire_history import PublishRequest, RunListOutput, RunOutput, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph_core.history.runs import RunRecord
    from omnigraph_core.server.graphs import Served

router = APIRouter(tags=["runs"])


@router.get(
    "/runs",
    operation_id="listRuns",
    summary="Runs, oldest first",
    responses={200: {"model": RunListOutput}, **errors(400)},
)
async def list_runs(
    graph: Graph,
    target_branch: str | None = None,
    status: RunStatus | None = None,
    limit: Limit = None,
    page_token: PageToken = None,
) -> Response:
    wanted = None if status is None else Status(status)

    def listed() -> dict[str, object]:
        runs = graph.graph.list_runs(target_branch=target_branch, status=wanted)
        shown, token = page(runs, lambda run: run.run_id, limit, page_token)
        return {"runs": [run.to_json() for run in shown], **told(token)}

    return answer(await reading(listed))


@router.get(
    "/runs/{run_id}",
    operation_id="getRun",
    summary="One run",
    responses={200: {"model": RunOutput}, **errors(404)},
)
async def get_run(graph: Graph, run_id: str) -> Response:
    found = await reading(lambda: graph.graph.get_run(run_id))
    return answer(found.to_json())


@router.post(
    "/runs/{run_id}/publish",
    operation_id="publishRun",
    summary="Merge the work of a run into its target",
    responses={200: {"model": RunOutput}, **errors(404, 409)},
)
async def publish_run(
    request: Request, graph: Graph, run_id: str, body: PublishRequest | None = None
) -> Response:
    return await _written(
        request, graph, lambda: graph.graph.publish_run(run_id, **merge_options(body))
    )


@router.post(
    "/runs/{run_id}/abort",
    operation_id="abortRun",
    summary="Give a run up",
    responses={200: {"model": RunOutput}, **errors(404, 409)},
)
async def abort_run(request: Request, graph: Graph, run_id: str) -> Response:
    return await _written(request, graph, lambda: graph.graph.abort_run(run_id))


async def _written(request: Request, graph: Served, call: Callable[[], RunRecord]) -> Response:
    async def written() -> Response:
        run = await writing(call)
        return answer(run.to_json())

    return await once(request, graph, written)
