"""Real Spark services for tests: a standalone cluster and a Connect server, as processes.

They are started on first use and shared by every process of a run. As with the S3 server, who uses
a service holds a shared lock on a file; a watchdog process owns the service, takes the lock for
itself once the last user is gone, killed or not, and ends the service. Logs stay in the directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import pyspark

from omnigraph_core.spark.java import java_home
from tests.support.run_directory import LIGHT_JAVA, processes_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

ROOT: Final = Path(__file__).parent.parent.parent
SPARK: Final = Path(pyspark.__file__).parent
WORKERS: Final = 2
START_SECONDS: Final = 300
QUICK_TO_ACT: Final = {
    # Each is a while that Spark waits for something to change by itself, and nothing does.
    "spark.locality.wait": "0s",
    "spark.python.task.killTimeout": "100ms",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.standalone.executorRemoveDelayOnDisconnection": "0s",
    "spark.task.maxFailures": "3",
}
"""Settings for sessions of tests: they kill what was cancelled, and give up what was lost, soon."""
_PR_SET_PDEATHSIG: Final = 1


class Service:
    """A service of a directory: the first to enter starts it, the last to leave ends it."""

    kind: str
    """Names the function below that starts it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._leaving = contextlib.ExitStack()
        self.url = ""

    def __enter__(self) -> Service:
        self.directory.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            watchdogs: list[subprocess.Popen[bytes]] = []
            stack.callback(lambda: [watchdog.wait() for watchdog in watchdogs])
            # Undone before the wait above: the watchdog waits for this lock.
            stack.enter_context(_open_lock(self.directory / "users.lock", fcntl.LOCK_SH))
            state = self.directory / "service.json"
            with _open_lock(self.directory / "start.lock", fcntl.LOCK_EX):
                if not state.exists():
                    watchdogs.append(_start_watchdog(self.kind, self.directory))
            self.url = json.loads(state.read_text())["url"]
            self._leaving = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leaving.close()


class StandaloneCluster(Service):
    """A master and two workers of two cores each; `url` is the master's."""

    kind = "standalone"


class LonelyMaster(Service):
    """A master without workers: the cheapest of all services."""

    kind = "master"


class ConnectServer(Service):
    """A Spark Connect server that runs jobs in its own process; `url` is for clients."""

    kind = "connect"


def kill_an_executor(cluster: Service) -> None:
    """End one of the processes that do the tasks of a cluster, in the midst of whatever it does."""
    os.kill(min(executors(cluster).values()), signal.SIGKILL)


def executors(cluster: Service) -> dict[str, int]:
    """The processes that do the tasks of a cluster, by `application/executor`: other clusters, of
    this run and of others, keep the files of theirs elsewhere."""
    found = {}
    for number in processes_of(Path(os.environ["TMPDIR"])):
        with contextlib.suppress(OSError):  # it has ended
            place = Path(f"/proc/{number}/cwd").readlink()
            command = Path(f"/proc/{number}/cmdline").read_bytes()
            is_ours = place.is_relative_to(cluster.directory)
            if is_ours and b"CoarseGrainedExecutorBackend" in command:
                found["/".join(place.parts[-2:])] = number
    return found


def _open_lock(path: Path, mode: int) -> IO[str]:
    """The lock is held as long as the file is open, and ends with the process at the latest."""
    file = path.open("a")
    fcntl.flock(file, mode)
    return file


def _start_watchdog(kind: str, directory: Path) -> subprocess.Popen[bytes]:
    with (directory / "watchdog.log").open("ab") as log:
        watchdog = subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark_cluster", kind, str(directory)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt from the keyboard is for the tests alone
        )

    def has_started() -> bool:
        if watchdog.poll() is not None:
            tails = "\n".join(_tail(path) for path in sorted(directory.glob("*.log")))
            raise RuntimeError(f"the Spark service `{kind}` did not start\n{tails}")
        return (directory / "service.json").exists()

    # Its parts start one after the other, and the watchdog has a deadline for each.
    wait_until(has_started, f"the Spark service `{kind}`", seconds=(WORKERS + 2) * START_SECONDS)
    return watchdog


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()
    return "\n".join([f"--- {path}", *lines[-30:]])


def watch(kind: str, directory: Path) -> None:
    """Run a service until nobody uses it; the body of the watchdog process."""
    state = directory / "service.json"
    with (directory / "users.lock").open("a") as users, contextlib.ExitStack() as stack:
        parts = _Parts(directory, users, stack)
        url = _STARTERS[kind](parts)
        state.with_suffix(".new").write_text(json.dumps({"url": url}))
        state.with_suffix(".new").rename(state)
        while parts.are_alive() and not _is_unused(users):
            time.sleep(0.05)
        # Before the lock is let go of: who enters then finds no state and starts anew.
        state.unlink()


def _is_unused(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Parts:
    """The processes of a service; each ends with the watchdog."""

    def __init__(self, directory: Path, users: IO[str], stack: contextlib.ExitStack) -> None:
        self.directory = directory
        self._users = users
        self._stack = stack
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str) -> None:
        log = self.directory / f"{name}.log"
        log.unlink(missing_ok=True)
        running = _running(command, log, self.directory)
        self._processes[name] = self._stack.enter_context(running)

    def wait(self, name: str, words: str) -> str:
        """Wait for words in the log of a part: their group is returned."""
        process, log = self._processes[name], self.directory / f"{name}.log"

        def said() -> str | None:
            if _is_unused(self._users):
                raise SystemExit("nobody waits for the service any more")
            found = re.search(words, log.read_text(errors="replace"))
            if found is None and process.poll() is not None:
                raise SystemExit(f"{name} did not become ready")
            return found and found.group(1)

        ready = wait_until(said, f"{name} to be ready", seconds=START_SECONDS, interval=0.05)
        assert ready is not None
        return ready

    def are_alive(self) -> bool:
        return all(process.poll() is None for process in self._processes.values())


@contextlib.contextmanager
def _running(
    command: tuple[str, ...], log: Path, directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    home = java_home()
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={
                **os.environ,
                "JAVA_HOME": str(home),
                "SPARK_HOME": str(SPARK),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_DAEMON_JAVA_OPTS": LIGHT_JAVA,
                "SPARK_DAEMON_MEMORY": "1g",
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": str(ROOT),  # tasks of tests are found by name
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    try:
        yield process
    finally:
        # Executors end by themselves when they lose their worker, as their Python workers do.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _die_with_parent() -> None:
    """Linux ends the service even when the watchdog itself is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _start_master(parts: _Parts) -> str:
    parts.start(
        "master",
        *(str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master"),
        *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
    )
    return parts.wait("master", r"Starting Spark master at (spark://\S+)")


def _start_standalone(parts: _Parts) -> str:
    url = _start_master(parts)
    names = [f"worker-{number}" for number in range(WORKERS)]
    for number, name in enumerate(names):
        # Each is a host of its own: Spark repeats no slow task on the host that is slow.
        parts.start(
            name,
            *(str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"),
            *("--host", f"127.0.0.{number + 1}", "--port", "0", "--webui-port", "0"),
            *("--cores", "2", "--memory", "2g"),
            *("--work-dir", str(parts.directory / f"{name}-files"), url),
        )
    for name in names:
        parts.wait(name, r"Successfully registered with master (\S+)")
    return url


def _start_connect(parts: _Parts) -> str:
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.progress.reportInterval": "200ms",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": LIGHT_JAVA,
        "spark.python.daemon.module": "omnigraph_core.spark.daemon",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        **QUICK_TO_ACT,
    }
    parts.start(
        "connect",
        *(str(SPARK / "bin" / "spark-submit"), "--master", "local[2,3]"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(item for name, value in conf.items() for item in ("--conf", f"{name}={value}")),
        "spark-internal",
    )
    port = parts.wait("connect", r"Spark Connect server started at:? \S*?:(\d+)")
    return f"sc://127.0.0.1:{port}"


_STARTERS: Final = {
    "master": _start_master,
    "standalone": _start_standalone,
    "connect": _start_connect,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # asked to end, it takes all along
    watch(sys.argv[1], Path(sys.argv[2]))
