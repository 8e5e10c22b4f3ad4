"""Blobs: the bytes of one property, whole or a range of them."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, StreamingResponse

from omnigraph_core.errors import BlobElsewhere, BlobIsNull
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.server.access import Graph
from omnigraph_core.server.errors import errors
from omnigraph_core.server.spool import digest_of
from omnigraph_core.server.targets import which
from omnigraph_core.server.threads import reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.storage.blobs import BlobReader

router = APIRouter(tags=["blobs"])

TypeParameter = Annotated[str, Query(description="The type of the row: Article, edge:Cites.")]
IdParameter = Annotated[str, Query(description="The id of the row.")]
PropertyParameter = Annotated[str, Query(description="A property of type Blob.")]
BranchParameter = Annotated[str | None, Query(description="The branch; main by default.")]
SnapshotParameter = Annotated[str | None, Query(description="A commit id, in place of a branch.")]

_PORTION: Final = 2**20
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_BYTES: Final = "application/octet-stream"
_CONTENT: Final = {_BYTES: {"schema": {"type": "string", "format": "binary"}}}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The bytes.", "content": _CONTENT},
    206: {"description": "A range of them.", "content": _CONTENT},
    302: {"description": "They are kept elsewhere: where, in `Location`."},
    304: {"description": "The client has them."},
    **errors(416),
}


@router.get(
    "/blob",
    operation_id="getBlob",
    summary="The bytes of a blob",
    responses=_RESPONSES,
    response_class=Response,
)
async def get_blob(
    request: Request,
    graph: Graph,
    type: TypeParameter,
    id: IdParameter,
    property: PropertyParameter,
    branch: BranchParameter = None,
    snapshot: SnapshotParameter = None,
) -> Response:
    target = which(branch, snapshot).read_target
    return await _respond(request, graph, target, (type, id, property))


@router.head(
    "/blob",
    operation_id="headBlob",
    summary="How long a blob is",
    responses=_RESPONSES,
    response_class=Response,
)
async def head_blob(
    request: Request,
    graph: Graph,
    type: TypeParameter,
    id: IdParameter,
    property: PropertyParameter,
    branch: BranchParameter = None,
    snapshot: SnapshotParameter = None,
) -> Response:
    target = which(branch, snapshot).read_target
    return await _respond(request, graph, target, (type, id, property))


@dataclass(frozen=True, slots=True)
class _Found:
    """A blob, and a text that stands for its very bytes."""

    tag: str
    reader: BlobReader | None = None
    uri: str | None = None


async def _respond(
    request: Request, graph: Served, target: ReadTarget, named: tuple[str, str, str]
) -> Response:
    found = await reading(lambda: _find(graph, target, *named))
    if found.uri is not None:
        return _elsewhere(found.uri)
    if found.reader is None:
        raise BlobIsNull(f"`{named[2]}` of {named[0]} {named[1]!r} is null")
    with ExitStack() as unless_sent:
        unless_sent.callback(found.reader.close)
        response = _answer(request, found.tag, found.reader)
        if isinstance(response, StreamingResponse):
            unless_sent.pop_all()  # closed behind the last portion
        return response


def _find(graph: Served, target: ReadTarget, type: str, id: str, property: str) -> _Found:
    # One snapshot for both: the tag must not be that of other bytes.
    snapshot = graph.graph.snapshot_of(target)
    at = ReadTarget(snapshot_id=snapshot.commit.graph_commit_id)
    blob = graph.graph.open_blob(type, id, property, target=at)
    return _Found(_tag(snapshot, type, id, property), blob.reader, blob.uri)


def _tag(snapshot: Snapshot, type: str, id: str, property: str) -> str:
    """The same as long as the table is: no other commit makes clients fetch the bytes again."""
    bare = type.rpartition(":")[2]
    entry = snapshot.tables.get(f"node:{bare}") or snapshot.tables.get(f"edge:{bare}")
    if entry is None or ":" in type:
        entry = snapshot.tables.get(type, entry)
    version = (
        snapshot.commit.graph_commit_id
        if entry is None
        else f"{entry.location} {entry.physical_version}"
    )
    return f'"{digest_of(version, type, id, property)}"'


def _elsewhere(uri: str) -> Response:
    if not uri.lower().startswith(("http://", "https://")):
        raise BlobElsewhere(uri)
    return RedirectResponse(uri, 302)


def _answer(request: Request, tag: str, reader: BlobReader) -> Response:
    headers = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    known = [item.strip() for item in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    chosen = _range(request, tag, reader.size)
    start, end = chosen or (0, reader.size)
    if chosen is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{reader.size}"
    headers["Content-Length"] = str(end - start)
    status = 200 if chosen is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=_BYTES)
    return StreamingResponse(_portions(reader, start, end), status, headers, _BYTES)


def _range(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """The bytes that are asked for; None for all, and for what is not understood.

    Raises:
        HTTPException: 416, there are no such bytes.
    """
    asked = _RANGE.fullmatch(request.headers.get("range", "").replace(" ", ""))
    if asked is None or asked.group(0) == "bytes=-":
        return None
    if request.headers.get("if-range", tag) != tag:
        return None
    first, last = asked.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return None  # not a range at all
    if start >= end:
        raise HTTPException(
            416,
            f"the blob has {size} bytes, none of them in that range",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end


async def _portions(reader: BlobReader, start: int, end: int) -> AsyncIterator[bytes]:
    try:
        while start < end:
            length = min(_PORTION, end - start)
            yield await reading(lambda at=start, length=length: reader.read_range(at, length))  # type: ignore[misc]
            start += length
    finally:
        reader.close()
