"""The `omnigraph` command. Exit codes: 0 success, 1 failure (message on stderr), 2 wrong usage.

stdout carries data only. Errors raised on purpose are shown as they are; anything else is a bug and
keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from omnigraph_core import __version__
from omnigraph_core.cli.commands import query
from omnigraph_core.errors import OmnigraphError

app = typer.Typer(
    name="omnigraph",
    help="A typed property graph kept in a lake.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(query.app, name="query")


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        app()
    except OmnigraphError as refused:
        sys.stderr.write(f"error: {refused}\n")
        sys.exit(1)
    except OSError as problem:
        if problem.filename is not None:
            raise  # reading is translated where it happens, so this one is a bug
        _discard_output()
        sys.stderr.write(f"error: cannot write the output: {problem.strerror}\n")
        sys.exit(1)


def _discard_output() -> None:
    """Let what stdout still holds go nowhere: Python would try, fail and complain at exit."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"omnigraph {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", callback=_show_version, is_eager=True, help="Show version."
        ),
    ] = False,
) -> None:
    """A typed property graph kept in a lake."""


@app.command()
def version() -> None:
    """Show the version."""
    _show_version(True)
