"""What a server says of itself: health, readiness, figures, its interface, its graphs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from fastapi import APIRouter, Depends, Request, Response

from omnigraph_core.errors import PolicyDenied
from omnigraph_core.policy.model import Action
from omnigraph_core.server import settings
from omnigraph_core.server.access import Caller, known_graph, serving_of
from omnigraph_core.server.answers import answer
from omnigraph_core.server.metrics import CONTENT_TYPE, Metrics
from omnigraph_core.server.openapi import VERSION
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import GraphListOutput, HealthOutput

router = APIRouter()

_OWN_VERSION: Final = version("omnigraph")
_ANYBODY: Final = (Depends(known_graph),)


@router.get(
    "/healthz",
    operation_id="health",
    tags=["health"],
    summary="Whether the server is there",
    responses={200: {"model": HealthOutput}},
    dependencies=_ANYBODY,
)
async def health() -> Response:
    source = settings.SOURCE_VERSION.read()
    told = {} if source is None else {"source_version": source}
    return answer({"status": "ok", "version": VERSION, **told, "omnigraph_version": _OWN_VERSION})


@router.get(
    "/readyz",
    operation_id="ready",
    tags=["health"],
    summary="Whether the default graph is open",
    responses={200: {"model": HealthOutput}},
    dependencies=_ANYBODY,
)
async def ready() -> Response:
    # Nothing is answered before the default graph is open.
    return await health()


@router.get("/openapi.json", include_in_schema=False, dependencies=_ANYBODY)
async def openapi(request: Request) -> Response:
    return answer(await reading(request.app.openapi))


@router.get(
    "/metrics",
    operation_id="metrics",
    tags=["health"],
    summary="Figures for Prometheus",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, caller: Caller) -> Response:
    await known_graph(request)
    found: Metrics = request.app.state.metrics
    return Response(found.text(), media_type=CONTENT_TYPE)


@router.get(
    "/graphs",
    operation_id="listGraphs",
    tags=["graphs"],
    summary="The graphs of this server",
    responses={200: {"model": GraphListOutput}},
)
async def list_graphs(request: Request, caller: Caller) -> Response:
    await known_graph(request)
    serving = serving_of(request)
    # By the policy of the default graph, under whatever name it is asked: that of another graph
    # says nothing of the server.
    graph = await serving.graphs.served(None, caller)
    if graph.judge is not None:
        graph.graph.rights.demand(Action.GRAPH_LIST)
    elif not serving.options.lists_graphs:
        raise PolicyDenied(
            "this server does not tell which graphs it has",
            actor=graph.graph.actor or "",
            action=Action.GRAPH_LIST,
        )
    shown = [{"graph_id": graph_id, "uri": uri} for graph_id, uri in serving.graphs.shown()]
    return answer({"graphs": shown})
