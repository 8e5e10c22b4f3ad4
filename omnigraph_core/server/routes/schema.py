"""The schema of a branch: shown, planned and applied."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server import jobs
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer, not_modified
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.targets import which
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import Version
from omnigraph_core.server.wire_loads import JobOutput
from omnigraph_core.server.wire_schema import (
    SchemaApplyOutput,
    SchemaApplyRequest,
    SchemaOutput,
    SchemaPlanOutput,
    SchemaPlanRequest,
)

if TYPE_CHECKING:
    from omnigraph_core.server.graphs import Served

router = APIRouter()


@router.get(
    "/schema",
    operation_id="getSchema",
    tags=["schema"],
    summary="The schema in force",
    responses={200: {"model": SchemaOutput}, 304: {"description": "As it was."}, **errors(404)},
)
async def get_schema(
    request: Request,
    graph: Graph,
    branch: str | None = None,
    snapshot: str | None = None,
    tag: str | None = None,
    version: Version | None = None,
    at: str | None = None,
) -> Response:
    place, engine = which(branch, snapshot, tag, version, at), graph.graph
    found = await reading(lambda: engine.schema_show(place.target(engine)))
    document = {
        "schema_source": found.source,
        "schema_hash": found.hash,
        "document": json.loads(found.document),
    }
    # Two texts may mean the same: the hash of the schema does not tell them apart.
    state = hashlib.sha256(f"{found.hash}\n{found.source}".encode()).hexdigest()
    return not_modified(request, state) or answer(document, commit_id=state)


@router.post(
    "/schema/plan",
    operation_id="planSchema",
    tags=["schema"],
    summary="The steps to another schema",
    responses={200: {"model": SchemaPlanOutput}, **errors(400, 404)},
)
async def plan_schema(graph: Graph, body: SchemaPlanRequest) -> Response:
    report = await reading(
        lambda: graph.graph.schema_plan(
            body.schema_source,
            branch=MAIN if body.branch is None else body.branch,
            allow_data_loss=bool(body.allow_data_loss),
        )
    )
    return answer({"uri": graph.uri, **report.to_json()})


@router.post(
    "/schema/apply",
    operation_id="applySchema",
    tags=["mutations"],
    summary="Bring a schema into force",
    responses={
        200: {"model": SchemaApplyOutput},
        202: {"model": JobOutput, "description": "It goes on as a job."},
        **errors(400, 404, 409),
    },
)
async def apply_schema(request: Request, graph: Graph, body: SchemaApplyRequest) -> Response:
    branch = MAIN if body.branch is None else body.branch
    rights = graph.graph.rights
    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="schema_apply",
            branch=branch,
            call=lambda _progress, _check: _applied(graph, body, branch),
            demand=lambda: rights.demand(Action.SCHEMA_APPLY, target_branch=branch),
        ),
    )


def _applied(graph: Served, body: SchemaApplyRequest, branch: str) -> dict[str, object]:
    result = graph.graph.schema_apply(
        body.schema_source,
        branch=branch,
        allow_data_loss=bool(body.allow_data_loss),
        dry_run=bool(body.dry_run),
    )
    commit = None if result.commit is None else result.commit.to_json()
    return {"uri": graph.uri, **result.to_json(), "commit": commit}
