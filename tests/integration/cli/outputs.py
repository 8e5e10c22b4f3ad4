"""Outputs that a command cannot write to, and a folder that it cannot be in.

A shell makes them too, but each time it starts a command that has to load. Tests that say so do it
that way, once for each kind.
"""

from __future__ import annotations

import os
import resource
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omnigraph_core.cli.main import main
from tests.integration.cli.process import ENVIRONMENT, MAIN, Command

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_ROOM: Final = "TEST_ROOM"


class Output(StrEnum):
    FULL = "a file that may not grow"
    UNREAD = "a pipe that nobody reads from"
    CLOSED = "no file at all"


def run_with_output(
    output: Output, *arguments: object, folder: Path, room: int = 0
) -> CompletedProcess[str]:
    """Run a command in a process of its own.

    Args:
        room: bytes that a file which may not grow can hold nevertheless.
    """
    targets = {Output.FULL: f"{__name__}:with_little_room", Output.CLOSED: f"{__name__}:unheard"}
    descriptor = _pipe_without_a_reader() if output is Output.UNREAD else _file(folder / "full")
    complaints, errors = os.pipe()  # a file would be full as well
    with Command(
        *arguments, folder=folder, output=descriptor, errors=errors,
        target=targets.get(output, MAIN), environment=ENVIRONMENT | {_ROOM: str(room)},
    ) as command:  # fmt: skip
        os.close(descriptor)
        os.close(errors)
        with os.fdopen(complaints) as file:
            messages = file.read()
        done = command.end()
    assert "Traceback" not in messages, messages
    done.stderr = messages
    return done


def _pipe_without_a_reader() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def _file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)


def with_little_room() -> None:
    """The command, as `ulimit -f` lets it write."""
    room = int(os.environ.pop(_ROOM))
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    main()


def unheard() -> None:
    """The command, as the interpreter starts it after `>&-`."""
    os.close(1)
    sys.stdout = None
    main()


def with_errors_closed() -> None:
    """The same after `2>&-`."""
    os.close(2)
    sys.stderr = None
    main()


def in_a_folder_that_is_gone() -> None:
    """The command in a folder that somebody else has removed."""
    gone = Path("gone")
    gone.mkdir()
    os.chdir(gone)
    Path("../gone").rmdir()
    main()
