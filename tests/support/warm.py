"""Processes that need not load the engine first: forked from one that has, and has run nothing.

A command takes a second to load what it needs and a few milliseconds to do its work; a suite of
thousands of commands would spend most of its time on loading the same files. These start with them
loaded, and are processes of their own in every other way: streams, environment, folder, signals,
end. How a command starts from nothing is tested too, with the `omnigraph` that is installed.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from omnigraph_core import failpoints
from omnigraph_core.settings import FAILPOINTS, configure_lance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT: Final = Path(__file__).parent.parent.parent
_NUMBER: Final = 8  # bytes of a process id, an exit code or a number of microseconds
_STARTER: Final = "TEST_PROCESS_STARTER"
"""Names the descriptor of the way to the starter, for commands of a shell."""


class WarmProcess:
    """Calls `module:function` in a process of its own, the arguments being its `sys.argv`.

    Its streams are the file descriptors given, its environment is all it is given. Descriptors that
    it is to have as well are `kept` under numbers of their own, told in the environment.
    """

    cpu_seconds: ClassVar[float] = 0.0
    """Of all such processes that this one has waited for."""

    def __init__(
        self,
        target: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        streams: tuple[int, int, int],
        kept: Mapping[str, int] | None = None,
    ) -> None:
        self.returncode: int | None = None
        kept = kept or {}
        asked = {
            "target": target,
            "arguments": list(arguments),
            "folder": os.fspath(folder),
            "environment": dict(environment),
            "kept": list(kept),
        }
        sys.audit("omnigraph.test_process_started")
        self._status, their_end = os.pipe()
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(asked).encode())
            request.seek(0)
            given = [request.fileno(), their_end, *streams, *kept.values()]
            socket.send_fds(_starter(), [b"?"], given)
        os.close(their_end)
        self.pid = self._read_number()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code: that of `subprocess`, negative where a signal ended it.

        Raises:
            subprocess.TimeoutExpired: it did not end in time.
        """
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = self._read_number()
            WarmProcess.cpu_seconds += self._read_number() / 1e6
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, None as long as it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """If it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, if it has not ended."""
        self.send_signal(signal.SIGKILL)

    def _read_number(self) -> int:
        number = os.read(self._status, _NUMBER)
        assert number, "the process that starts the others has ended"
        return int.from_bytes(number, "big", signed=True)


def run(
    target: str,
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes = b"",
    seconds: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a process to its end.

    Raises:
        subprocess.TimeoutExpired: it was killed because it did not end in time.
    """
    with (
        tempfile.TemporaryFile() as read,
        tempfile.TemporaryFile() as written,
        tempfile.TemporaryFile() as complained,
    ):
        read.write(stdin)
        read.seek(0)
        process = WarmProcess(
            target,
            arguments,
            folder=folder,
            environment=environment,
            streams=(read.fileno(), written.fileno(), complained.fileno()),
        )
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        written.seek(0)
        complained.seek(0)
        return subprocess.CompletedProcess(
            [target, *arguments], code, written.read(), complained.read()
        )


def shell_command(target: str, path: Path) -> dict[str, str]:
    """Write a command that a shell starts as a warm process: its environment, beside the shell's.

    The shell is started with `close_fds=False`: its commands ask the starter of this process.
    """
    path.write_text(
        f"#!{sys.executable} -SE\n"
        f"import sys; sys.path[:0] = [{os.fspath(ROOT)!r}]\n"
        f"from tests.support.warm import stand_in; stand_in({target!r})\n"
    )
    path.chmod(0o755)
    os.set_inheritable(_starter().fileno(), True)
    return {_STARTER: str(_starter().fileno())}


def stand_in(target: str) -> None:
    """Be the command: the same streams, folder and environment, and the same end."""
    process = WarmProcess(
        target, sys.argv, folder=Path.cwd(), environment=os.environ, streams=(0, 1, 2)
    )
    code = process.wait()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


@functools.cache
def _starter() -> socket.socket:
    """The way to the process that the others are forked from; it ends with this one."""
    if number := os.environ.pop(_STARTER, None):
        return socket.socket(fileno=int(number))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm", str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            pass_fds=[theirs.fileno()],
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _start_what_is_asked(control: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. In a forked process: what it is to do. None when nobody asks."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(running)
        if control.fileno() not in ready:
            continue
        message, given, _, _ = socket.recv_fds(control, 1, 64)
        if not message:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lance warns of forks: nothing of it has run here
            pid = os.fork()
        request, status, *streams = given
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (control.detach(), woken, waker, status, *running.values()):
                os.close(end)
            return _become(request, streams)
        running[pid] = status
        os.write(status, _encode(pid))
        for end in (request, *streams):
            os.close(end)


def _tell_ends(running: dict[int, int]) -> None:
    while running:
        pid, status, used = os.wait4(-1, os.WNOHANG)
        if pid == 0:
            return
        end = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        microseconds = int((used.ru_utime + used.ru_stime) * 1e6)
        with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
            os.write(end, _encode(code) + _encode(microseconds))
        os.close(end)


def _encode(number: int) -> bytes:
    return number.to_bytes(_NUMBER, "big", signed=True)


def _become(request: int, streams: list[int]) -> dict[str, Any]:
    """Take the streams, the folder and the environment of the request."""
    with open(request, "rb") as file:
        asked: dict[str, Any] = json.load(file)
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.environ.update(
        (name, str(end)) for name, end in zip(asked["kept"], streams[3:], strict=True)
    )
    configure_lance()  # as a process does while it loads
    _arm_failpoints()
    os.chdir(asked["folder"])
    sys.stdin = _stream(0, "<stdin>", "surrogateescape")
    sys.stdout = _stream(1, "<stdout>", "surrogateescape", is_prompt=os.isatty(1))
    sys.stderr = _stream(2, "<stderr>", "backslashreplace", is_prompt=True)
    return asked


def _arm_failpoints() -> None:
    """As the environment says now: points that are loaded already were armed by another one."""
    plans = FAILPOINTS.read()
    for point in failpoints.declared():
        if plan := plans.get(point.name):
            point._armed = failpoints._parse_plan(plan)


def _stream(number: int, name: str, errors: str, *, is_prompt: bool = False) -> io.TextIOWrapper:
    """As the interpreter makes them when it starts."""
    raw = io.FileIO(number, "w" if number else "r", closefd=False)
    raw.name = name
    buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=is_prompt)


def _main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    importlib.import_module("tests.support.loaded")
    gc.freeze()  # a forked process would copy every page whose objects it looks at
    asked = _start_what_is_asked(control)
    if asked is not None:
        module, _, function = asked["target"].partition(":")
        sys.argv = asked["arguments"]
        _call_and_end(getattr(importlib.import_module(module), function))


def _call_and_end(function: Callable[[], object]) -> None:
    """Call it and do all that is done at the end, but for taking the interpreter apart: that takes
    longer than most commands.
    """
    code: object = 0
    try:
        function()
    except SystemExit as ended:
        code = ended.code or 0
        if not isinstance(code, int):
            raise
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):  # the interpreter has words and an exit code for it
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    _main()
