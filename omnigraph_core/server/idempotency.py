"""Writes that may be repeated: a request under an `Idempotency-Key` is done once.

For those writes that the engine does not remember itself. The answer is kept for a day for each
graph, actor and key; a repeat gets it again, another request under the same key is refused. What
failed is not kept: the repeat tries anew.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from omnigraph_core.errors import ConflictError
from omnigraph_core.server.spool import Claim, digest_of, keep, spool_of, try_read
from omnigraph_core.write.commit import check_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request

    from omnigraph_core.server.graphs import Served

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_KEPT_HEADERS: Final = ("content-type", "etag", "location", "preference-applied")
_TELLING_HEADERS: Final = ("prefer", "omnigraph-if-graph-commit")
"""What belongs to a request beside its address and body."""


def key_of(request: Request) -> str | None:
    """The key a request came with.

    Raises:
        ConfigError: no such key can be.
    """
    return check_key(request.headers.get(HEADER))


async def once(
    request: Request, graph: Served, call: Callable[[], Awaitable[Response]]
) -> Response:
    """The answer of `call`; of a repeat under the same key, the answer of the first request.

    Raises:
        ConfigError: no such key can be.
        ConflictError: the key stands for another request, or the first one is still under way.
    """
    key = key_of(request)
    if key is None:
        return await call()
    spool = spool_of(request)
    spool.sweep()
    place = spool.area("keys", digest_of(graph.graph.uri))
    name = digest_of(graph.graph.actor or "", key)
    claim = Claim.try_take(place / f"{name}{Claim.SUFFIX}")
    if claim is None:
        raise _under_way(key)
    try:
        return await _answer(place / f"{name}.json", key, await _digest(request), call)
    finally:
        claim.release()


def _under_way(key: str) -> ConflictError:
    problem = ConflictError(
        f"a request with the idempotency key `{key}` is under way",
        hint="repeat it in a moment to get its answer",
    )
    problem.retryable = True
    return problem


async def _digest(request: Request) -> str:
    """What tells a request from another one."""
    told = [request.method, request.url.path, request.url.query]
    told += [request.headers.get(name, "") for name in _TELLING_HEADERS]
    whole = hashlib.sha256("\n".join(told).encode())
    whole.update(await request.body())
    return whole.hexdigest()


async def _answer(
    path: Path, key: str, digest: str, call: Callable[[], Awaitable[Response]]
) -> Response:
    kept = try_read(path)
    if kept is None:
        response = await call()
        if response.status_code < 300:
            keep(path, {"digest": digest, **_document(response)})
        return response
    if kept["digest"] != digest:
        raise ConflictError(
            f"the idempotency key `{key}` was used for another request",
            hint="choose a new key for a new request",
        )
    headers = {**kept["headers"], REPLAYED: "true"}
    return Response(base64.b64decode(kept["body"]), status_code=kept["status"], headers=headers)


def _document(response: Response) -> dict[str, object]:
    headers = response.headers
    return {
        "status": response.status_code,
        "headers": {name: headers[name] for name in _KEPT_HEADERS if name in headers},
        "body": base64.b64encode(response.body).decode(),
    }
