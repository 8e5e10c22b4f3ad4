"""Sessions behind a Spark Connect server: shared by processes, and replaced when they are gone.

Processes of one user with the same settings attach to one session of the server, known by a fixed
id: its Python workers are warm, and attaching takes tenths of a second. A session that the server
has closed cannot come back under its id, so ids have a generation, and the next one takes over.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core import interruption, settings
from omnigraph_core.errors import ConfigError
from omnigraph_core.spark import defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

OPENING: Final = threading.Lock()
"""Held by the one thread of a process that opens a session."""
START_SECONDS: Final = 30.0
"""How long a server may take to accept the first connection; Spark would try for many minutes."""
AWAY_SECONDS: Final = 120.0
"""How long a server that had answered may be away, in the midst of a job or between two."""

_BACKOFF_MILLISECONDS: Final = 1_000
"""The longest wait between two attempts to reach a server."""
_SLICE_SECONDS: Final = 0.2
_GENERATIONS: Final = 1_100
"""More than the closed sessions that a server remembers."""
_CLOSED: Final = "INVALID_HANDLE.SESSION_CLOSED"
_GONE: Final = (
    _CLOSED,
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "RESPONSE_ALREADY_RECEIVED",
    "NO_ACTIVE_SESSION",
    "SparkContext was shut down",
    "stopped SparkContext",
)
"""What a client is told when its session is gone, or the server that held it."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A session that this process has attached to."""

    session: SparkSession
    remote: str
    conf: Mapping[str, str]
    generation: int


_opened: _Opened | None = None


def attach(remote: str, conf: Mapping[str, str]) -> SparkSession:
    """The session of this user and of these settings on a server.

    Raises:
        ConfigError: no server answers there, or it runs with other settings.
    """
    return _attach(remote, conf, 0, START_SECONDS)


def replacement(session: SparkSession, problem: BaseException) -> SparkSession | None:
    """Another session in the place of one that is gone; None if it is not, or not ours.

    A server that is away is waited for. Only one of several threads opens the next session.

    Raises:
        ConfigError: the server does not come back.
    """
    with OPENING:
        opened = _opened
        if opened is None or not is_gone(session, problem):
            return None
        if opened.session is not session and not _is_stopped(opened.session):
            return opened.session
        _let_go(session)
        return _attach(opened.remote, opened.conf, opened.generation, AWAY_SECONDS)


def is_gone(session: SparkSession, problem: BaseException) -> bool:
    """Whether an error says that the session, or the server that held it, is no more."""
    if _is_stopped(session):
        return True
    told = f"{problem} {problem.__cause__}"
    return any(words in told for words in _GONE)


def _is_stopped(session: SparkSession) -> bool:
    return bool(session.client.is_closed)


def shown(remote: str) -> str:
    """A server without what else its address holds: a token is nobody's business."""
    return f"sc://{_builder(remote).endpoint}"


def place(session: SparkSession) -> str:
    """The server that a session is behind."""
    builder: Any = session.client._builder
    return f"sc://{getattr(builder, 'endpoint', builder.host)}"


def ui_address(session: SparkSession) -> str | None:
    """The Spark UI of the server, if its settings say where it is."""
    port = session.conf.get("spark.ui.port", None)
    if session.conf.get("spark.ui.enabled", "true") != "true" or port in (None, "0"):
        return None
    return f"http://{session.client._builder.host}:{port}"


def _attach(remote: str, conf: Mapping[str, str], generation: int, seconds: float) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    global _opened
    otherwise = f"{shown(remote)} runs with other settings"
    _wait_for_server(remote, seconds)
    settings.put({"SPARK_CONNECT_MODE_ENABLED": "1"})  # else functions would ask for Java
    for number in range(generation, generation + _GENERATIONS):
        builder: Any = ConnectSession.builder
        session: SparkSession = builder.channelBuilder(
            _of_generation(remote, conf, number)
        ).create()
        _keep_on_stop(session)
        session.client.set_retry_policies([_retry_policy()])
        try:
            set_settings(session, {**defaults.SQL, **conf}, otherwise)
        except ConfigError:
            session.stop()  # else the next to ask would adopt it
            raise
        except PySparkException as problem:
            session.stop()
            if _CLOSED not in str(problem):
                raise ConfigError(
                    f"{shown(remote)} opens no session: {problem}",
                    hint="see the log of the Spark Connect server",
                ) from problem
        else:
            _opened = _Opened(session, remote, conf, number)
            return session
    raise ConfigError(
        f"{shown(remote)} has closed {_GENERATIONS} sessions of these settings",
        hint="restart the Spark Connect server",
    )


def _let_go(session: SparkSession) -> None:
    """Forget a session in this process; the server keeps it, or has forgotten it itself."""
    _keep_on_stop(session)
    # Else it would wait for answers that nobody can give any more.
    session.client._release_futures.clear()
    session.stop()


def _keep_on_stop(session: Any) -> None:
    """Have `stop` leave the session of the server alone: it is not ours alone."""
    session.release_session_on_close = False


def _wait_for_server(remote: str, seconds: float) -> None:
    import grpc

    channel = _builder(remote).toChannel()
    deadline = time.monotonic() + seconds
    ready = grpc.channel_ready_future(channel)
    try:
        while True:
            try:
                ready.result(timeout=_SLICE_SECONDS)
            except grpc.FutureTimeoutError as problem:
                interruption.pause()
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"no Spark Connect server answers at {shown(remote)}",
                        hint="start one with `deploy/spark-connect.sh`, or name another",
                    ) from problem
            else:
                return
    finally:
        ready.cancel()
        channel.close()


def _retry_policy() -> Any:
    """Try a server that is away again and again, for `AWAY_SECONDS`."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    attempts = round(AWAY_SECONDS * 1_000 / _BACKOFF_MILLISECONDS)
    return DefaultPolicy(max_retries=attempts, max_backoff=_BACKOFF_MILLISECONDS)


def _of_generation(remote: str, conf: Mapping[str, str], generation: int) -> Any:
    """How to connect to the session of a generation.

    An id in the address is the first; without one it comes from the user and the settings, which
    all that share a session have in common.
    """
    builder = _builder(remote)
    user = builder.userId or settings.text("SPARK_USER") or settings.text("USER") or "omnigraph"
    builder.set("user_id", user)
    if builder.session_id is None:
        told = json.dumps(["omnigraph", user, sorted(conf.items())])
        first = uuid.uuid5(uuid.NAMESPACE_URL, told)
    else:
        first = uuid.UUID(builder.session_id)
    chosen = first if generation == 0 else uuid.uuid5(first, str(generation))
    builder.set("session_id", str(chosen))
    return builder


def _builder(remote: str) -> Any:
    from pyspark.errors import PySparkValueError
    from pyspark.sql.connect.client import DefaultChannelBuilder

    backoff = [
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", _BACKOFF_MILLISECONDS),
    ]
    try:
        return DefaultChannelBuilder(remote, backoff)
    except PySparkValueError as problem:
        address = remote.partition(";")[0]
        raise ConfigError(
            f"{address!r} is no Spark Connect server", hint="as sc://host:15002"
        ) from problem


def set_settings(session: SparkSession, conf: Mapping[str, str], otherwise: str) -> None:
    """Change the settings that differ. Some stand for the life of a session: all are named.

    Raises:
        ConfigError: some cannot be changed; `otherwise` begins its message.
    """
    found = {name: session.conf.get(name, None) for name in conf}
    differing = sorted(name for name in conf if found[name] != conf[name])
    fixed = [name for name in differing if not session.conf.isModifiable(name)]
    if fixed:
        told = "; ".join(_difference(name, found[name], conf[name]) for name in fixed)
        hint = "set them where the session or its server is started, or leave them out"
        raise ConfigError(f"{otherwise}: {told}", hint=hint)
    for name in differing:
        session.conf.set(name, conf[name])


def _difference(name: str, found: str | None, wanted: str) -> str:
    if defaults.is_secret(name):
        return f"{name} is another"
    return f"{name} is {found!r}, not {wanted!r}"
