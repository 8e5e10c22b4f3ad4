"""Commits: what a branch contains, and single ones."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer, not_modified
from omnigraph_core.server.errors import errors
from omnigraph_core.server.paging import Limit, PageToken, page, told
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire import CommitOutput
from omnigraph_core.server.wire_history import CommitListOutput

router = APIRouter(tags=["commits"])


@router.get(
    "/commits",
    operation_id="listCommits",
    summary="The commits of a branch, newest first",
    responses={200: {"model": CommitListOutput}, **errors(400, 404)},
)
async def list_commits(
    graph: Graph,
    branch: str | None = None,
    limit: Limit = None,
    page_token: PageToken = None,
) -> Response:
    def listed() -> dict[str, object]:
        # One more than asked for tells whether there is another page.
        most = None if limit is None or page_token is not None else limit + 1
        commits = graph.graph.list_commits(branch, limit=most)
        shown, token = page(commits, lambda commit: commit.graph_commit_id, limit, page_token)
        return {"commits": [commit.to_json() for commit in shown], **told(token)}

    return answer(await reading(listed))


@router.get(
    "/commits/{commit_id}",
    operation_id="getCommit",
    summary="One commit",
    responses={200: {"model": CommitOutput}, 304: {"description": "As it was."}, **errors(404)},
)
async def get_commit(request: Request, graph: Graph, commit_id: str) -> Response:
    found = await reading(lambda: graph.graph.get_commit(commit_id))
    known = found.graph_commit_id
    return not_modified(request, known) or answer(found.to_json(), commit_id=known)
