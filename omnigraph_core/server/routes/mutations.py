"""Writing rows: mutations, and data that comes in the body of a request."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Request, Response

from omnigraph_core.manifest.image import MAIN
from omnigraph_core.server import loading
from omnigraph_core.server.access import Graph, if_commit
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import key_of, own_key
from omnigraph_core.server.loading import LoadOrder
from omnigraph_core.server.threads import writing
from omnigraph_core.server.wire import (
    ChangeOutput,
    ChangeRequest,
    IngestOutput,
    IngestRequest,
    LoadRequest,
    MutateRequest,
)
from omnigraph_core.server.wire_loads import JobOutput, LoadOutput

if TYPE_CHECKING:
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.write.mutate import MutationResult

router = APIRouter(tags=["mutations"])

_CHANGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": ChangeOutput},
    **errors(400, 404, 409, 412),
}
_LOADED: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": JobOutput, "description": "It goes on as a job."},
    **errors(400, 404, 409, 412),
}


@router.post("/change", operation_id="change", summary="Run a mutation", responses=_CHANGED)
async def change(request: Request, graph: Graph, body: ChangeRequest) -> Response:
    return await _mutated(
        request,
        graph,
        body.query_source,
        body.params,
        name=body.query_name,
        branch=MAIN if body.branch is None else body.branch,
        embed=body.embed or "now",
    )


@router.post("/mutate", operation_id="mutate", summary="Run a mutation", responses=_CHANGED)
async def mutate(request: Request, graph: Graph, body: MutateRequest) -> Response:
    return await _mutated(
        request,
        graph,
        body.source,
        body.params,
        name=body.chosen,
        branch=MAIN if body.branch is None else body.branch,
        embed=body.embed or "now",
    )


@router.post(
    "/mutate/if-graph-commit",
    operation_id="mutateIfGraphCommit",
    summary="Run a mutation if a commit is the head of the branch",
    responses=_CHANGED,
)
async def mutate_if(
    request: Request,
    graph: Graph,
    body: MutateRequest,
    omnigraph_if_graph_commit: Annotated[str, Header(min_length=1)],
) -> Response:
    return await mutate(request, graph, body)


@router.post(
    "/ingest",
    operation_id="ingest",
    summary="Load records into a branch, made first if it is missing",
    responses={200: {"model": IngestOutput}, **_LOADED},
)
async def ingest(request: Request, graph: Graph, body: IngestRequest) -> Response:
    source = MAIN if body.source is None else body.source.strip()
    return await loading.respond(request, graph, _order(request, body, source))


@router.post(
    "/load",
    operation_id="load",
    summary="Load records into a branch",
    responses={200: {"model": LoadOutput}, **_LOADED},
)
async def load(request: Request, graph: Graph, body: LoadRequest) -> Response:
    return await loading.respond(request, graph, _order(request, body, body.source))


def _order(request: Request, body: IngestRequest, source: str | None) -> LoadOrder:
    data = body.data.encode(errors="surrogatepass")  # what is no text is told as such
    return LoadOrder(
        data,
        branch=MAIN if body.branch is None else body.branch.strip(),
        source=source,
        mode=str(body.mode or "merge"),
        format=body.format,
        type=body.type,
        embed=body.embed or "now",
        is_dry_run=bool(body.dry_run),
        is_skipping_bad=bool(body.skip_bad),
        wants_rejects=bool(body.rejects),
        if_commit=if_commit(request),
        key=key_of(request),
        digest=hashlib.sha256(data).hexdigest(),
        size=len(data),
    )


async def _mutated(
    request: Request,
    graph: Served,
    source: str,
    params: dict[str, Any] | None,
    *,
    name: str | None,
    branch: str,
    embed: str,
) -> Response:
    head = if_commit(request)
    with own_key(graph, key_of(request)) as key:
        result = await writing(
            lambda: graph.graph.mutate(
                source,
                params,
                name=name,
                branch=branch,
                embed=embed,
                if_commit=head,
                idempotency_key=key,
            ),
            turn=(graph.id, branch.strip()),
        )
    return answer(_document(result))


def _document(result: MutationResult) -> dict[str, object]:
    commit = None if result.commit is None else result.commit.to_json()
    return {**result.to_json(), "commit": commit}
