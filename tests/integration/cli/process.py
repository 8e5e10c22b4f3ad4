"""Commands, run to their end: in this process, in a warm one, or as a shell starts them.

`omnigraph` is for what a command does. A process of its own is for what only a process has:
signals, readers that go away, a terminal. The installed command takes a second to load; it is for
how it starts and how the interpreter ends.
"""

from __future__ import annotations

import functools
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias

import pytest
import typer

from omnigraph_core.cli.main import main
from omnigraph_core.settings import configure_lance
from tests.support import warm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OMNIGRAPH = Path(sys.executable).parent / "omnigraph"
ENVIRONMENT = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
MAIN: Final = "omnigraph_core.cli.main:main"

Streams: TypeAlias = tuple[int, int, int]

_get_command: Final = functools.cache(typer.main.get_command)
"""What all options are is found out once for this process, as for any; it takes longer than most
commands."""


def omnigraph(
    *arguments: object, folder: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder, in this process."""
    return run_here(*arguments, folder=folder, stdin=stdin, environment=ENVIRONMENT | environment)


def omnigraph_process(
    *arguments: object, folder: Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own, which has loaded it before."""
    variables = ENVIRONMENT | environment
    with Command(*arguments, folder=folder, stdin=stdin, environment=variables) as command:
        return command.end()


def installed_omnigraph(
    *arguments: object, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command that is installed, as a shell does."""
    done = subprocess.run(
        [OMNIGRAPH, *map(str, arguments)],
        cwd=folder,
        env=ENVIRONMENT | environment,
        capture_output=True,
        check=False,
    )
    return _result(arguments, done.returncode, done.stdout, done.stderr)


def run_here(
    *arguments: object, folder: Path, environment: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run a command in this process; its streams are files."""
    with ExitStack() as files:
        read, written, complained = _files(files, stdin)
        streams = (read.fileno(), written.fileno(), complained.fileno())
        code = call_main(*arguments, folder=folder, environment=environment, streams=streams)
        return _result(arguments, code, _all_of(written), _all_of(complained))


def call_main(
    *arguments: object, folder: Path, environment: Mapping[str, str], streams: Streams
) -> int:
    """The exit code of a command that finds this process as if it had been started for it.

    Afterwards the process is what it was: a command takes no signals over here, hides pandas from
    no other test, and what it adopts from a file of variables goes with it.
    """
    with pytest.MonkeyPatch.context() as patch, chdir(folder), _environment(environment):
        configure_lance()  # what a process does while it loads
        for name in ("hide_pandas", "make_interrupts_certain"):
            patch.setattr(f"omnigraph_core.cli.main.{name}", lambda: None)
        patch.setattr("typer.main.get_command", _get_command)
        patch.setattr(logging.root, "handlers", [])  # warnings go to stderr, not to pytest
        patch.setattr(sys, "argv", [str(OMNIGRAPH), *map(str, arguments)])
        with _standard_streams(streams, environment.get("PYTHONIOENCODING")):
            with pytest.raises(SystemExit) as ended:
                main()
            sys.stdout.flush()
            sys.stderr.flush()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """All variables there are, for a block."""
    kept = dict(os.environ)
    _set_environment(wanted)
    try:
        yield
    finally:
        _set_environment(kept)


def _set_environment(wanted: Mapping[str, str]) -> None:
    """Touch what differs alone: other threads may read the rest."""
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


@contextmanager
def _standard_streams(given: Streams, encoding: str | None) -> Iterator[None]:
    """Let the descriptors 0, 1 and 2 be others for a block, and the streams of Python be theirs."""
    ours = sys.stdin, sys.stdout, sys.stderr
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, descriptor in enumerate(given):
            os.dup2(descriptor, number)
        errors = "strict" if encoding else "surrogateescape"
        sys.stdin = _stream(0, encoding, errors)
        sys.stdout = _stream(1, encoding, errors, is_prompt=os.isatty(1))
        sys.stderr = _stream(2, encoding, "backslashreplace", is_prompt=True)
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = ours
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _stream(
    number: int, encoding: str | None, errors: str, *, is_prompt: bool = False
) -> io.TextIOWrapper:
    """As the interpreter makes them when it starts."""
    raw = io.FileIO(number, "w" if number else "r", closefd=False)
    raw.name = ("<stdin>", "<stdout>", "<stderr>")[number]
    buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    return io.TextIOWrapper(
        buffer, encoding=encoding or "utf-8", errors=errors, line_buffering=is_prompt
    )


class Command:
    """A command that runs in a process of its own, forked from one that has loaded it.

    Its streams are the descriptors given, and files that `end` reads. A context manager: it ends
    with the block.

    Args:
        target: what it runs; all but the usual one call it after they have made it a place.
    """

    def __init__(
        self,
        *arguments: object,
        folder: Path,
        stdin: bytes | int = b"",
        output: int | None = None,
        errors: int | None = None,
        target: str = MAIN,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        self._arguments = arguments
        self._stack = ExitStack()
        given = stdin if isinstance(stdin, bytes) else b""
        read, self._written, self._complained = _files(self._stack, given)
        streams = (
            read.fileno() if isinstance(stdin, bytes) else stdin,
            self._written.fileno() if output is None else output,
            self._complained.fileno() if errors is None else errors,
        )
        self._process = warm.WarmProcess(
            target,
            [str(OMNIGRAPH), *map(str, arguments)],
            folder=folder,
            environment=environment,
            streams=streams,
        )
        self._stack.callback(self._process.kill)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        self.send_signal(signal.SIGINT)

    def send_signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def has_ended(self) -> bool:
        try:
            self._process.wait(0)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Wait for it; what went to a descriptor that was given is not part of the result."""
        code = self._process.wait(timeout)
        return _result(self._arguments, code, _all_of(self._written), _all_of(self._complained))


def _files(stack: ExitStack, stdin: bytes) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """One with what there is to read, and two to write to."""
    read, written, complained = (
        stack.enter_context(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - the stack closes
        for _ in range(3)
    )
    read.write(stdin)
    read.seek(0)
    return read, written, complained


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _result(
    arguments: tuple[object, ...], code: int, output: bytes, errors: bytes
) -> subprocess.CompletedProcess[str]:
    complained = errors.decode()
    assert "Traceback" not in complained, complained
    return subprocess.CompletedProcess([*map(str, arguments)], code, output.decode(), complained)
