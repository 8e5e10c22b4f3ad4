"""Branches: listed, looked at, made, merged and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from omnigraph_core.errors import BranchNotFound
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.policy.model import Action
from omnigraph_core.server import jobs
from omnigraph_core.server.access import Graph, if_commit
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.merging import merge_document, merge_options
from omnigraph_core.server.paging import Limit, PageToken, page_by_name, told
from omnigraph_core.server.targets import named_target
from omnigraph_core.server.threads import reading, writing
from omnigraph_core.server.wire_history import (
    BranchCreateOutput,
    BranchCreateRequest,
    BranchDeleteOutput,
    BranchListOutput,
    BranchMergeOutput,
    BranchMergeRequest,
    BranchOutput,
)
from omnigraph_core.server.wire_loads import JobOutput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.refs import BranchRef
    from omnigraph_core.server.graphs import Served

router = APIRouter(tags=["branches"])


@router.get(
    "/branches",
    operation_id="listBranches",
    summary="All branches by name",
    responses={200: {"model": BranchListOutput}, **errors(400)},
)
async def list_branches(
    graph: Graph, limit: Limit = None, page_token: PageToken = None, details: bool = False
) -> Response:
    def listed() -> dict[str, object]:
        names = sorted(graph.graph.branch_list())
        shown, token = page_by_name(names, str, limit, page_token)
        told_more = {"details": list(_details(graph.graph, shown))} if details else {}
        return {"branches": list(shown), **told_more, **told(token)}

    return answer(await reading(listed))


@router.post(
    "/branches",
    operation_id="createBranch",
    summary="Fork a branch",
    responses={200: {"model": BranchCreateOutput}, **errors(400, 404, 409)},
)
async def create_branch(request: Request, graph: Graph, body: BranchCreateRequest) -> Response:
    source = MAIN if body.source is None else body.source.strip()

    async def create() -> Response:
        ref = await writing(
            lambda: graph.graph.branch_create(body.name, source=named_target(source))
        )
        head = {"uri": graph.uri, "from": source, "name": ref.branch}
        fork = ref.forked_from
        commit_id = None if fork is None else fork.commit_id
        return answer({**head, **_ref(ref), "commit_id": commit_id})

    return await once(request, graph, create)


@router.post(
    "/branches/merge",
    operation_id="mergeBranches",
    summary="Merge a branch into another one",
    responses={
        200: {"model": BranchMergeOutput},
        202: {"model": JobOutput, "description": "It goes on as a job."},
        **errors(400, 404, 409, 412),
    },
)
async def merge_branches(request: Request, graph: Graph, body: BranchMergeRequest) -> Response:
    target = MAIN if body.target is None else body.target
    head = if_commit(request)
    return await once(
        request,
        graph,
        lambda: jobs.maybe(
            request,
            graph,
            operation="merge",
            branch=target,
            call=lambda _progress, _check: _merged(graph, body, target, head),
            demand=lambda: _demand_merge(graph, body, target),
        ),
    )


@router.get(
    "/branches/{branch:path}",
    operation_id="getBranch",
    summary="One branch",
    responses={200: {"model": BranchOutput}, **errors(400, 404)},
)
async def get_branch(graph: Graph, branch: str) -> Response:
    def found() -> dict[str, object]:
        ref, head = graph.graph.branch_get(branch), graph.graph.snapshot(branch)
        place = {
            "commit_id": head.commit.graph_commit_id,
            "manifest_version": head.manifest_version,
        }
        return {"name": ref.branch, **_ref(ref), **place}

    return answer(await reading(found))


@router.delete(
    "/branches/{branch:path}",
    operation_id="deleteBranch",
    summary="Delete a branch",
    responses={200: {"model": BranchDeleteOutput}, **errors(400, 404, 409)},
)
async def delete_branch(request: Request, graph: Graph, branch: str) -> Response:
    async def delete() -> Response:
        await writing(lambda: graph.graph.branch_delete(branch))
        name = branch.strip()  # as it is called, which a client may have surrounded with blanks
        return answer({"uri": graph.uri, "name": name, "actor_id": graph.graph.actor})

    return await once(request, graph, delete)


def _merged(
    graph: Served, body: BranchMergeRequest, target: str, head: str | None
) -> dict[str, object]:
    result = graph.graph.branch_merge(
        body.source,
        into=target,
        dry_run=bool(body.dry_run),
        delete_branch=bool(body.delete_branch),
        if_commit=head,
        **merge_options(body),
    )
    return merge_document(result, graph.graph.actor)


def _demand_merge(graph: Served, body: BranchMergeRequest, target: str) -> None:
    rights = graph.graph.rights
    rights.demand(Action.BRANCH_MERGE, branch=body.source, target_branch=target)
    if body.delete_branch:
        rights.demand(Action.BRANCH_DELETE, target_branch=body.source)


def _ref(ref: BranchRef) -> dict[str, object]:
    fork = ref.forked_from
    return {
        "incarnation": ref.incarnation,
        "manifest": ref.manifest,
        "forked_from": None
        if fork is None
        else {
            "branch": fork.branch,
            "incarnation": fork.incarnation,
            "manifest_version": fork.manifest_version,
            "commit_id": fork.commit_id,
        },
        "created_at": ref.created_at,
        "actor_id": ref.actor,
    }


def _details(graph: Omnigraph, names: Sequence[str]) -> Iterator[dict[str, object]]:
    for name in names:
        try:
            ref, head = graph.branch_get(name), graph.snapshot(name)
        except BranchNotFound:
            continue  # deleted since it was listed
        fork = ref.forked_from
        yield {
            "name": name,
            "commit_id": head.commit.graph_commit_id,
            "manifest_version": head.manifest_version,
            "from": None if fork is None else fork.branch,
            "from_commit_id": None if fork is None else fork.commit_id,
            "created_at": None if fork is None else ref.created_at,
            "actor_id": ref.actor,
        }
