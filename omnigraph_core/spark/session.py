"""Where Spark jobs run: the session of the process, adopted or opened here and nowhere else.

Settings come from arguments, then from the environment, then from the defaults below. One process
has one session: who asks for another place than the one it runs at gets an error.

What executors need. On this machine they are processes of this Python. On a cluster every machine
has a Python of the same minor version with the packages of `omnigraph[spark]` in it, best as the
image that `spark.kubernetes.container.image` names, or at one path named by
`spark.pyspark.python`. Our own package, which is pure Python, may also be sent: `ship_package`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import threading
import warnings
import zipfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core import settings
from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.settings import CONF, MASTER, REMOTE, for_executors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_HINT: Final = "pip install 'omnigraph[spark]'"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_ATTEMPTS: Final = 3
"""Of a task on this machine; Spark by itself would try it once."""

_ENVIRONMENT: Final = "spark.executorEnv."


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
    _require_spark()
    active = _active()
    if active is not None:
        return _adopted(active, master, remote, conf)
    if master is None and remote is None:
        remote = REMOTE.read()
    given = {**CONF.read(), **conf}
    if remote is not None:
        return _connected(remote, given)
    return _started(master or MASTER.read() or _local_master(), given)


def is_connect(session: SparkSession) -> bool:
    """Whether a session is behind a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _require_spark() -> None:
    for name in ("pyspark", "pandas"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as problem:
            raise ConfigError(f"Spark needs the package `{name}`", hint=_HINT) from problem


def _active() -> SparkSession | None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:  # there is none
        return None


def _adopted(
    session: SparkSession, master: str | None, remote: str | None, conf: Mapping[str, str]
) -> SparkSession:
    where = "a Spark Connect server" if is_connect(session) else session.conf.get("spark.master")
    if remote is not None and not is_connect(session):
        raise _elsewhere(where, remote)
    if master is not None and master != where:
        raise _elsewhere(where, master)
    differing = {
        name: value for name, value in conf.items() if session.conf.get(name, None) != value
    }
    fixed = [name for name in differing if not session.conf.isModifiable(name)]
    if fixed:
        told = "; ".join(
            f"{name} is {session.conf.get(name, None)!r}, not {differing[name]!r}"
            for name in sorted(fixed)
        )
        raise ConfigError(
            f"a Spark session is active in this process with other settings: {told}",
            hint="stop it first, or leave those settings out",
        )
    for name, value in differing.items():
        session.conf.set(name, value)
    return session


def _elsewhere(active: str | None, wanted: str) -> ConfigError:
    return ConfigError(
        f"a Spark session is active in this process on {active}; {wanted} was asked for",
        hint="a process has one Spark session: stop it first, or use it as it is",
    )


def _connected(remote: str, conf: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(remote).config(map=dict(conf)).getOrCreate()


def _local_master() -> str:
    return f"local[{_processors()},{_ATTEMPTS}]"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started(master: str, given: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from omnigraph_core.spark.java import java_home

    conf: dict[str, Any] = {"spark.master": master, **_defaults(master), **given}
    settings.put({"JAVA_HOME": str(java_home()), **_python(master, conf)})
    with _own_interrupts(), warnings.catch_warnings():
        # Raised by any fork; the child becomes Java at once.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        # Spark's process is started without the variables of executors: its command line is no
        # place for secrets.
        visible = {name: value for name, value in conf.items() if not name.startswith(_ENVIRONMENT)}
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(visible.items())))
        return SparkSession.builder.config(map=conf).getOrCreate()


def _defaults(master: str) -> dict[str, str]:
    shared = {
        "spark.app.name": "omnigraph",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        **{f"{_ENVIRONMENT}{name}": value for name, value in _for_executors().items()},
    }
    if not master.startswith("local"):
        return shared
    return shared | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(3 * _processors()),
        # For jobs of seconds: less time to start, and less for the work of many minutes.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }


def _for_executors() -> dict[str, str]:
    """Lance would take every processor for each of the tasks that run side by side."""
    lance = {"LANCE_CPU_THREADS": "2", "LANCE_IO_THREADS": "16", "LANCE_LOG": "error"}
    return lance | for_executors()


def _python(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """On this machine, executors are this Python with its packages and not one of the PATH."""
    if master.startswith("local") and "spark.pyspark.python" not in conf:
        return {"PYSPARK_PYTHON": sys.executable}
    return {}


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
        signal.signal(signal.SIGINT, handler)


def ship_package(session: SparkSession) -> None:
    """Send our own package to the executors of a session that do not have it.

    Packages with compiled parts cannot be sent: they belong in the image of the executors.
    """
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory) / "omnigraph_core.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
            for path in sorted(root.rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    package.write(path, path.relative_to(root.parent))
        session.addArtifact(str(archive), pyfile=True)


__all__ = ["is_connect", "open_session", "ship_package"]
