"""A server to talk to: a real `omnigraph-server` process, or an app on a thread of this one."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import uvicorn

from omnigraph_core.server.app import create_app
from omnigraph_core.server.options import ServerOptions
from omnigraph_core.server.protocol import Protocol
from tests.support import warm
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fastapi import FastAPI

START_SECONDS: Final = 300
"""Long enough for a machine that is busy with other tests."""
_MAIN: Final = "omnigraph_core.server.start:main"
_LISTENING: Final = re.compile(r"listening on (http://\S+?)[\"\s]")


class Client:
    """Calls a server and gives back what it answered, whatever that is."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._client = httpx2.Client(
            base_url=url, headers=self._headers, timeout=120, verify=_is_encrypted(url)
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        return self._client.request(method, path, **options)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, document: object = None, **options: Any) -> httpx2.Response:
        """A document as JSON; without one, an empty body."""
        given = {} if document is None else {"json": document}
        return self.request("POST", path, **given, **options)

    def delete(self, path: str, **options: Any) -> httpx2.Response:
        return self.request("DELETE", path, **options)

    def stream(self, method: str, path: str, **options: Any) -> Any:
        return self._client.stream(method, path, **options)

    def acting(self, token: str | None) -> Client:
        """The same server with another token."""
        return Client(self.url, token)


def _is_encrypted(url: str) -> bool:
    """Only then a client needs certificates: loading them takes longer than most requests."""
    return url.startswith("https:")


@contextmanager
def serving(
    uri: str | None = None,
    *,
    token: str | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Client]:
    """An app of this process on a free port, for a block; `env` holds while the app is made."""
    kept = dict(os.environ)
    os.environ.update(env or {})
    try:
        app = create_app(ServerOptions(uri=uri, **options))
    finally:
        restore_environment(kept)
    with on_thread(app) as url, Client(url, token) as client:
        yield client


def restore_environment(kept: Mapping[str, str]) -> None:
    """Make the environment what it was; other threads never see it without what stays."""
    for name in os.environ.keys() - kept.keys():
        del os.environ[name]
    os.environ.update(kept)


@contextmanager
def on_thread(app: FastAPI) -> Iterator[str]:
    """The URL of an app that answers while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none", http=Protocol, lifespan="on",
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(
            lambda: server.started or not thread.is_alive(), "the app", seconds=START_SECONDS
        )
        assert server.started, "the app did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(120)
        listener.close()


@dataclass(slots=True)
class ServerProcess:
    """A running `omnigraph-server`."""

    process: warm.WarmProcess | subprocess.Popen[bytes]
    url: str
    log: list[str] = field(default_factory=list)
    """Lines of its standard error so far."""

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token)

    def peak_megabytes(self, *, is_new: bool = False) -> int:
        """The most memory it has had since it began, or since a new peak was asked for."""
        place = Path("/proc", str(self.process.pid))
        if is_new:
            (place / "clear_refs").write_text("5")
        lines = (place / "status").read_text().splitlines()
        (peak,) = (line for line in lines if line.startswith("VmHWM"))
        return int(peak.split()[1]) // 1024

    def stop(self, number: int = signal.SIGTERM, timeout: float = 120) -> int:
        """Its exit status after a signal."""
        self.process.send_signal(number)
        return self.process.wait(timeout)


@contextmanager
def server_process(
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    is_bound: bool = True,
    is_cold: bool = False,
) -> Iterator[ServerProcess]:
    """A real process on a free port, ready to answer; killed at the end of the block if needed.

    Args:
        is_bound: tell it to listen on a free port; else the environment does.
        is_cold: start from nothing, as `omnigraph-server` does; several workers need it.
    """
    bind = ("--bind", "127.0.0.1:0") if is_bound and "--bind" not in arguments else ()
    given = [*map(str, arguments), *bind]
    log, their_end = os.pipe()
    start = _start_cold if is_cold else _start_warm
    process = start(given, {**os.environ, **(env or {})}, cwd or Path.cwd(), their_end)
    os.close(their_end)
    running = ServerProcess(process, "")
    reader = threading.Thread(target=_read, args=(log, running.log), daemon=True)
    reader.start()
    try:
        wait_until(lambda: _has_started(running), "the server", seconds=START_SECONDS)
        yield running
    finally:
        process.kill()
        process.wait()
        reader.join(60)


def _start_warm(
    arguments: list[str], env: Mapping[str, str], cwd: Path, stderr: int
) -> warm.WarmProcess:
    with Path(os.devnull).open("rb") as nothing:
        return warm.WarmProcess(
            _MAIN,
            ["omnigraph-server", *arguments],
            folder=cwd,
            environment=env,
            streams=(nothing.fileno(), 1, stderr),
        )


def _start_cold(
    arguments: list[str], env: Mapping[str, str], cwd: Path, stderr: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "omnigraph_core.server", *arguments],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stderr=stderr,
    )


def run_server(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """A server that is expected to end by itself: what it says when it cannot start."""
    done = warm.run(
        _MAIN,
        ["omnigraph-server", *map(str, arguments)],
        folder=cwd or Path.cwd(),
        environment={**os.environ, **(env or {})},
        seconds=START_SECONDS,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def tokens(**by_actor: str) -> dict[str, str]:
    """The environment of a server whose actors have these tokens."""
    return {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(by_actor)}


def _read(descriptor: int, lines: list[str]) -> None:
    with open(descriptor, "rb") as stream:
        for line in stream:
            lines.append(line.decode())


def _has_started(running: ServerProcess) -> bool:
    said = list(running.log)
    assert running.process.poll() is None, f"the server did not start:\n{''.join(said)}"
    running.url = next((m[1] for line in said if (m := _LISTENING.search(line))), "")
    return bool(running.url) and _is_ready(running.url)


def _is_ready(url: str) -> bool:
    try:
        answer = httpx2.get(f"{url}/readyz", timeout=60, verify=_is_encrypted(url))
        return answer.status_code == 200
    except httpx2.TransportError:
        return False
