"""The directory of one test run: every temporary file of the run lies in it and ends with it.

The controlling process makes the directory and points TMPDIR and Java at it, so that workers,
services and commands inherit it. When the run ends, however it ends, the controller stops each
process that still has the directory as its TMPDIR and removes the directory. A run with failed
tests keeps its directory under one name until the next failed run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.examples import LONG
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLE: Final = "TMPDIR"
LIGHT_JAVA: Final = (
    "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For short lives: Java compiles no more than once, keeps no statistics on disk, and takes the
classes of Spark for sound: to check them is a sixth of a start."""
ONE_THREAD: Final = {"TOKIO_WORKER_THREADS": "1", "LANCE_CPU_THREADS": "1"}
"""Lance takes a thread per processor in each process, but tests share the processors with other
workers. In the long run it has them all."""
_GRACE_SECONDS: Final = 10
"""Services end by themselves when their last user is gone."""
_MEMORY: Final = Path("/dev/shm")
_LEAST_FREE: Final = 10 << 30
"""Bytes of memory from which a run keeps its files there; a run has had less than 3 GB of them."""


class RunDirectory:
    """A plugin of the controlling process."""

    def __init__(self) -> None:
        self._parent = _parent_directory()
        self.path = Path(tempfile.mkdtemp(prefix="og-", dir=self._parent))
        changed = (_VARIABLE, "SPARK_SUBMIT_OPTS", *ONE_THREAD)
        self._before = {name: os.environ.get(name) for name in changed}
        os.environ[_VARIABLE] = tempfile.tempdir = str(self.path)
        os.environ.update({} if LONG else ONE_THREAD)
        given = os.environ.get("SPARK_SUBMIT_OPTS", "")
        os.environ["SPARK_SUBMIT_OPTS"] = f"{given} -Djava.io.tmpdir={self.path} {LIGHT_JAVA}"
        self._exit_code: int = pytest.ExitCode.INTERRUPTED

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._exit_code = exitstatus

    def pytest_unconfigure(self) -> None:
        _stop_processes(self.path)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        tempfile.tempdir = str(self._parent)
        if self._exit_code == pytest.ExitCode.TESTS_FAILED:
            kept = self._parent / f"omnigraph-tests-failed-{os.getuid()}"
            shutil.rmtree(kept, ignore_errors=True)
            with contextlib.suppress(OSError):  # another run keeps its own there just now
                self.path.rename(kept)
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def _parent_directory() -> Path:
    """What TMPDIR names, else memory where there is plenty of it: tests make very many small files,
    and a file system on disk takes several times as long to make one.
    """
    if _VARIABLE not in os.environ and _MEMORY.is_dir():
        free = min(shutil.disk_usage(_MEMORY).free, _available_memory())
        if free >= _LEAST_FREE:
            return _MEMORY
    return Path(tempfile.gettempdir())


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(kilobytes) << 10


def _stop_processes(directory: Path) -> None:
    """Wait for services to end, and kill what does not end by itself.

    Processes that this one has started for itself end with it: there is no point in waiting.
    """
    with contextlib.suppress(AssertionError):
        wait_until(
            lambda: all(_parent_of(pid) == os.getpid() for pid in processes_of(directory)),
            "the services of the run to end",
            seconds=_GRACE_SECONDS,
            interval=0.1,
        )
    for pid in processes_of(directory):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(AssertionError):
        wait_until(
            lambda: not any(processes_of(directory)),
            "killed processes to be gone",
            seconds=_GRACE_SECONDS,
            interval=0.1,
        )


def _parent_of(pid: int) -> int | None:
    with contextlib.suppress(OSError):  # it has ended
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    return None


def processes_of(directory: Path) -> Iterator[int]:
    """Other processes that inherited the directory of a run. Only Linux lists them."""
    needle = f"{_VARIABLE}={directory}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if int(entry.name) != os.getpid() and needle in _environment(entry):
                yield int(entry.name)


def _environment(entry: Path) -> list[bytes]:
    return (entry / "environ").read_bytes().split(b"\0")
