"""Reading: queries, their plans, whole snapshots as lines, single rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from omnigraph_core.manifest.image import MAIN
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import ARROW, NDJSON, answer, stream
from omnigraph_core.server.errors import errors
from omnigraph_core.server.reads import Asked, cancellable, respond
from omnigraph_core.server.targets import which
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import (
    EntityOutput,
    ExplainRequest,
    ExportRequest,
    QueryRequest,
    ReadOutput,
    ReadRequest,
    Version,
)

router = APIRouter(tags=["queries"])

_TEXT: Final = {"schema": {"type": "string"}}
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_ROWS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": ReadOutput, "content": {"application/x-ndjson": _TEXT, ARROW: _BINARY}},
    **errors(400, 404, 413),
}
_EXPORT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"application/x-ndjson": _TEXT}},
    **errors(400, 404),
}


@router.post("/read", operation_id="read", summary="Run a query", responses=_ROWS)
async def read(request: Request, graph: Graph, body: ReadRequest) -> Response:
    place = which(body.branch, body.snapshot, body.tag, body.version, body.at)
    named = (body.query_source, body.query_name, body.params)
    asked = Asked(place, *named, body.timeout, body.memory, body.max_age)
    return await respond(request, graph, asked)


@router.post("/query", operation_id="query", summary="Run a query", responses=_ROWS)
async def query(request: Request, graph: Graph, body: QueryRequest) -> Response:
    asked = replace(_asked(body), max_age=body.max_age)
    return await respond(request, graph, asked)


@router.post(
    "/explain",
    operation_id="explainQuery",
    summary="How a query is carried out",
    responses={200: {"model": dict[str, Any]}, **errors(400, 404, 413)},
)
async def explain(request: Request, graph: Graph, body: ExplainRequest) -> Response:
    asked, engine = _asked(body), graph.graph
    if not body.profile:
        report = await reading(
            lambda: engine.explain(asked.which.target(engine), asked.source, asked.name)
        )
    else:
        report = await cancellable(
            request,
            lambda token: engine.profile(
                asked.which.target(engine),
                asked.source,
                asked.name,
                asked.params,
                timeout=asked.timeout,
                memory=asked.memory,
                cancellation=token,
            ),
        )
    return answer(report.to_json())


@router.post("/export", operation_id="export", summary="A snapshot as lines", responses=_EXPORT)
async def export(graph: Graph, body: ExportRequest) -> Response:
    place = which(body.branch, body.snapshot, body.tag)
    engine = graph.graph
    lines = await reading(
        lambda: engine.export_jsonl(
            place.read_target, types=body.type_names or (), table_keys=body.table_keys or ()
        )
    )
    return stream(lines, NDJSON)


@router.get(
    "/entity",
    operation_id="getEntity",
    summary="One row",
    responses={200: {"model": EntityOutput}, **errors(404)},
)
async def entity(
    graph: Graph,
    table_key: Annotated[str, Query(description="`node:Type` or `edge:Type`.")],
    id: str,
    branch: str = MAIN,
    version: Version | None = None,
) -> Response:
    engine = graph.graph

    def found() -> object:
        at = engine.snapshot(branch).manifest_version if version is None else version
        return engine.entity_at(table_key, id, version=at, branch=branch)

    return answer({"entity": await reading(found)})


def _asked(body: QueryRequest | ExplainRequest) -> Asked:
    place = which(body.branch, body.snapshot, body.tag, body.version, body.at)
    return Asked(place, body.source, body.chosen, body.params, body.timeout, body.memory)
