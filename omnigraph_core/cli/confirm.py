"""Asking before something is taken away: a question on stderr, on a terminal alone.

Scripts are never asked: whatever stands at the other end of their stdin is no answer.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph_core.cli.interrupt import interruptible

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")]

_NOTHING = "nothing was changed"


def confirm(question: str, *, is_agreed: bool) -> None:
    """Ask whether to go on, unless that is agreed or nobody can be asked.

    Raises:
        typer.Exit: with 1, after a no.
    """
    if is_agreed or not can_ask() or asked(question):
        return
    typer.echo(_NOTHING, err=True)
    raise typer.Exit(1)


def can_ask() -> bool:
    """Whether a person sits at both ends."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def asked(question: str) -> bool:
    """Whether the answer is a yes; all else is a no."""
    # Not input(): it writes to stdout, where the data goes.
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    with interruptible(lambda: _NOTHING):
        answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        typer.echo(err=True)
    return answer.strip().lower() in ("y", "yes")
