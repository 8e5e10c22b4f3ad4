"""Jobs: how far they are, what came of them, and stopping them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from omnigraph_core.policy.model import Action
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.jobs import jobs_of
from omnigraph_core.server.paging import PageToken, first_page, last_seen, told
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire_loads import JobListOutput, JobOutput, JobStatusOutput

if TYPE_CHECKING:
    from omnigraph_core.engine.rights import Rights
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.server.job_records import JobRecord

router = APIRouter(tags=["jobs"])

StatusParameter = Annotated[
    JobStatusOutput | None, Query(alias="status", description="Only jobs in this state.")
]
LimitParameter = Annotated[int, Query(ge=1, le=10_000, description="The newest so many of them.")]


@router.get(
    "/jobs",
    operation_id="listJobs",
    summary="Jobs of the last day, newest first",
    description="Without results and the details of errors: one job alone is told with them.",
    responses={200: {"model": JobListOutput}},
)
async def list_jobs(
    request: Request,
    graph: Graph,
    wanted: StatusParameter = None,
    limit: LimitParameter = 100,
    page_token: PageToken = None,
) -> Response:
    is_all = _rights(graph).allows(Action.ADMIN)

    def is_wanted(record: JobRecord) -> bool:
        is_shown = is_all or _is_own(graph, record)
        return is_shown and (wanted is None or str(wanted) == str(record.status))

    seen = None if page_token is None else last_seen(page_token)
    # One more than asked for tells whether there is another page.
    found = await reading(lambda: jobs_of(request).list(graph, is_wanted, limit + 1, seen))
    shown, token = first_page(found, lambda record: record.job_id, limit)
    return answer({"jobs": [record.to_json() for record in shown], **told(token)})


@router.get(
    "/jobs/{job_id}",
    operation_id="getJob",
    summary="One job",
    responses={200: {"model": JobOutput}},
)
async def get_job(request: Request, graph: Graph, job_id: str) -> Response:
    record = await reading(lambda: jobs_of(request).get(graph, job_id))
    _check_own(graph, record)
    return answer(record.to_json())


@router.post(
    "/jobs/{job_id}/cancel",
    operation_id="cancelJob",
    summary="Stop a job",
    description="A load stops within moments and nothing of it is seen. Anything else can only be "
    "stopped before it has begun.",
    responses={200: {"model": JobOutput}, **errors(409)},
)
async def cancel_job(request: Request, graph: Graph, job_id: str) -> Response:
    jobs = jobs_of(request)
    _check_own(graph, await reading(lambda: jobs.get(graph, job_id)))
    return answer((await reading(lambda: jobs.cancel(graph, job_id))).to_json())


def _check_own(graph: Served, record: JobRecord) -> None:
    """Jobs of others are the business of whoever looks after the graph.

    Raises:
        PolicyDenied: the actor does not.
    """
    if not _is_own(graph, record):
        _rights(graph).demand(Action.ADMIN)


def _is_own(graph: Served, record: JobRecord) -> bool:
    return graph.graph.actor is not None and graph.graph.actor == record.actor_id


def _rights(graph: Served) -> Rights:
    return graph.graph.rights
