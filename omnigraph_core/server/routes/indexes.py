"""What is derived from rows: indexes, and vectors of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from omnigraph_core.job_report import spark_member
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server import jobs
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.targets import which
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire_loads import JobOutput
from omnigraph_core.server.wire_upkeep import (
    BackfillOutput,
    BranchRequest,
    EmbeddingListOutput,
    IndexListOutput,
)

if TYPE_CHECKING:
    from omnigraph_core.write.progress import Listener

router = APIRouter()

BranchParameter = Annotated[str | None, Query(description="The branch; main by default.")]
SnapshotParameter = Annotated[str | None, Query(description="A commit id, in place of a branch.")]
TagParameter = Annotated[str | None, Query(description="A tag, in place of a branch.")]

_JOB: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": JobOutput, "description": "With `Prefer: respond-async`."},
    **errors(409),
}


@router.get(
    "/indexes",
    operation_id="getIndexes",
    tags=["indexes"],
    summary="How much every index covers",
    responses={200: {"model": IndexListOutput}},
)
async def get_indexes(
    graph: Graph,
    branch: BranchParameter = None,
    snapshot: SnapshotParameter = None,
    tag: TagParameter = None,
) -> Response:
    place = which(branch, snapshot, tag)
    reports = await reading(lambda: graph.graph.index_status(place.read_target))
    indexes = [report.to_json() for report in reports]
    return answer({"uri": graph.uri, "branch": place.read_target.branch, "indexes": indexes})


@router.post(
    "/indexes",
    operation_id="ensureIndexes",
    tags=["indexes"],
    summary="Build what is missing of every index",
    responses={200: {"model": IndexListOutput}, **_JOB},
)
async def ensure_indexes(
    request: Request, graph: Graph, body: BranchRequest | None = None
) -> Response:
    branch = MAIN if body is None or body.branch is None else body.branch

    def work(_progress: object, _check: object) -> object:
        reports = graph.graph.ensure_indices(branch=branch)
        indexes = [report.to_json() for report in reports]
        return {"uri": graph.uri, "branch": branch, "indexes": indexes, **spark_member(reports)}

    rights = graph.graph.rights
    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="ensure_indexes",
            branch=branch,
            call=work,
            demand=lambda: rights.demand(Action.ADMIN),
        ),
    )


@router.get(
    "/embeddings",
    operation_id="getEmbeddings",
    tags=["embeddings"],
    summary="How many vectors are ready, pending and stale",
    responses={200: {"model": EmbeddingListOutput}},
)
async def get_embeddings(
    graph: Graph,
    branch: BranchParameter = None,
    snapshot: SnapshotParameter = None,
    tag: TagParameter = None,
) -> Response:
    place = which(branch, snapshot, tag)
    found = await reading(lambda: graph.graph.embedding_status(place.read_target))
    embeddings = [item.to_json() for item in found]
    document = {"uri": graph.uri, "branch": place.read_target.branch, "embeddings": embeddings}
    return answer(document)


@router.post(
    "/embeddings/backfill",
    operation_id="backfillEmbeddings",
    tags=["embeddings"],
    summary="Make the vectors that are pending or stale",
    responses={200: {"model": BackfillOutput}, **_JOB},
)
async def backfill_embeddings(
    request: Request, graph: Graph, body: BranchRequest | None = None
) -> Response:
    branch = MAIN if body is None or body.branch is None else body.branch

    def work(progress: Listener, _check: object) -> object:
        result = graph.graph.embed_backfill(branch=branch, progress=progress)
        return {"uri": graph.uri, **result.to_json()}

    rights = graph.graph.rights
    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="backfill",
            branch=branch,
            call=work,
            demand=lambda: rights.demand(Action.CHANGE, branch=branch),
        ),
    )
