"""What a session of ours is started with, unless the caller or the environment says otherwise."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from omnigraph_core import settings
from omnigraph_core.errors import ConfigError
from omnigraph_core.spark.java import java_home
from omnigraph_core.spark.settings import for_executors

if TYPE_CHECKING:
    from collections.abc import Mapping

SQL: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.python.filterPushdown.enabled": "true",
}
"""For every session, also one of a server."""

VARIABLE: Final = "spark.executorEnv."
"""What the name of a setting starts with that is a variable of executors."""

SECRETS: Final = (
    r"(?i)secret|password|passwd|token|credential|authorization"
    r"|(?:access|account|api|private|shared)[._-]?key"
)
"""Settings and variables with such names: Spark shows them nowhere. The first word is Spark's own
way to say that case does not matter."""

_ATTEMPTS: Final = 3
"""Of a task on this machine; Spark by itself would try it once."""

_LANCE: Final = {"LANCE_CPU_THREADS": "2", "LANCE_IO_THREADS": "16", "LANCE_LOG": "error"}
"""Lance takes every processor of a machine, where many tasks run side by side."""

_PORTS: Final = "100"
"""Ports that the Spark UI tries, from 4040 on: one for each session of a machine."""
_LOOPBACK: Final = "127.0.0.1"

_LOGGING: Final = Path(__file__).parent / "log4j2.properties"
_JAVA_OPTIONS: Final = (
    f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={_LOGGING}"
)
"""For jobs of seconds: half the processor time to start, and up to twice that of work for many
minutes. What Spark says below the level of an error is left out from the first line on."""


_MASTER: Final = re.compile(r"local|local\[[^]]+\]|spark://.+|k8s://.+|yarn")


def check_master(master: str) -> None:
    """Refuse what is no place: Spark's process would say so and end, and we not know why."""
    if not _MASTER.fullmatch(master):
        raise ConfigError(
            f"{master!r} is no place where Spark runs",
            hint="as local[4], spark://host:7077 or k8s://https://host:6443",
        )


def local_master() -> str:
    """This machine, with every processor that this process may use."""
    return f"local[{_processors()},{_ATTEMPTS}]"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def classic(master: str) -> dict[str, str]:
    """The settings of a session with that master."""
    variables = _LANCE | for_executors()
    shared = {
        **SQL,
        "spark.app.name": "omnigraph",
        "spark.redaction.regex": SECRETS,
        "spark.ui.showConsoleProgress": "false",
        "spark.port.maxRetries": _PORTS,
        **{f"{VARIABLE}{name}": value for name, value in variables.items()},
    }
    if not _is_local(master):
        return shared | {"spark.log.level": "ERROR", **driver_host(master)}
    return shared | {
        **driver_host(master),
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": str(3 * _processors()),
        "spark.python.daemon.module": "omnigraph_core.spark.daemon",
    }


def launch_variables(master: str, conf: Mapping[str, str]) -> dict[str, str | None]:
    """Variables to start Spark's process with; None for one that would mislead it."""
    variables: dict[str, str | None] = {
        "JAVA_HOME": str(java_home()),
        "SPARK_REMOTE": None,
    }
    python = conf.get("spark.pyspark.python") or settings.text("PYSPARK_PYTHON")
    if _is_local(master):
        python = python or sys.executable  # the one with our packages, not that of the PATH
    if _is_local(master) or ("spark.driver.host" in conf and not settings.text("SPARK_LOCAL_IP")):
        # The Spark UI listens there. Executors reach the driver under `spark.driver.host`.
        variables |= {"SPARK_LOCAL_IP": _LOOPBACK, "SPARK_PUBLIC_DNS": _LOOPBACK}
    if python is not None:
        variables["PYSPARK_PYTHON"] = python
    return variables


def is_secret(name: str) -> bool:
    """Whether a setting or a variable of that name is nobody's business."""
    return re.search(SECRETS, name) is not None


def driver_host(master: str) -> dict[str, str]:
    """The address under which executors reach this machine, if the master says where they are.

    Spark would take the one that it binds the UI to.
    """
    if _is_local(master):
        return {"spark.driver.host": _LOOPBACK}
    first = master.removeprefix("k8s://").partition(",")[0]
    host = urlsplit(first if "://" in first else f"//{first}").hostname
    if host is None or master == "yarn":
        return {}
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))  # sends nothing: the system chooses the way there
            return {"spark.driver.host": str(probe.getsockname()[0])}
    except OSError:  # its name cannot be resolved here, or there is no way: Spark is to say so
        return {}


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")
