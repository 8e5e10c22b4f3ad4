"""What an endpoint gets with a request: who calls, and the graph that is meant.

The middleware has looked at the token before any body was read; a request without a good one is
refused here, where it is known that the path exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, cast

from fastapi import Depends, Request

from omnigraph_core.server.graphs import Served

if TYPE_CHECKING:
    from omnigraph_core.errors import Unauthenticated
    from omnigraph_core.server.serving import Serving

IF_COMMIT: Final = "omnigraph-if-graph-commit"


def serving_of(request: Request) -> Serving:
    """What the server as a whole has: graphs, tokens, configuration."""
    return cast("Serving", request.app.state.serving)


def actor_of(request: Request) -> str | None:
    """Who calls; None on a server without tokens.

    Raises:
        Unauthenticated: the request carries no good token.
    """
    state = request.scope["state"]
    refusal: Unauthenticated | None = state.get("refusal")
    if refusal is not None:
        raise refusal
    return cast("str | None", state.get("actor"))


async def caller(request: Request) -> str | None:
    return actor_of(request)


async def served(request: Request) -> Served:
    """The graph a request is about, acting as whoever calls.

    Raises:
        Unauthenticated: the request carries no good token.
        GraphNotFound: there is no such graph here.
        StorageError: it cannot be opened, or not in time.
    """
    actor = actor_of(request)
    graph_id = cast("str | None", request.scope["state"].get("graph_id"))
    graphs = serving_of(request).graphs
    found = graphs.try_served(graph_id, actor)
    return await graphs.served(graph_id, actor) if found is None else found


async def known_graph(request: Request) -> None:
    """For what is open to everybody: below the name of a graph it is not, as that would tell which
    graphs there are.

    Raises:
        Unauthenticated: a graph is named, and the request carries no good token.
        GraphNotFound: there is no such graph here.
    """
    graph_id = cast("str | None", request.scope["state"].get("graph_id"))
    if graph_id is not None:
        actor_of(request)
        serving_of(request).graphs.check(graph_id)


def if_commit(request: Request) -> str | None:
    """The commit that must be the head of the branch a request writes to."""
    return request.headers.get(IF_COMMIT) or None


Graph = Annotated[Served, Depends(served)]
Caller = Annotated[str | None, Depends(caller)]
