"""The warm process: imports what a run needs, waits for requests and forks a process for each.

The server has one thread and opens nothing but its socket: no graph, no connection, no instance of
Dagster. Threads of Lance and of gRPC would not survive a fork, and definitions may be others for
each run; processes make all of that themselves. A forked process does what the command `dagster api
execute_run` does, with which run launchers for containers start runs.
"""

import argparse
import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from dagster import DagsterInstance
from dagster._cli.api import execute_run_command
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import deserialize_value
from dagster._utils import get_run_crash_explanation
from dagster._utils.interrupts import capture_interrupts

from omnigraph_assets.run_launcher.client import GO, SERVER, ensure_directory
from omnigraph_assets.run_launcher.forked_process import forked_pid

_REQUEST_SECONDS: Final = 10.0
_BACKLOG: Final = 64
_BETWEEN_REPORTS: Final = 1.0
"""Seconds until a run is reported again, as failed, for which there was no process."""

Work = Callable[[], int]
"""What a forked process does; its exit code."""


def main(arguments: Sequence[str]) -> int:
    """Serve until asked to end; in forked processes, carry out a request. The exit code."""
    options = _parsed(arguments)
    path = Path(options.socket)
    lock = options.lock
    if lock is None:
        ensure_directory(path)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        # Another process may have started a server. A service waits until that one has ended.
        at_once = fcntl.LOCK_NB if options.until_stdin_ends else 0
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | at_once)
        except BlockingIOError:
            return 0
    listener = _listen(path) if options.listener is None else socket.socket(fileno=options.listener)
    broken = _preload(options.preload)
    # Said before any fork; nothing of Lance runs here.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    gc.collect()
    gc.freeze()  # forked processes share what they do not write to
    work = ForkServer(listener, lock, options, broken).serve()
    # Outside of the server: a forked process ends as any other, and has none of the server's stack.
    return 0 if work is None else work()


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--preload", action="append", default=[])
    parser.add_argument("--until-stdin-ends", action="store_true")
    for inherited in ("--listener", "--lock", "--runs"):  # by a server that has restarted itself
        parser.add_argument(inherited, type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _listen(path: Path) -> socket.socket:
    """A socket that only this user may connect to: whoever can, can run code."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
    finally:
        os.umask(mask)
    listener.listen(_BACKLOG)
    return listener


def _preload(names: Iterable[str]) -> list[str]:
    """Import modules; the files that could not be read, as of one that is just being edited.

    Runs that need a module that is missing or broken say so; the others do without.
    """
    broken: list[str] = []
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, SyntaxError) as problem:
            sys.stderr.write(f"{name} is not preloaded: {problem}\n")
            if isinstance(problem, SyntaxError) and problem.filename:
                broken.append(problem.filename)
    return broken


class ForkServer:
    """Forks a process for each request, and reports runs whose process died.

    Args:
        broken: files of modules that could not be imported.
    """

    def __init__(
        self,
        listener: socket.socket,
        lock: int,
        options: argparse.Namespace,
        broken: Iterable[str] = (),
    ) -> None:
        self._listener = listener
        self._lock = lock
        self._options = options
        self._lifeline = sys.stdin.fileno() if options.until_stdin_ends else None
        self._files = _module_files() | _module_files(broken)
        self._is_asked_to_end = self._is_ending = False
        self._runs: dict[int, str] = {}
        """Requests by the process that carries them out."""
        self._dead: list[tuple[str, int, int]] = []
        """Requests that did not end well, with their process and its code, to be reported."""
        if options.runs is not None:
            with os.fdopen(options.runs) as handed_over:
                self._runs = {int(pid): text for pid, text in json.load(handed_over).items()}

    def serve(self) -> Work | None:
        """Serve to the end; in a forked process return at once, with its work."""
        wakes, woken = socket.socketpair()
        woken.setblocking(False)
        wakes.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_end)
        while True:
            if self._is_asked_to_end:
                self._end()
            if work := self._reap():
                return self._forked(work, wakes, woken)
            if self._is_ending and not self._runs and not self._dead:
                return None
            wait = _BETWEEN_REPORTS if self._dead else None
            ready = select.select(self._sources(wakes), [], [], wait)[0]
            if wakes in ready:
                with contextlib.suppress(BlockingIOError):
                    wakes.recv(4096)
            if self._lifeline in ready:  # it is never written to: this is its end
                self._is_asked_to_end = True
            elif self._listener in ready and (work := self._accept()):
                return self._forked(work, wakes, woken)

    def _sources(self, wakes: socket.socket) -> list[socket.socket | int]:
        sources: list[socket.socket | int] = [wakes]
        if not self._is_ending:
            sources.append(self._listener)
            if self._lifeline is not None:
                sources.append(self._lifeline)
        return sources

    def _ask_to_end(self, *_: object) -> None:
        """Only noted: what is waited for must not be closed meanwhile."""
        self._is_asked_to_end = True

    def _end(self) -> None:
        """Take no more requests. The next server may start now, while runs of this one go on."""
        if not self._is_ending:
            self._is_ending = True
            Path(self._options.socket).unlink(missing_ok=True)
            self._listener.close()
            os.close(self._lock)

    def _accept(self) -> Work | None:
        if not self._dead and self._files != _module_files(self._files):
            self._restart()
        connection = self._listener.accept()[0]
        connection.settimeout(_REQUEST_SECONDS)
        request = _read_request(connection)
        # No process may be forked beside a thread, which a preloaded module may have begun. Whoever
        # gets no answer starts the run in another way.
        if request is not None and threading.active_count() == 1:
            pid = _try_fork()
            if pid == 0:
                return partial(_execute, request, connection)
            if pid is not None:
                self._runs[pid] = request
        connection.close()
        return None

    def _restart(self) -> None:
        """Become a new server: a module has changed on disk. Socket, lock and runs stay."""
        runs = tempfile.TemporaryFile("w+")  # noqa: SIM115 (its descriptor is handed over)
        json.dump(self._runs, runs)
        runs.flush()
        runs.seek(0)
        given = [part for name in self._options.preload for part in ("--preload", name)]
        given += ["--until-stdin-ends"] if self._options.until_stdin_ends else []
        numbers = (self._listener.fileno(), self._lock, runs.fileno())
        for option, number in zip(("--listener", "--lock", "--runs"), numbers, strict=True):
            os.set_inheritable(number, True)
            given += [option, str(number)]
        command = [sys.executable, "-m", SERVER, "--socket", self._options.socket, *given]
        os.execv(sys.executable, command)

    def _reap(self) -> Work | None:
        """Collect processes that have ended; the one that reports a run which did not end well."""
        with contextlib.suppress(ChildProcessError):  # there is none
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, code = ended[0], os.waitstatus_to_exitcode(ended[1])
                request = self._runs.pop(pid, None)
                if request is not None and code != 0:
                    self._dead.append((request, pid, code))
        while self._dead:
            pid_of_report = _try_fork()
            if pid_of_report is None:  # no memory: with the next look
                return None
            reported = self._dead.pop()
            if pid_of_report == 0:
                return partial(_report_failed, *reported)
        return None

    def _forked(self, work: Work, wakes: socket.socket, woken: socket.socket) -> Work:
        """Leave everything of the server behind: its lock would outlive it."""
        signal.set_wakeup_fd(-1)
        wakes.close()
        woken.close()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self._is_ending:
            self._listener.close()
            os.close(self._lock)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        return work


def _read_request(connection: socket.socket) -> str | None:
    """What a caller wants; None if it has gone away, or has said nothing that makes sense."""
    try:
        return str(json.loads(connection.makefile("rb").readline()))
    except (OSError, ValueError):
        return None


def _try_fork() -> int | None:
    """Fork as `os.fork` does; None if the system has no place for a process."""
    try:
        return os.fork()
    except OSError as problem:
        sys.stderr.write(f"no process can be forked: {problem}\n")
        return None


def _module_files(paths: Iterable[str] | None = None) -> dict[str, tuple[int, int] | None]:
    """When the files of all loaded modules, or of those given, were written, and their sizes."""
    if paths is None:
        paths = {file for module in list(sys.modules.values()) if (file := _file_of(module))}
    return {path: _written(path) for path in paths}


def _file_of(module: object) -> str | None:
    file = getattr(module, "__file__", None)
    return file if isinstance(file, str) else None


def _written(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:  # removed, or part of an archive
        return None
    return found.st_mtime_ns, found.st_size


def _execute(request: str, connection: socket.socket) -> int:
    """Execute the run of a request, once whoever has asked for it says so."""
    with capture_interrupts():
        if _may_begin(request, connection):
            execute_run_command.main([request], prog_name="execute_run", standalone_mode=False)
    return 0


def _may_begin(request: str, connection: socket.socket) -> bool:
    """Whether the caller says go; if not, the run starts elsewhere, or not at all.

    Whatever fails until then is the caller's to know, and no failure of the run.
    """
    connection.settimeout(None)  # storage may be slow; that the caller has gone is seen at once
    with connection:
        try:
            directory = _working_directory(request)
            if directory:
                os.chdir(directory)  # as in the code server: settings may hold relative paths
        except (OSError, ValueError) as problem:
            answer: dict[str, object] = {"problem": str(problem)}
        else:
            answer = {"pid": os.getpid()}
        try:
            connection.sendall(f"{json.dumps(answer)}\n".encode())
            return connection.recv(len(GO)) == GO
        except OSError:
            return False


def _working_directory(request: str) -> str | None:
    pointer = deserialize_value(request, ExecuteRunArgs).job_origin.repository_origin.code_pointer
    return getattr(pointer, "working_directory", None)


def _report_failed(request: str, pid: int, code: int) -> int:
    """Mark a run as failed whose process has ended before it could do so itself.

    A run that another process carries out by now, because this one could not begin, stays.
    """
    arguments = deserialize_value(request, ExecuteRunArgs)
    if arguments.instance_ref is None:
        return 1
    with DagsterInstance.from_ref(arguments.instance_ref) as instance:
        run = instance.get_run_by_id(arguments.run_id)
        if run is not None and not run.is_finished and forked_pid(run) == pid:
            prefix = f"Run execution process for {run.run_id}"
            instance.report_engine_event(get_run_crash_explanation(prefix, code), run)
            instance.report_run_failed(run)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
