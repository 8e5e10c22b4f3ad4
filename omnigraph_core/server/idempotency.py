"""Writes that may be repeated: a request under an `Idempotency-Key` is done once.

A key belongs to one actor of one graph. Rows are remembered by the graph itself; of other writes
the answer is kept for a day, and of jobs what was asked for. A repeat gets the first answer,
another request under the same key is refused. What failed is not kept: the repeat tries anew.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from omnigraph_core.errors import ConflictError, StorageError
from omnigraph_core.server.spool import Claim, digest_of, keep, spool_of, try_read
from omnigraph_core.write.commit import check_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from starlette.requests import Request

    from omnigraph_core.server.graphs import Served

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_KEPT_HEADERS: Final = ("content-type", "etag", "location", "preference-applied")
_TELLING_HEADERS: Final = ("prefer", "omnigraph-if-graph-commit")
"""What belongs to a request beside its address and body."""
_LOG: Final = logging.getLogger("omnigraph.server")


def key_of(request: Request) -> str | None:
    """The key a request came with.

    Raises:
        ConfigError: no such key can be.
    """
    return check_key(request.headers.get(HEADER))


@contextmanager
def own_key(graph: Served, key: str | None) -> Iterator[str | None]:
    """A key as the graph is to keep it: not the same for two actors.

    What the graph says of it within the block is said of the key that was given.
    """
    actor = graph.graph.actor
    if key is None or actor is None:
        yield key
        return
    own = digest_of(actor, key)
    try:
        yield own
    except ConflictError as problem:
        problem.message = problem.message.replace(own, key)
        raise


async def once(
    request: Request,
    graph: Served,
    call: Callable[[], Awaitable[Response]],
    *,
    digest: str | None = None,
) -> Response:
    """The answer of `call`; of a repeat under the same key, the answer of the first request.

    A job is not kept here: whether it is to be begun again is for the jobs to say.

    Args:
        digest: tells the request from others, if its body is not at hand.

    Raises:
        ConfigError: no such key can be.
        ConflictError: the key stands for another request, or the first one is still under way.
        StorageError: there is no room to keep anything; nothing was done.
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
        told = await _digest(request) if digest is None else digest
        return await _answer(place / f"{name}.json", key, told, call)
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
    if kept is not None and kept["digest"] != digest:
        raise ConflictError(
            f"the idempotency key `{key}` was used for another request",
            hint="choose a new key for a new request",
        )
    if kept is not None and "body" in kept:
        headers = {**kept["headers"], REPLAYED: "true"}
        return Response(base64.b64decode(kept["body"]), status_code=kept["status"], headers=headers)
    return await _first_answer(path, digest, call, is_begun=kept is not None)


async def _first_answer(
    path: Path, digest: str, call: Callable[[], Awaitable[Response]], *, is_begun: bool
) -> Response:
    """The answer, kept if it is one of success."""
    if not is_begun:
        keep(path, {"digest": digest})  # where there is no room nothing is done
    is_done = False
    try:
        response = await call()
        is_done = response.status_code < 300
    finally:
        if not is_done and not is_begun:
            path.unlink(missing_ok=True)
    if is_done and response.status_code != 202:
        try:
            keep(path, {"digest": digest, **_document(response)})
        except StorageError as problem:  # what was done is told all the same
            _LOG.warning("an answer cannot be kept for its repeat: %s", problem.message)
    return response


def _document(response: Response) -> dict[str, object]:
    headers = response.headers
    return {
        "status": response.status_code,
        "headers": {name: headers[name] for name in _KEPT_HEADERS if name in headers},
        "body": base64.b64encode(response.body).decode(),
    }
