"""What differs: between two states, by one commit, and by everything after a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from omnigraph_core.diff.feed import MOST_CHANGES, MOST_COMMITS
from omnigraph_core.diff.model import ChangeFilter, ChangeOp
from omnigraph_core.errors import ConfigError
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.server.access import Graph
from omnigraph_core.server.answers import JSON, NDJSON, answer, stream, wants_lines
from omnigraph_core.server.errors import errors
from omnigraph_core.server.streaming import diff_document, diff_lines
from omnigraph_core.server.threads import reading
from omnigraph_core.server.wire_changes import (
    ChangePageOutput,
    ChangeSetOutput,
    CursorOutput,
    DiffRequest,
    target_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from omnigraph_core.engine.diffs import OpenDiff
    from omnigraph_core.engine.omnigraph import Omnigraph

router = APIRouter(tags=["changes"])

KindParameter = Annotated[
    list[EntityKind] | None, Query(alias="kind", description="Only `node`, or only `edge`.")
]
TypeParameter = Annotated[
    list[str] | None, Query(alias="type", description="Only rows of these types.")
]
OpParameter = Annotated[
    list[ChangeOp] | None, Query(alias="op", description="Only these kinds of change.")
]
ValuesParameter = Annotated[bool, Query(description="Rows before and after each change.")]
BranchParameter = Annotated[str, Query(description="The branch to follow.")]

_LINES: Final = NDJSON.partition(";")[0]
_CHANGE_SET: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": ChangeSetOutput,
        "content": {_LINES: {"schema": {"type": "string"}}},
        "description": "As lines of JSON: first all but the changes, then a line for each.",
    }
}


@router.post(
    "/branches/diff",
    operation_id="diffBranches",
    summary="What has to change for `from` to be as `to` is",
    responses=_CHANGE_SET,
)
async def diff_branches(request: Request, graph: Graph, body: DiffRequest) -> Response:
    source, target = target_of(body.source), target_of(body.to)
    wanted = _filter(body.kinds, body.type_names, body.ops)
    return await _respond(
        request,
        lambda: graph.graph.open_diff(source, target, wanted),
        has_values=body.values is not False,
        limit=body.limit,
    )


@router.get(
    "/commits/{commit_id}/changes",
    operation_id="getCommitChanges",
    summary="What a commit changed on its branch",
    responses=_CHANGE_SET,
)
async def get_commit_changes(
    request: Request,
    graph: Graph,
    commit_id: str,
    kinds: KindParameter = None,
    types: TypeParameter = None,
    ops: OpParameter = None,
    values: ValuesParameter = True,
    limit: Annotated[
        int | None, Query(ge=0, le=2**53, description="Changes that are listed.")
    ] = None,
) -> Response:
    wanted = _filter(kinds, types, ops)
    return await _respond(
        request,
        lambda: graph.graph.open_commit_changes(commit_id, wanted),
        has_values=values,
        limit=limit,
    )


@router.get(
    "/changes",
    operation_id="pollChanges",
    summary="What was committed after a cursor",
    description="Without a cursor nothing is listed but the cursor of now; `start` begins "
    "elsewhere: `beginning`, or `after:` and a commit id.",
    responses={200: {"model": ChangePageOutput}, **errors(410)},
)
async def poll_changes(
    graph: Graph,
    cursor: Annotated[str | None, Query(description="Where to go on.")] = None,
    branch: BranchParameter = MAIN,
    kinds: KindParameter = None,
    types: TypeParameter = None,
    ops: OpParameter = None,
    values: ValuesParameter = True,
    max_commits: Annotated[
        int, Query(ge=1, le=10_000, description="Commits to go through.")
    ] = MOST_COMMITS,
    max_changes: Annotated[
        int, Query(ge=1, le=100_000, description="Changes to give, or those of one commit.")
    ] = MOST_CHANGES,
    start: Annotated[
        str | None, Query(description="`now`, `beginning` or `after:COMMIT`, without a cursor.")
    ] = None,
) -> Response:
    wanted = _filter(kinds, types, ops)

    def poll() -> dict[str, object]:
        page = graph.graph.poll(
            _start(graph.graph, start, branch, wanted) if cursor is None else cursor,
            branch=branch,
            filter=wanted,
            has_values=values,
            most_commits=max_commits,
            most_changes=max_changes,
        )
        return page.to_json(has_values=values)

    if cursor is not None and start is not None:
        raise ConfigError("`cursor` and `start` exclude each other")
    return answer({"uri": graph.uri, "branch": branch, **await reading(poll)})


@router.get(
    "/changes/cursor",
    operation_id="getChangeCursor",
    summary="The cursor of whoever has read a branch",
    responses={200: {"model": CursorOutput}},
)
async def get_change_cursor(
    graph: Graph,
    commit: Annotated[
        str | None, Query(description="The commit it was read at; its head without one.")
    ] = None,
    branch: BranchParameter = MAIN,
    kinds: KindParameter = None,
    types: TypeParameter = None,
    ops: OpParameter = None,
) -> Response:
    wanted = _filter(kinds, types, ops)
    found = await reading(lambda: graph.graph.cursor_at(commit, branch=branch, filter=wanted))
    return answer({"uri": graph.uri, "branch": branch, "cursor": found})


async def _respond(
    request: Request, find: Callable[[], OpenDiff], *, has_values: bool, limit: int | None
) -> Response:
    found = await reading(find)
    if wants_lines(request):
        return stream(diff_lines(found, has_values=has_values, limit=limit), NDJSON)
    return stream(diff_document(found, has_values=has_values, limit=limit), JSON)


def _filter(
    kinds: Iterable[EntityKind] | None, types: Iterable[str] | None, ops: Iterable[ChangeOp] | None
) -> ChangeFilter:
    return ChangeFilter(frozenset(kinds or ()), frozenset(types or ()), frozenset(ops or ()))


def _start(graph: Omnigraph, start: str | None, branch: str, wanted: ChangeFilter) -> str | None:
    """The cursor that a place stands for; None for now.

    Raises:
        ConfigError: there is no such place.
    """
    if start in (None, "now"):
        return None
    if start == "beginning":
        first = graph.list_commits(branch)[-1]
        return graph.cursor_at(first.graph_commit_id, branch=branch, filter=wanted)
    kind, _, commit_id = (start or "").partition(":")
    if kind != "after" or not commit_id:
        raise ConfigError(
            f"no feed starts at {start!r}", hint="give now, beginning or after:COMMIT"
        )
    return graph.cursor_at(commit_id, branch=branch, filter=wanted)
