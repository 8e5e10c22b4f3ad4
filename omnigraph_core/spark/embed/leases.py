"""Limits of a provider held for the tasks of a job, by the process that has started it.

A task asks for a lease before each request, over TCP: one line in, one line out when it may go. The
secret of the job proves who asks and never travels. A provider that asks one task to wait has all
of them wait. Behind Spark Connect nobody can reach this process; there each task keeps to its part
of the limits.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import math
import secrets
import socket
import socketserver
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from omnigraph_core.embedding.config import read_config, read_limits
from omnigraph_core.embedding.embedder import Embedder
from omnigraph_core.embedding.limits import Limits, shared_limiter
from omnigraph_core.errors import ConfigError, EmbeddingError
from omnigraph_core.spark.runner import SparkRunner
from omnigraph_core.spark.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from omnigraph_core.embedding.config import EmbedConfig
    from omnigraph_core.embedding.limits import Limiter
    from omnigraph_core.embedding.requests import Cache
    from omnigraph_core.spark.runner import Runner

_log = logging.getLogger(__name__)

_ACQUIRE: Final = "acquire"
_PAUSE: Final = "pause"
_GRANTED: Final = b"granted\n"
_LONGEST_LINE: Final = 256
_TALK_SECONDS: Final = 10.0
"""How long either side may take to say its line."""
_POLL_SECONDS: Final = 0.2
"""Between two looks of a task that waits for a lease whether it is to stop."""
_BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class LeasePlace:
    """Where leases are given out, and what proves that one may have them."""

    host: str
    port: int
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Share:
    """What a task may ask of the provider, so that all together keep its limits.

    `leases` gives out turns; without it, the task keeps to its part of the limits: of those of the
    process that has started the job if it has any, else of its own settings.
    """

    tasks: int = 1
    leases: LeasePlace | None = None
    limits: Limits | None = None

    def embedder(self, cache: Cache | None = None) -> Embedder:
        """An embedder for one task at a time."""

        def configure() -> EmbedConfig:
            config = read_config()
            limits = self.limits or config.limits
            return replace(
                config,
                concurrency=max(1, config.concurrency // self.tasks),
                limits=limits.divided(self.tasks),
            )

        limiter = None if self.leases is None else RemoteLimiter(self.leases)
        return Embedder(configure, cache=cache, limiter=limiter)


@contextlib.contextmanager
def shared_limits(runner: Runner, tasks: int) -> Iterator[Share]:
    """What each of so many tasks of a runner may ask, while the block runs."""
    at_once = max(1, min(tasks, runner.parallelism))
    if not isinstance(runner, SparkRunner):
        yield Share(at_once)
    elif is_connect(runner.session):
        limits = read_limits()
        yield Share(at_once, limits=None if limits == Limits() else limits)
    else:
        with _server(runner.session) as place:
            yield Share(at_once, place)


@contextlib.contextmanager
def _server(session: SparkSession) -> Iterator[LeasePlace]:
    """Give out leases at the address that executors know the driver by."""
    host = session.conf.get("spark.driver.host", None) or "127.0.0.1"
    bound = session.conf.get("spark.driver.bindAddress", None) or host
    with serving(_limiter(), host, bound) as place:
        yield place


def _limiter() -> Limiter:
    """The one of this process: what it asks itself counts as well."""
    try:
        return shared_limiter(read_config().base_url, read_limits())
    except ConfigError:  # of the provider; said when a vector is needed
        return shared_limiter("", read_limits())


@contextlib.contextmanager
def serving(limiter: Limiter, host: str, bound: str | None = None) -> Iterator[LeasePlace]:
    """Give out leases of a limiter while the block runs.

    Args:
        host: the address that others know this machine by.
        bound: the one to listen at, if that is another.

    Raises:
        ConfigError: this machine does not have the address.
    """
    try:
        server = _Server(limiter, host if bound is None else bound)
    except OSError as problem:
        raise ConfigError(
            f"cannot listen at {bound or host} for the executors: {problem.strerror}",
            hint="`spark.driver.bindAddress` names an address of this machine",
        ) from problem
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": _POLL_SECONDS}, daemon=True
    )
    thread.start()
    try:
        yield LeasePlace(host, server.server_address[1], server.secret)
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(socketserver.ThreadingTCPServer):
    """A thread for each who waits: they are as many as requests may be under way."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = _BACKLOG

    def __init__(self, limiter: Limiter, bound: str) -> None:
        self.limiter = limiter
        self.secret = secrets.token_bytes(32)
        self.closing = threading.Event()
        found = socket.getaddrinfo(bound, 0, type=socket.SOCK_STREAM)[0]
        self.address_family = found[0]
        super().__init__((bound, 0), _Talk)

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("a lease was not given out", exc_info=True)


class _Talk(socketserver.StreamRequestHandler):
    """One line of somebody who may have the secret."""

    server: _Server
    timeout = _TALK_SECONDS

    def handle(self) -> None:
        nonce = secrets.token_hex(16)
        self.wfile.write(f"{nonce}\n".encode())
        asked = self.rfile.readline(_LONGEST_LINE).decode("ascii", "replace").split()
        if len(asked) != 3:
            return
        word, number, proof = asked
        if not hmac.compare_digest(proof.encode(), _proof(self.server.secret, nonce, word, number)):
            _log.warning("somebody without the secret has asked for a lease")
            return
        if word == _PAUSE:
            self.server.limiter.pause(float(number))
        elif not self.server.limiter.acquire(int(number), self.server.closing):
            return
        self.wfile.write(_GRANTED)


def _proof(secret: bytes, nonce: str, word: str, number: str) -> bytes:
    told = f"{nonce} {word} {number}".encode()
    return hmac.new(secret, told, hashlib.sha256).hexdigest().encode()


class RemoteLimiter:
    """Asks the process that has started the job."""

    def __init__(self, place: LeasePlace) -> None:
        self._place = place

    def acquire(self, tokens: int, stop: threading.Event) -> bool:
        """
        Raises:
            EmbeddingError: nobody gives out leases there.
        """
        return self._ask(_ACQUIRE, str(tokens), stop)

    def pause(self, seconds: float) -> None:
        # A number that nobody reads as infinite, or as a word.
        self._ask(_PAUSE, f"{seconds if math.isfinite(seconds) else 0.0:.3f}", threading.Event())

    def _ask(self, word: str, number: str, stop: threading.Event) -> bool:
        place = self._place
        try:
            with socket.create_connection((place.host, place.port), _TALK_SECONDS) as talk:
                nonce = _line(talk).decode("ascii", "replace")
                proof = _proof(place.secret, nonce, word, number).decode()
                talk.sendall(f"{word} {number} {proof}\n".encode())
                return self._wait(talk, stop)
        except OSError as problem:
            raise EmbeddingError(
                f"no lease from {place.host}:{place.port}, where the job was started: {problem}",
                hint="executors reach the driver at `spark.driver.host`, at any port",
                retryable=True,
            ) from problem

    def _wait(self, talk: socket.socket, stop: threading.Event) -> bool:
        talk.settimeout(_POLL_SECONDS)
        while not stop.is_set():
            try:
                granted = talk.recv(len(_GRANTED))
            except TimeoutError:
                continue
            if not granted:
                raise ConnectionResetError("it has ended")
            return True
        return False


def _line(talk: socket.socket) -> bytes:
    """What comes before a line break; the other side says nothing after it."""
    found = b""
    while not found.endswith(b"\n"):
        more = talk.recv(_LONGEST_LINE)
        if not more:
            raise ConnectionResetError("it has ended")
        found += more
    return found.strip()
