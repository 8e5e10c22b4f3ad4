"""A local service that speaks the embedding protocols of OpenAI and Gemini.

It answers with vectors made from the texts, or with whatever replies were queued for it, and
remembers every request.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from omnigraph_core.embedding import limits
from tests.support.provider_batches import (
    SCALE,
    Call,
    ProviderBatches,
    Reply,
    is_batch_path,
    long_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["SCALE", "EmbeddingServer", "Reply", "Request", "right_body"]


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def texts(self) -> list[str]:
        """Of either protocol."""
        if "input" in self.body:
            return list(self.body["input"])
        return [request["content"]["parts"][0]["text"] for request in self.body["requests"]]


class EmbeddingServer:
    """Listens while it is entered; `gate` requests must be under way before any is answered.

    With `per_minute` it answers 429 to whatever comes after so many requests within 60 seconds.
    """

    def __init__(self, *, gate: int = 1, per_minute: int | None = None) -> None:
        self.requests: list[Request] = []
        self.arrivals: list[float] = []
        """When each request came, in seconds of a monotonic clock."""
        self.answered: list[str] = []
        """The texts whose vectors were sent whole."""
        self.throttled = 0
        self.peak = 0
        self._per_minute = per_minute
        self._counted: deque[float] = deque()
        self._gate = gate
        self._under_way = 0
        self._replies: deque[Reply | None] = deque()
        self._change = threading.Condition()
        self._closing = threading.Event()
        self.batches = ProviderBatches(lambda: self.url)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self) -> EmbeddingServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self.batches.release()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        # Another server may get the port, and must not be waited for because of this one.
        for key in [key for key in limits._shared if key[0] == self.url]:
            del limits._shared[key]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        """Every text that was asked for, in order of arrival."""
        return [text for request in self.requests for text in request.texts]

    def queue(self, *replies: Reply | None) -> None:
        """Answer the next requests like this; None is the right answer."""
        self._replies.extend(replies)

    def release(self) -> None:
        """Answer whatever is withheld."""
        self._closing.set()

    def answer(self, request: Request) -> Reply:
        with self._change:
            self.requests.append(request)
            self.arrivals.append(time.monotonic())
            reply = self._replies.popleft() if self._replies else self._throttle()
            self._under_way += 1
            self.peak = max(self.peak, self._under_way)
            self._change.notify_all()
            self._change.wait_for(lambda: self.peak >= self._gate, timeout=120)
        if reply is not None and reply.is_withheld and self._closing.wait(timeout=120):
            reply = None
        with self._change:
            self._under_way -= 1
        return reply or Reply(body=right_body(request))

    def _throttle(self) -> Reply | None:
        """What is answered to a request beyond the limit."""
        now = self.arrivals[-1]
        while self._counted and self._counted[0] <= now - 60:
            self._counted.popleft()
        if self._per_minute is None or len(self._counted) < self._per_minute:
            self._counted.append(now)
            return None
        self.throttled += 1
        return Reply(status=429, headers={"retry-after": "1"}, body={"error": {"message": "slow"}})


def right_body(request: Request) -> dict[str, object]:
    """What the provider would send."""
    if "input" in request.body:
        vectors = long_vectors(request.texts, request.body["dimensions"])
        items = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        return {"object": "list", "data": items, "model": request.body["model"]}
    dimension = request.body["requests"][0]["outputDimensionality"]
    return {"embeddings": [{"values": v} for v in long_vectors(request.texts, dimension)]}


def _handler(server: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._batch_call(b"")

        def do_DELETE(self) -> None:
            self._batch_call(b"")

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if is_batch_path(self.path):
                self._batch_call(content)
                return
            request = Request(self.path, headers, json.loads(content))
            reply = server.answer(request)
            try:
                self._send(reply)
                if reply.status == 200 and not reply.is_withheld:
                    server.answered += request.texts
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client did not wait

        def _batch_call(self, content: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.batches.answer(Call(self.command, self.path, headers, content))
            try:
                self._send(reply)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client was killed

        def _send(self, reply: Reply) -> None:
            body = reply.body
            if isinstance(body, str):
                body = body.encode()
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Tests read `requests` instead."""

    return Handler
