"""A server that tells where the time of a read goes: the real one, with a clock at each stage.

The stages of the last requests are answered at a path of their own. What is in between two of them
is named after what happens there.
"""

from __future__ import annotations

import argparse
import contextvars
import json
import socket
import time
from collections import deque
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.middleware import Middleware

from omnigraph_core.engine.rights import Rights
from omnigraph_core.server import reads
from omnigraph_core.server.app import create_app
from omnigraph_core.server.logs import configure_logging
from omnigraph_core.server.options import ServerOptions
from omnigraph_core.server.routes import queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH: Final = "/stages"
MIDDLEWARE: Final = "request id, token, limits"
ROUTING: Final = "routing, body, its model"
TO_THREAD: Final = "to a thread"
POLICY: Final = "policy"
ENGINE: Final = "engine"
ENCODING: Final = "rows to JSON"
FROM_THREAD: Final = "back from the thread"
SENDING: Final = "headers, sending"
AFTERWARDS: Final = "log and figures, after sending"
STAGES: Final = (
    MIDDLEWARE, ROUTING, TO_THREAD, POLICY, ENGINE, ENCODING, FROM_THREAD, SENDING, AFTERWARDS,
)  # fmt: skip
_MOST: Final = 10_000

_stamps: contextvars.ContextVar[dict[str, float]] = contextvars.ContextVar("stamps")


class Outermost:
    """Sees a request first and its answer last."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._seen: deque[dict[str, float]] = deque(maxlen=_MOST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == PATH:
            await self._tell(send)
        else:
            await self._watch(scope, receive, send)

    async def _watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        stamps = {"began": time.perf_counter()}
        _stamps.set(stamps)

        async def sending(message: Message) -> None:
            await send(message)
            stamps["sent"] = time.perf_counter()

        await self._app(scope, receive, sending)
        stamps["ended"] = time.perf_counter()
        if "read_ended" in stamps:
            self._seen.append(stages_of(stamps))

    async def _tell(self, send: Send) -> None:
        body = json.dumps(list(self._seen)).encode()
        self._seen.clear()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Innermost:
    """What stands between all other layers and the routes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            _stamp("routed")
        await self._app(scope, receive, send)


def stages_of(stamps: dict[str, float]) -> dict[str, float]:
    """Milliseconds of each stage of one read."""

    def between(first: str, last: str) -> float:
        return (stamps[last] - stamps[first]) * 1_000

    engine, policy = stamps["engine"] * 1_000, stamps["policy"] * 1_000
    return {
        MIDDLEWARE: between("began", "routed"),
        ROUTING: between("routed", "respond_began"),
        TO_THREAD: between("respond_began", "run_began"),
        POLICY: policy,
        ENGINE: engine - policy,
        ENCODING: between("run_began", "run_ended") - engine,
        FROM_THREAD: between("run_ended", "read_ended"),
        SENDING: between("read_ended", "sent"),
        AFTERWARDS: between("sent", "ended"),
    }


def install() -> None:
    """Put clocks into the stages of this process."""
    queries.respond = _clocked_respond(reads.respond)  # type: ignore[attr-defined]
    reads._run = _clocked_run(reads._run)
    Rights.demand = _clocked_demand(Rights.demand)  # type: ignore[method-assign]


def _clocked_respond(respond: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(respond)
    async def clocked(*arguments: Any) -> Any:
        _stamp("respond_began")
        response = await respond(*arguments)
        _stamp("read_ended")
        return response

    return clocked


def _clocked_run(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def clocked(*arguments: Any) -> Any:
        _stamp("run_began")
        made = run(*arguments)
        _stamps.get()["engine"] = made.engine_seconds
        _stamp("run_ended")
        return made

    return clocked


def _clocked_demand(demand: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(demand)
    def clocked(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        allowed = demand(*arguments, **named)
        _stamps.get()["policy"] = time.perf_counter() - began
        return allowed

    return clocked


def _stamp(name: str) -> None:
    _stamps.get()[name] = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    configure_logging("text")
    install()
    app = create_app(ServerOptions(config=parser.parse_args().config))
    app.user_middleware.append(Middleware(Innermost))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            Outermost(app), log_config=None, access_log=False, ws="none", http="httptools"
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
