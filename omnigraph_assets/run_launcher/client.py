"""Asks the fork server of an instance for a process, and starts the server if there is none.

A forked process waits until its caller says go. Until then the caller can still give it up, and
have the run started in another way.
"""

import hashlib
import json
import os
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

GO: Final = b"\n"
SERVER: Final = "omnigraph_assets.run_launcher.fork_server"
PRELOAD: Final = ("omnigraph_assets.definitions", "pyspark.sql.connect.session")
"""What a fork server imports besides Dagster. To import the definitions does not build them."""
ANSWER_SECONDS: Final = 90.0
"""How long a server may take to start, import everything and fork. One that ends is noticed at
once, so this is for one that hangs. It is half of the time that Dagster gives a run to start."""
_PASSED_OVER_SECONDS: Final = 300.0
"""How long a server that hung is not asked again: runs are launched one after the other."""
_END_SECONDS: Final = 2.0
_BETWEEN_ATTEMPTS: Final = 0.02
_LONGEST_PATH: Final = 107
"""Bytes in the path of a Unix domain socket."""
_TEMPORARY: Final = "omnigraph-runs-"
"""Begins the names of directories for the sockets of instances whose own path is too long."""


class ForkFailed(Exception):
    """No process was forked for a run; the message says why."""


class ServerGone(ForkFailed):
    """The server ended while it was asked; nothing was begun."""


class ServerHangs(ForkFailed):
    """The server did not answer in time."""


class WaitingProcess:
    """A forked process that has its request and waits. Leaving the block gives it up."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection

    def __enter__(self) -> "WaitingProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def go(self) -> None:
        """
        Raises:
            ForkFailed: it has ended while it waited.
        """
        try:
            self._connection.sendall(GO)
        except OSError as problem:
            raise ForkFailed(f"its process ended before the start: {problem}") from problem


class ForkServerClient:
    """The fork server at a socket. One that this object has started ends with it.

    Args:
        seconds: how long a request may take.
    """

    def __init__(self, path: Path, command: Sequence[str], seconds: float = ANSWER_SECONDS) -> None:
        self.path = path
        self.command = command
        self._seconds = seconds
        self._hung_at: float | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, request: str) -> WaitingProcess:
        """A process for a request.

        Raises:
            ForkFailed: the server cannot be started, or does not answer.
        """
        if len(os.fsencode(self.path)) > _LONGEST_PATH:
            raise ForkFailed(f"{self.path} is longer than the {_LONGEST_PATH} bytes of a socket")
        try:
            ensure_directory(self.path)
        except OSError as problem:
            raise ForkFailed(f"{self.path} cannot be used: {problem}") from problem
        if self._hung_at is not None and time.monotonic() - self._hung_at < _PASSED_OVER_SECONDS:
            minutes = _PASSED_OVER_SECONDS / 60
            raise ForkFailed(f"the fork server did not answer within the last {minutes:.0f} min")
        end = time.monotonic() + self._seconds
        try:
            try:
                found = self._ask(request, end)
            except ServerGone:  # killed, or just about to end: another one is started
                found = self._ask(request, end)
        except ServerHangs:
            self._hung_at = time.monotonic()
            raise
        self._hung_at = None
        return found

    def _ask(self, request: str, end: float) -> WaitingProcess:
        connection = self._connected(end)
        try:
            connection.settimeout(_seconds_until(end))
            connection.sendall(f"{json.dumps(request)}\n".encode())
            answer = connection.makefile("rb").readline()
        except TimeoutError as problem:
            connection.close()
            raise self._hang() from problem
        except OSError as problem:
            connection.close()
            raise ServerGone(f"the fork server has gone away: {problem}") from problem
        if not answer:
            connection.close()
            raise ServerGone("the fork server ended before it answered")
        found = json.loads(answer)
        if "pid" not in found:
            connection.close()
            raise ForkFailed(f"its process cannot begin: {found['problem']}")
        return WaitingProcess(found["pid"], connection)

    def _hang(self) -> ServerHangs:
        return ServerHangs(f"the fork server did not answer within {self._seconds:g} s")

    def close(self) -> None:
        """Let a server that was started here end, once the runs it has forked are over."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            # Its runs may go on, and so does it: the thread collects it whenever it ends.
            waiter = threading.Thread(target=process.wait, daemon=True)
            waiter.start()
            waiter.join(_END_SECONDS)

    def _connected(self, end: float) -> socket.socket:
        if not self._lock.acquire(timeout=_seconds_until(end)):
            raise self._hang()
        try:
            connection = self._try_connect()
            if connection is not None:
                return connection
            started = self._process = self._start()
            while (connection := self._try_connect()) is None:
                if code := started.poll():
                    raise ForkFailed(f"the fork server ended with {code}")
                if code == 0:  # another one has the lock: it starts just now, or it was killed
                    started = self._process = self._start()
                if time.monotonic() > end:
                    raise self._hang()
                time.sleep(_BETWEEN_ATTEMPTS)
            return connection
        finally:
            self._lock.release()

    def _try_connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(os.fspath(self.path))
        except (FileNotFoundError, ConnectionRefusedError):  # never started, or killed
            connection.close()
            return None
        except OSError as problem:
            connection.close()
            raise ForkFailed(f"{self.path} cannot be reached: {problem}") from problem
        return connection

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a server whose standard input ends with this process, and which ends with that."""
        self.close()
        try:
            return subprocess.Popen(
                [*self.command, "--until-stdin-ends"],
                stdin=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C, or the end of the daemon, is not that of its runs
            )
        except OSError as problem:
            raise ForkFailed(f"the fork server cannot be started: {problem}") from problem


def _seconds_until(end: float) -> float:
    """Never zero, which would mean not to wait at all."""
    return max(end - time.monotonic(), _BETWEEN_ATTEMPTS)


def socket_path(directory: str | Path, executable: str) -> Path:
    """The socket of the fork server of an instance for a Python.

    It lies in the directory of the instance, or among temporary files if that path is too long for
    a socket.
    """
    name = f"runs-{_digest(executable)}.sock"
    path = Path(directory) / name
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    instance = _digest(os.path.abspath(directory))  # noqa: PTH100 (links stay as they are)
    return Path(tempfile.gettempdir()) / f"{_TEMPORARY}{os.getuid()}-{instance}" / name


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]


def ensure_directory(path: Path) -> None:
    """Make the directory of a socket among temporary files, which only this user may enter.

    Raises:
        PermissionError: it is there already, and others may enter it: they could take requests.
    """
    directory = path.parent
    if not directory.name.startswith(_TEMPORARY):  # that of the instance
        return
    directory.mkdir(mode=0o700, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{directory} belongs to others, or they may enter it")


def server_command(directory: str | Path, executable: str, preload: Sequence[str]) -> list[str]:
    """The command that starts the fork server of an instance."""
    where = os.fspath(socket_path(directory, executable))
    modules = [part for name in preload for part in ("--preload", name)]
    return [executable, "-m", SERVER, "--socket", where, *modules]
