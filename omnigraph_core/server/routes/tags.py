"""Tags: names for commits that cleanup spares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from omnigraph_core.manifest.image import MAIN
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import once
from omnigraph_core.server.paging import Limit, PageToken, page_by_name, told
from omnigraph_core.server.threads import reading, writing
from omnigraph_core.server.wire_changes import (
    TagDeleteOutput,
    TagListOutput,
    TagOutput,
    TagRequest,
    target_of,
)

if TYPE_CHECKING:
    from omnigraph_core.history.refs import Tag

router = APIRouter(tags=["tags"])


@router.get(
    "/tags",
    operation_id="listTags",
    summary="All tags by name",
    responses={200: {"model": TagListOutput}},
)
async def list_tags(graph: Graph, limit: Limit = None, page_token: PageToken = None) -> Response:
    tags = sorted(await reading(graph.graph.tag_list), key=_name)
    shown, token = page_by_name(tags, _name, limit, page_token)
    return answer({"tags": [tag_document(tag) for tag in shown], **told(token)})


@router.post(
    "/tags",
    operation_id="createTag",
    summary="Name a commit",
    responses={200: {"model": TagOutput}, **errors(409)},
)
async def create_tag(request: Request, graph: Graph, body: TagRequest) -> Response:
    target = target_of(MAIN if body.target is None else body.target)

    async def respond() -> Response:
        tag = await writing(lambda: graph.graph.tag_create(body.name, target))
        return answer({"uri": graph.uri, **tag_document(tag)})

    return await once(request, graph, respond)


@router.delete(
    "/tags/{name:path}",
    operation_id="deleteTag",
    summary="Remove a tag",
    responses={200: {"model": TagDeleteOutput}, **errors(409)},
)
async def delete_tag(request: Request, graph: Graph, name: str) -> Response:
    async def respond() -> Response:
        await writing(lambda: graph.graph.tag_delete(name))
        return answer({"uri": graph.uri, "name": name.strip()})

    return await once(request, graph, respond)


def _name(tag: Tag) -> str:
    return tag.tag


def tag_document(tag: Tag) -> dict[str, object]:
    return {
        "name": tag.tag,
        "commit_id": tag.commit_id,
        "branch": tag.branch,
        "incarnation": tag.incarnation,
        "manifest_version": tag.manifest_version,
        "created_at": tag.created_at,
        "actor_id": tag.actor,
    }
