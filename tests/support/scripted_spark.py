"""A Spark Connect server as it is deployed, that can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tests.support.ports import ATTEMPTS, free_port, is_free
from tests.support.spark import ROOT, SECONDS
from tests.support.spark_cluster import QUICK_TO_ACT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NONE: Final[Mapping[str, str]] = MappingProxyType({})


class ScriptedServer:
    """`deploy/spark-connect.sh` on a port of its own; its jobs are kept in an event log."""

    def __init__(
        self, directory: Path, *, master: str = "local[2,3]", variables: Mapping[str, str] = NONE
    ) -> None:
        self.events = directory / "events"
        self.events.mkdir()
        self._variables = {**variables, "OMNIGRAPH_SPARK_MASTER": master}
        self._log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        for attempt in range(1, ATTEMPTS + 1):
            self._port = free_port()
            self.url = f"sc://127.0.0.1:{self._port}"
            try:
                self.start()
            except AssertionError:
                self.kill()
                if "SPARK_CONNECT_PORT" not in self._log.read_text() or attempt == ATTEMPTS:
                    raise
            else:
                return

    def start(self) -> None:
        # A script that was killed has ended; its Java may take a moment to let go of the port.
        wait_until(lambda: is_free(self._port), "the end of Java", seconds=SECONDS)
        env = {
            **os.environ,
            "PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_CONNECT_PORT": str(self._port),
            **self._variables,
        }
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(self.events),
            "spark.eventLog.compress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.liveUpdate.period": "0",  # pages show what is, not what was
            **QUICK_TO_ACT,
        }
        given = [item for name, value in conf.items() for item in ("--conf", f"{name}={value}")]
        self._log.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [ROOT / "deploy" / "spark-connect.sh", *given],
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._is_ready, "the server", seconds=SECONDS, tell=self._log.read_text)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        return f"ready: {self.url}" in self._log.read_text()

    @property
    def ui(self) -> str:
        """Its Spark UI, as it says itself."""
        (found,) = re.findall(r"^ready: .* Spark UI (\S+)$", self._log.read_text(), re.MULTILINE)
        return str(found)

    def kill(self) -> None:
        """End all of its processes at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(SECONDS)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGINT)
        assert self._process.wait(SECONDS) == 130, self._log.read_text()
