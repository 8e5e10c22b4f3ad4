"""A server that answers what a test tells it, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `held` makes it wait; `cut` ends the connection in the middle of the body."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    held: threading.Event | None = None
    is_cut: bool = False


def document(status: int = 200, headers: Mapping[str, str] | None = None, **members: Any) -> Reply:
    told = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, json.dumps(members).encode(), told)


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Script:
    """Answers in order; the last one is given again and again."""

    replies: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when a client left while its answer was held."""
    url: str = ""

    def next(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def scripted(*replies: Reply) -> Iterator[Script]:
    script = Script(list(replies))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            body = self.rfile.read(length) if length else b""
            asked = Asked(self.command, self.path, dict(self.headers.items()), body)
            script.asked.append(asked)
            reply = script.next()
            if reply.held is not None and not self.waits(reply.held):
                script.gone.set()
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.is_cut else reply.body)
            self.close_connection = reply.is_cut

        def waits(self, held: threading.Event) -> bool:
            """Whether the client is still there when the answer may go."""
            self.connection.settimeout(0.05)
            while not held.is_set():
                try:
                    if self.connection.recv(1) == b"":
                        return False
                except TimeoutError:
                    continue
            return True

        do_GET = do_POST = do_DELETE = do_HEAD = answer

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
