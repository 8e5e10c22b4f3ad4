"""Stored queries: which there are, and running one by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Header, Request, Response

from omnigraph_core.errors import ConfigError, NotFoundError, PolicyDenied
from omnigraph_core.manifest.image import MAIN
from omnigraph_core.manifest.names import is_internal
from omnigraph_core.policy.model import Action
from omnigraph_core.server.access import Graph, if_commit
from omnigraph_core.server.answers import ARROW, answer
from omnigraph_core.server.errors import errors
from omnigraph_core.server.idempotency import key_of, own_key
from omnigraph_core.server.reads import Asked, respond
from omnigraph_core.server.stored_queries import stored_queries_of
from omnigraph_core.server.targets import which
from omnigraph_core.server.threads import reading, writing
from omnigraph_core.server.wire import ChangeOutput, ReadOutput
from omnigraph_core.server.wire_upkeep import InvokeRequest, StoredQueryListOutput

if TYPE_CHECKING:
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.server.stored_queries import StoredQueries, StoredQuery

router = APIRouter(tags=["queries"])

_TEXT: Final = {"schema": {"type": "string"}}
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": ReadOutput | ChangeOutput,
        "content": {"application/x-ndjson": _TEXT, ARROW: _BINARY},
    },
    **errors(409, 412),
}


@router.get(
    "/queries",
    operation_id="listQueries",
    summary="Stored queries by name",
    responses={200: {"model": StoredQueryListOutput}},
)
async def list_queries(request: Request, graph: Graph) -> Response:
    rights = graph.graph.rights
    is_allowed = rights.allows(Action.INVOKE_QUERY)
    queries = (await _newest(request)).all() if is_allowed else ()
    return answer({"queries": [query.to_json() for query in queries]})


@router.post(
    "/queries/{name}",
    operation_id="invokeQuery",
    summary="Run a stored query",
    responses=_RESPONSES,
)
async def invoke_query(
    request: Request, graph: Graph, name: str, body: InvokeRequest | None = None
) -> Response:
    return await _invoke(request, graph, name, body or InvokeRequest())


@router.post(
    "/queries/{name}/if-graph-commit",
    operation_id="invokeQueryIfGraphCommit",
    summary="Run a stored mutation if a commit is the head of the branch",
    responses=_RESPONSES,
)
async def invoke_query_if(
    request: Request,
    graph: Graph,
    name: str,
    omnigraph_if_graph_commit: Annotated[str, Header(min_length=1)],
    body: InvokeRequest | None = None,
) -> Response:
    given = body or InvokeRequest()
    return await _invoke(request, graph, name, given, is_conditional=True)


async def _invoke(
    request: Request, graph: Served, name: str, body: InvokeRequest, *, is_conditional: bool = False
) -> Response:
    stored = (await _newest(request)).get(name)
    # Asked even if there is none: who may not run any is not to learn it from the time it takes.
    if not await _is_allowed(graph, body) or stored is None:
        raise NotFoundError(f"no stored query `{name}`")
    expected = body.expect_mutation
    if expected is not None and expected is not stored.is_mutation:
        does = "changes" if stored.is_mutation else "does not change"
        raise ConfigError(f"query `{name}` {does} the graph, which is not what is expected")
    if stored.is_mutation:
        return await _mutate(request, graph, stored, body)
    if is_conditional:
        raise ConfigError(f"query `{name}` only reads: no head can be demanded for it")
    place = which(body.branch, body.snapshot)
    return await respond(request, graph, Asked(place, stored.text, stored.name, body.params))


async def _newest(request: Request) -> StoredQueries:
    """The stored queries as they are; to look for them may take a while."""
    found = stored_queries_of(request)
    if found.is_due:
        await reading(found.look)
    return found


async def _is_allowed(graph: Served, body: InvokeRequest) -> bool:
    """Whether stored queries may be run where they are asked for. To those who may not there are
    none."""
    rights = graph.graph.rights
    if body.snapshot is None or graph.judge is None:
        branch = MAIN if body.branch is None else body.branch
        if is_internal(branch):  # whose it is has to be looked up
            return await reading(lambda: rights.allows(Action.INVOKE_QUERY, branch=branch))
        return rights.allows(Action.INVOKE_QUERY, branch=branch)
    try:
        place = which(body.branch, body.snapshot).read_target
        found = (await reading(lambda: graph.graph.snapshot_of(place))).branch
    except (ConfigError, NotFoundError, PolicyDenied):
        # What is wrong with it is told only to those who may run queries anywhere.
        if rights.allows(Action.INVOKE_QUERY):
            raise
        return False
    return await reading(lambda: rights.allows(Action.INVOKE_QUERY, branch=found))


async def _mutate(
    request: Request, graph: Served, stored: StoredQuery, body: InvokeRequest
) -> Response:
    if body.snapshot is not None:
        raise ConfigError(f"query `{stored.name}` changes the graph: name a branch, no snapshot")
    head = if_commit(request)
    branch = MAIN if body.branch is None else body.branch
    with own_key(graph, key_of(request)) as key:
        result = await writing(
            lambda: graph.graph.mutate(
                stored.text,
                body.params,
                name=stored.name,
                branch=branch,
                if_commit=head,
                idempotency_key=key,
            ),
            turn=(graph.id, branch.strip()),
        )
    commit = None if result.commit is None else result.commit.to_json()
    return answer({**result.to_json(), "commit": commit})
