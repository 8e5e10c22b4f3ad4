"""Where Spark jobs run: the session of the process, adopted or opened here and nowhere else.

Settings come from arguments, then from the environment, then from `defaults`. One process has one
session: who asks for another place than the one it runs at gets an error.

What executors need. On this machine they are processes of this Python. On a cluster every machine
has a Python of the same minor version with the packages of `omnigraph[spark]`: best in the image
that `spark.kubernetes.container.image` names, or else at one path, which `spark.pyspark.python`
names. Our own package is pure Python and may be sent as well, see `ship_package`. Executors of a
cluster that we start are given our settings of S3, of embeddings and the like; those of a Connect
server have their own environment.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
import warnings
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from omnigraph_core import settings
from omnigraph_core.errors import ConfigError
from omnigraph_core.spark import connect, defaults
from omnigraph_core.spark.settings import CONF, MASTER, REMOTE
from omnigraph_core.spark.told import summary
from omnigraph_core.startup import reveal_pandas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_HINT: Final = "pip install 'omnigraph[spark]'"
_OTHERWISE: Final = "a Spark session is active in this process with other settings"
_UI: Final[WeakKeyDictionary[SparkSession, str | None]] = WeakKeyDictionary()
"""The Spark UI of each session: its address stays, and to ask for it is a call."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def open_session(
    *, master: str | None = None, remote: str | None = None, conf: Mapping[str, str] = _NOTHING
) -> SparkSession:
    """The Spark session of this process; an active one is adopted.

    Args:
        master: where to run: `local[4]`, `spark://host:7077`, `k8s://https://host:6443`.
        remote: a Spark Connect server to run on: `sc://host:15002`. No Java is needed here.
        conf: settings of Spark itself, stronger than all others.

    Raises:
        ConfigError: Spark or Java is missing, cannot be started or reached; or a session that is
            already active runs elsewhere, or with other settings that can no longer change.
    """
    if master is not None and remote is not None:
        raise ConfigError("a Spark session has a master or a remote server, not both")
    reveal_pandas()
    _require("pyspark", "pandas")
    with connect.OPENING:
        active = _active()
        if active is not None:
            _check_place(active, master, remote)
            connect.set_settings(active, conf, _OTHERWISE)
            return active
        if master is None and remote is None:
            remote = REMOTE.read()
        given = {**CONF.read(), **conf}
        if remote is not None:
            _require("grpc", "grpc_status", "google.protobuf", "pyspark.sql.connect.session")
            return connect.attach(remote, given)
        return _started(master or MASTER.read() or defaults.local_master(), given)


def is_connect(session: SparkSession) -> bool:
    """Whether a session is behind a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def ui_address(session: SparkSession) -> str | None:
    """The Spark UI that shows the jobs of a session; None if there is none, or nobody says where.

    Raises:
        PySparkException, Py4JError: Spark does not answer.
    """
    if session not in _UI:
        ask = connect.ui_address if is_connect(session) else _own_ui
        _UI[session] = ask(session)
    return _UI[session]


def _own_ui(session: SparkSession) -> str | None:
    return session.sparkContext.uiWebUrl


def replacement(session: SparkSession, problem: BaseException) -> SparkSession | None:
    """Another session in the place of one that is gone; None if it is not, or was not ours.

    Raises:
        ConfigError: the server that held it does not come back.
    """
    return connect.replacement(session, problem) if is_connect(session) else None


def _require(*names: str) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as problem:
            raise ConfigError(f"Spark needs the package `{problem.name}`", hint=_HINT) from problem


def _active() -> SparkSession | None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    _forget_dead()
    try:
        return SparkSession.active()
    except PySparkRuntimeError:  # there is none
        return None


def _forget_dead() -> None:
    """Let go of a driver whose process has ended: Spark would ask it for ever."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    driver: Any = getattr(SparkContext._gateway, "proc", None)
    if driver is None or driver.poll() is None:
        return
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _check_place(session: SparkSession, master: str | None, remote: str | None) -> None:
    """Whether the active session is where the caller wants to be."""
    wanted = master if remote is None else connect.shown(remote)
    found = connect.place(session) if is_connect(session) else session.conf.get("spark.master")
    if wanted is not None and wanted != found:
        raise ConfigError(
            f"a Spark session is active in this process on {found}; {wanted} was asked for",
            hint="a process has one Spark session: stop it first, or use it as it is",
        )


def _started(master: str, given: Mapping[str, str]) -> SparkSession:
    """A session whose driver is a Java process beside this one."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    defaults.check_master(master)
    conf: dict[str, Any] = {"spark.master": master, **defaults.classic(master), **given}
    # Its command line can be read by all users of the machine: no place for secrets.
    shown = [
        (name, text)
        for name, text in conf.items()
        if not name.startswith(defaults.VARIABLE) and not defaults.is_secret(name)
    ]
    # Left by a Connect session of this process: all sessions after it would count as such.
    settings.put({"SPARK_CONNECT_MODE_ENABLED": None})
    before = settings.put(defaults.launch_variables(master, conf))
    try:
        with _own_interrupts(), warnings.catch_warnings():
            # Said at any fork, but this one becomes Java at once.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            SparkContext._ensure_initialized(conf=SparkConf().setAll(shown))
            session = SparkSession.builder.config(map=conf).getOrCreate()
    except (PySparkException, Py4JError) as problem:
        raise ConfigError(
            f"Spark does not start on {master}: {summary(problem)}",
            hint="what its process said about it is in the output above",
        ) from problem
    finally:
        settings.put(before)
    return session


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Leave the handling of interrupts as it is: Spark's own stops the jobs of all threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None:  # else it is none of Python's
            signal.signal(signal.SIGINT, handler)
