"""The command line in this process: for what needs no process of its own, which starts slowly."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from omnigraph_core.cli.app import run_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO


def run_here(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What a command of ours says, both streams as a terminal shows them.

    Args:
        arguments: with the name of the command.
    """
    with (
        tempfile.TemporaryFile() as output,
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", list(arguments)),
    ):
        with _streams_into(output), pytest.raises(SystemExit):
            run_command()
        output.seek(0)
        return output.read().decode()


@contextlib.contextmanager
def _streams_into(output: BinaryIO) -> Iterator[None]:
    """Both streams of the process, for Python and for libraries."""
    saved = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in saved:
            os.dup2(output.fileno(), number)
        with (
            open(1, "w", encoding="utf-8", closefd=False) as out,
            open(2, "w", encoding="utf-8", closefd=False, buffering=1) as error,
            mock.patch.object(sys, "stdout", out),
            mock.patch.object(sys, "stderr", error),
        ):
            yield
    finally:
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
