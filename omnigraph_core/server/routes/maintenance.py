"""What keeps a graph fast, small and sound: optimize, cleanup, verify."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from omnigraph_core.errors import ConfigError
from omnigraph_core.job_report import spark_member
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server import jobs
from omnigraph_core.server.access import Graph
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.wire_loads import JobOutput
from omnigraph_core.server.wire_upkeep import (
    CleanupOutput,
    CleanupRequest,
    OptimizeOutput,
    OptimizeRequest,
    VerifyOutput,
    VerifyRequest,
)

router = APIRouter(tags=["maintenance"])

_JOB: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": JobOutput, "description": "With `Prefer: respond-async`."},
    **errors(409),
}


@router.post(
    "/optimize",
    operation_id="optimize",
    summary="Join small files and complete indexes",
    responses={200: {"model": OptimizeOutput}, **_JOB},
)
async def optimize(request: Request, graph: Graph, body: OptimizeRequest | None = None) -> Response:
    given = body or OptimizeRequest()
    branch = MAIN if given.branch is None else given.branch

    def work(_progress: object, _check: object) -> object:
        tables = graph.graph.optimize(
            branch=branch, include_inherited=bool(given.include_inherited)
        )
        document = [table.to_json() for table in tables]
        return {"uri": graph.uri, "branch": branch, "tables": document, **spark_member(tables)}

    rights = graph.graph.rights
    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="optimize",
            branch=branch,
            call=work,
            demand=lambda: rights.demand(Action.ADMIN),
        ),
    )


@router.post(
    "/cleanup",
    operation_id="cleanup",
    summary="Remove old versions and what nothing needs any more",
    responses={200: {"model": CleanupOutput}, **_JOB},
)
async def cleanup(request: Request, graph: Graph, body: CleanupRequest) -> Response:
    if body.branches is not None and not body.branches:
        raise ConfigError("`branches` is empty", hint="name some, or leave it out to mean all")

    def work(_progress: object, _check: object) -> object:
        report = graph.graph.cleanup(
            keep=body.keep,
            older_than=_span(body.older_than_secs),
            grace=_span(body.grace_secs),
            branches=body.branches,
            is_preview=not body.confirm,
        )
        policy = {"keep_versions": body.keep, "older_than_secs": body.older_than_secs}
        return {"uri": graph.uri, **policy, **report.to_json()}

    rights = graph.graph.rights
    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="cleanup",
            call=work,
            demand=lambda: rights.demand(Action.ADMIN),
        ),
    )


@router.post(
    "/verify",
    operation_id="verify",
    summary="Check that a graph is whole",
    responses={200: {"model": VerifyOutput}, **_JOB},
)
async def verify(request: Request, graph: Graph, body: VerifyRequest | None = None) -> Response:
    given = body or VerifyRequest()

    def work(_progress: object, _check: object) -> object:
        report = graph.graph.verify(given.branch, is_deep=bool(given.deep))
        return {"uri": graph.uri, **graph.hiding.over(report.to_json())}

    rights = graph.graph.rights
    return await jobs.maybe(
        request,
        graph,
        operation="verify",
        branch=given.branch,
        call=work,
        demand=lambda: rights.demand(Action.READ),
    )


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
