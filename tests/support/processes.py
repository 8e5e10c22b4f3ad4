"""Runs a function of a test module in a process of its own: arguments as JSON, talk over pipes.

`spawn` starts it, the `Worker` follows or kills it, the `Outcome` says how it ended. A worker ends
with the process that spawned it, however that one ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.support.warm import ROOT, WarmProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

_LIFELINE: Final = "TEST_WORKER_LIFELINE"
ORPHANED_EXIT_CODE: Final = 87


def spawn(
    target: str, *arguments: Any, env: Mapping[str, str] | None = None, is_cold: bool = False
) -> Worker:
    """Start `package.module:function` with JSON-able arguments; `env` adds to the environment.

    What the function returns, unless None, becomes the last line of its output, as JSON.

    Args:
        is_cold: start from nothing: libraries see `env` as they are loaded, and no more is in
            memory than is used.
    """
    lifeline, held = os.pipe()
    stdin, ours_in = os.pipe()
    ours_out, stdout = os.pipe()
    ours_err, stderr = os.pipe()
    start = _start_cold if is_cold else _start_warm
    process = start(
        [target, json.dumps(arguments)],
        {**os.environ, **(env or {})},
        (stdin, stdout, stderr),
        lifeline,
    )
    for end in (lifeline, stdin, stdout, stderr):
        os.close(end)
    return Worker(target, process, held, ours_in, ours_out, ours_err)


def _start_warm(
    arguments: list[str], env: Mapping[str, str], streams: tuple[int, int, int], lifeline: int
) -> WarmProcess:
    return WarmProcess(
        "tests.support.processes:_main",
        arguments,
        folder=ROOT,
        environment=env,
        streams=streams,
        kept={_LIFELINE: lifeline},
    )


def _start_cold(
    arguments: list[str], env: Mapping[str, str], streams: tuple[int, int, int], lifeline: int
) -> subprocess.Popen[bytes]:
    code = "import sys; del sys.argv[0]; from tests.support.processes import _main; _main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**env, _LIFELINE: str(lifeline)},
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        pass_fds=[lifeline],
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    target: str
    returncode: int
    stdout: str
    stderr: str

    def check(self) -> Outcome:
        """Itself, or an AssertionError that carries what the worker had to say."""
        if self.returncode != 0:
            raise AssertionError(
                f"{self.target} ended with {self.returncode}\n{self.stdout}\n{self.stderr}"
            )
        return self

    def result(self) -> Any:
        """What the function returned."""
        return json.loads(self.check().stdout.splitlines()[-1])


class Worker:
    """A running function. As a context manager it is killed at the end of the block, if needed."""

    def __init__(
        self,
        target: str,
        process: WarmProcess | subprocess.Popen[bytes],
        lifeline: int,
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> None:
        self.target = target
        self._process = process
        self._lifeline: int | None = lifeline
        self._stdin_pipe = os.fdopen(stdin, "w", buffering=1, encoding="utf-8")
        self._stdout_pipe = os.fdopen(stdout, encoding="utf-8")
        self._stderr_pipe = os.fdopen(stderr, encoding="utf-8")
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._stdout: list[str] = []
        self._stderr: list[str] = []
        self._readers = (
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        )
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: str) -> None:
        """One line to the standard input of the worker."""
        self._stdin_pipe.write(line + "\n")
        self._stdin_pipe.flush()

    def lines(self, timeout: float = 120) -> Iterator[str]:
        """Lines of its standard output as they come, until it ends or stays silent too long.

        Raises:
            AssertionError: no line came in time.
        """
        while True:
            try:
                line = self._lines.get(timeout=timeout)
            except queue.Empty:
                raise AssertionError(
                    f"{self.target} said nothing for {timeout} s\n{''.join(self._stderr)}"
                ) from None
            if line is None:
                self._lines.put(None)  # a second iteration ends too
                return
            yield line

    def next_line(self, timeout: float = 120) -> str:
        """The next line, or an AssertionError with its errors when it ended before saying one."""
        for line in self.lines(timeout):
            return line
        raise AssertionError(f"{self.target} ended early\n{self.wait().stderr}")

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed. Harmless on a worker that has ended."""
        self._process.kill()

    def wait(self, timeout: float = 120) -> Outcome:
        """How it ended. A worker that does not end in time is killed.

        Raises:
            AssertionError: it did not end in time.
        """
        try:
            returncode = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
            self._close()
            raise AssertionError(
                f"{self.target} did not end within {timeout} s\n{''.join(self._stderr)}"
            ) from None
        self._close()
        return Outcome(self.target, returncode, "".join(self._stdout), "".join(self._stderr))

    def _close(self) -> None:
        for reader in self._readers:
            reader.join()
        self._stdout_pipe.close()
        self._stderr_pipe.close()
        with contextlib.suppress(BrokenPipeError):  # an unread line for a worker that is gone
            self._stdin_pipe.close()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _read_stdout(self) -> None:
        for line in self._stdout_pipe:
            self._stdout.append(line)
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_stderr(self) -> None:
        self._stderr.extend(self._stderr_pipe)


def say(text: str) -> None:
    """Inside a worker: one line to whoever follows it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def hear() -> str | None:
    """Inside a worker: the next line sent to it, None when there will be no more."""
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _main() -> None:
    target, arguments = sys.argv
    threading.Thread(target=_end_with_parent, daemon=True).start()
    module, _, function = target.partition(":")
    result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    if result is not None:
        say(json.dumps(result))


def _end_with_parent() -> None:
    """The parent never writes: the read returns when its end of the pipe is closed."""
    os.read(int(os.environ[_LIFELINE]), 1)
    os._exit(ORPHANED_EXIT_CODE)
