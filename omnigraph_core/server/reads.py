"""Reads over HTTP: a query comes in, its rows go out as JSON, lines or Arrow.

Rows go from Arrow to text without a Python object each. A short answer is made on the thread that
ran the query; a long one is made and sent piece by piece. A client that goes stops its query.
"""

from __future__ import annotations

import asyncio
import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa

from omnigraph_core.exec.guard import Cancellation
from omnigraph_core.exec.json_rows import content, plain_objects
from omnigraph_core.server.answers import (
    ARROW,
    NDJSON,
    accepts,
    answer_bytes,
    compact,
    disconnected,
    stream,
    wants_lines,
)
from omnigraph_core.server.few_rows import try_few_rows
from omnigraph_core.server.threads import begin_reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.exec.result import QueryResult
    from omnigraph_core.server.graphs import Served
    from omnigraph_core.server.targets import Which

COLUMNS: Final = b"omnigraph.columns"
"""The key of an Arrow schema under which the columns are described."""

_PIECE_BYTES: Final = 1 << 20
"""Bytes up to which an answer is made in one piece, and of the pieces of a longer one: about."""
_PIECE_ROWS: Final = 8_192
_PATIENCE: Final = 0.02
"""Seconds before it is worth looking whether the client is still there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A read as somebody asked for it."""

    which: Which
    source: str
    name: str | None = None
    params: Mapping[str, Any] | None = None
    timeout: float | None = None
    memory: int | None = None
    max_age: float | None = None

    def run(self, graph: Omnigraph, cancellation: Cancellation) -> QueryResult:
        return graph.query(
            self.which.target(graph),
            self.source,
            self.name,
            self.params,
            timeout=self.timeout,
            memory=self.memory,
            cancellation=cancellation,
            max_age=self.max_age,
        )


async def respond(request: Request, graph: Served, asked: Asked) -> Response:
    """Run a read and answer in the form the client wants: JSON unless it names another one."""
    form = _form(request)
    made = await cancellable(request, lambda token: _run(graph.graph, asked, token, form))
    request.app.state.metrics.read(made.engine_seconds)
    if made.body is not None:
        return answer_bytes(made.body, headers=made.headers)
    return stream(made.chunks, made.media_type, made.headers)


async def cancellable(request: Request, call: Callable[[Cancellation], Any]) -> Any:
    """What a call returns, which is told to stop when the client has gone.

    Raises:
        QueryCancelled: it has gone.
    """
    token = Cancellation()
    work = begin_reading(lambda: call(token))
    try:
        await asyncio.wait((work,), timeout=_PATIENCE)
        if not work.done():
            await _watch(request, work)
        if not work.done():
            token.cancel()
        return await work
    finally:
        token.cancel()  # if the server itself gives up


async def _watch(request: Request, work: asyncio.Future[Any]) -> None:
    """Wait for the work, or for the client to go."""
    gone = asyncio.ensure_future(disconnected(request.receive))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()


@dataclass(frozen=True, slots=True)
class _Made:
    """An answer: all of it, or its pieces."""

    engine_seconds: float
    headers: dict[str, str]
    media_type: str
    chunks: Iterator[bytes]
    body: bytes | None = None


def _form(request: Request) -> str:
    if "accept" not in request.headers:
        return "json"
    if accepts(request, ARROW):
        return "arrow"
    return "ndjson" if wants_lines(request) else "json"


def _run(graph: Omnigraph, asked: Asked, token: Cancellation, form: str) -> _Made:
    began = time.perf_counter()
    result = asked.run(graph, token)
    engine = time.perf_counter() - began
    headers = {"Server-Timing": f"engine;dur={engine * 1000:.3f}", **_facts_in_headers(result)}
    if form == "arrow":
        return _Made(engine, headers, ARROW, _arrow(result))
    if form == "ndjson":
        return _Made(engine, headers, NDJSON, _lines(result, asked.which))
    chunks = _json(result, asked.which)
    if result.num_rows * _row_bytes(result) > _PIECE_BYTES:
        return _Made(engine, headers, "application/json", chunks)
    return _Made(engine, headers, "application/json", chunks, b"".join(chunks))


def _facts_in_headers(result: QueryResult) -> dict[str, str]:
    """What an answer that is only rows cannot say. Names are percent-encoded."""
    snapshot = result.snapshot
    return {
        "Omnigraph-Query-Name": quote(result.query_name),
        "Omnigraph-Commit": snapshot.commit.graph_commit_id,
        "Omnigraph-Branch": quote(snapshot.branch),
        "Omnigraph-Manifest-Version": str(snapshot.manifest_version),
    }


def _facts(result: QueryResult, place: Which) -> dict[str, object]:
    commit_id = result.snapshot.commit.graph_commit_id
    return {
        "query_name": result.query_name,
        "target": {
            "branch": result.snapshot.branch if place.is_head else None,
            "snapshot": None if place.is_head else commit_id,
        },
        "row_count": result.num_rows,
    }


def _versions(result: QueryResult) -> dict[str, object]:
    return {
        "graph_commit_id": result.snapshot.commit.graph_commit_id,
        "manifest_version": result.snapshot.manifest_version,
    }


def _json(result: QueryResult, place: Which) -> Iterator[bytes]:
    columns = [column.name for column in result.columns]
    named = {"columns": columns} if columns else {}
    head = compact({**_facts(result, place), **named, **_versions(result)})
    yield head[:-1] + b',"rows":['
    few = try_few_rows(result.table)
    if few is not None:
        yield few + b"]}"
        return
    before = b""
    for text in _row_texts(result, ","):
        yield before + text[:-1]
        before = b","
    yield b"]}"


def _lines(result: QueryResult, place: Which) -> Iterator[bytes]:
    head = {"kind": "metadata", **_facts(result, place), **_versions(result)}
    yield compact(head) + b"\n"
    yield from _row_texts(result, "\n")


def _row_texts(result: QueryResult, end: str) -> Iterator[bytes]:
    rows = max(1, min(_PIECE_ROWS, _PIECE_BYTES // _row_bytes(result)))
    for batch in result.to_batches(rows):
        if batch.num_rows:
            yield content(plain_objects(pa.Table.from_batches([batch]), end=end))


def _row_bytes(result: QueryResult) -> int:
    """What a row has of text, about: its values, and the names that stand in every row anew."""
    names = sum(len(column.name) for column in result.columns)
    return 1 + names + int(result.table.nbytes) // max(1, result.num_rows)


def _arrow(result: QueryResult) -> Iterator[bytes]:
    schema = result.table.schema
    described = {**(schema.metadata or {}), COLUMNS: compact(result.describe())}
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema.with_metadata(described)) as writer:
        for batch in result.to_batches():
            writer.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    """What has been written since the last time."""
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data
