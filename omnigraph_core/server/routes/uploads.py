"""Loads of any size: raw lines of JSON, or files in a multipart body."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.requests import ClientDisconnect

from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server.access import Graph, if_commit
from omnigraph_core.server.errors import errors, failure, request_id_of
from omnigraph_core.server.idempotency import key_of
from omnigraph_core.server.loading import LoadOrder, respond
from omnigraph_core.server.multipart import PART, Parts, check_types
from omnigraph_core.server.receiving import Budget, Intake, receive
from omnigraph_core.server.spool import spool_of
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import LoadMode
from omnigraph_core.server.wire_loads import JobOutput, LoadOutput

if TYPE_CHECKING:
    from omnigraph_core.server.graphs import Served

router = APIRouter(tags=["mutations"])

BranchParameter = Annotated[str, Query(description="The branch to load into.")]
FromParameter = Annotated[
    str | None,
    Query(alias="from", description="Fork the branch from this one first if it is missing."),
]
ModeParameter = Annotated[LoadMode, Query()]
EmbedParameter = Annotated[
    Literal["now", "defer", "off"], Query(description="What to do about vectors that are missing.")
]
DryRunParameter = Annotated[bool, Query(description="Check everything, write nothing.")]
SkipParameter = Annotated[bool, Query(description="Load the good records even if others are bad.")]
RejectsParameter = Annotated[bool, Query(description="Return the records that break a rule.")]

_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": LoadOutput},
    202: {"model": JobOutput, "description": "With `Prefer: respond-async`."},
    **errors(409, 412),
}


def load_parameters(
    branch: BranchParameter = MAIN,
    source: FromParameter = None,
    mode: ModeParameter = LoadMode.MERGE,
    embed: EmbedParameter = "now",
    dry_run: DryRunParameter = False,
    skip_bad: SkipParameter = False,
    rejects: RejectsParameter = False,
) -> dict[str, Any]:
    return {
        "branch": branch.strip(),
        "source": None if source is None else source.strip(),
        "mode": str(mode),
        "embed": embed,
        "is_dry_run": dry_run,
        "is_skipping_bad": skip_bad,
        "wants_rejects": rejects,
    }


Parameters = Annotated[dict[str, Any], Depends(load_parameters)]


@router.post(
    "/load/ndjson",
    operation_id="loadNdjson",
    summary="Load lines of JSON",
    description="The body is the records, of any size, possibly compressed with gzip.",
    responses=_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/x-ndjson": _BINARY, "application/octet-stream": _BINARY},
        }
    },
)
async def load_ndjson(request: Request, graph: Graph, parameters: Parameters) -> Response:
    await reading(lambda: _check_rights(graph, parameters))
    key = key_of(request)
    budget = Budget(has_digest=key is not None)
    with ExitStack() as held:
        file = held.enter_context(spool_of(request).unnamed_file())
        intake = Intake(file, budget)
        try:
            await receive(request, intake.write)
        except ClientDisconnect:
            return _broken_off(request)
        intake.finish()
        order = LoadOrder(file, format="jsonl", **parameters, **_facts(request, key, budget))
        return await respond(request, graph, order, held.pop_all())


@router.post(
    "/load/files",
    operation_id="loadFiles",
    summary="Load files",
    description="Each part `file` is a file; its name tells format and type as it does for local "
    "files (`Person.csv`, `edges/Knows.parquet`, `all.jsonl.gz`), unless parameters do. All of "
    "them are loaded with one commit.",
    responses=_RESPONSES,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": [PART],
                        "properties": {PART: {"type": "array", "items": _BINARY["schema"]}},
                    }
                }
            },
        }
    },
)
async def load_files(
    request: Request,
    graph: Graph,
    parameters: Parameters,
    format: Annotated[
        Literal["jsonl", "csv", "parquet", "arrow"] | None,
        Query(description="The format of all files, in place of what their names tell."),
    ] = None,
    type: Annotated[
        str | None, Query(description="The type of the rows of tables: Person, edge:Knows.")
    ] = None,
) -> Response:
    await reading(lambda: _check_rights(graph, parameters))
    key = key_of(request)
    budget = Budget(has_digest=key is not None)
    with ExitStack() as held:
        directory = held.enter_context(spool_of(request).directory())
        parts = Parts(request.headers.get("content-type", ""), directory, budget)
        held.callback(parts.close)
        try:
            await receive(request, parts.write)
        except ClientDisconnect:
            return _broken_off(request)
        files = parts.finish()
        check_types(files, format, type)
        order = LoadOrder(
            tuple(file.path for file in files),
            format=format,
            type=type,
            names={str(file.path): file.shown for file in files},
            **parameters,
            **_facts(request, key, budget),
        )
        return await respond(request, graph, order, held.pop_all())


def _check_rights(graph: Served, parameters: dict[str, Any]) -> None:
    """Refuse before anything is taken in.

    Raises:
        PolicyDenied: the actor may not write to the branch.
    """
    rights = graph.graph.rights
    rights.demand(Action.CHANGE, branch=parameters["branch"])


def _facts(request: Request, key: str | None, budget: Budget) -> dict[str, Any]:
    return {
        "key": key,
        "if_commit": if_commit(request),
        "digest": budget.digest,
        "size": budget.size,
    }


def _broken_off(request: Request) -> Response:
    """For the log: nobody is there to read it."""
    message = "the connection ended before the body did"
    return failure(400, message, request_id=request_id_of(request.scope))
