"""The `omnigraph` command.

Exit codes: 0 success, 1 failure (message on stderr), 2 wrong usage, 4 the head is not the commit
that `--if-commit` names, 130 interrupted.

stdout carries data only. Errors raised on purpose are shown as they are; anything else is a bug and
keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from omnigraph_core import __version__
from omnigraph_core.cli.commands import (
    branch,
    change,
    changes,
    commit,
    embed,
    export,
    graph,
    index,
    load,
    maintain,
    query,
    read,
    run,
    schema,
    snapshot,
    tag,
)
from omnigraph_core.errors import DataError, OmnigraphError, PreconditionFailed

app = typer.Typer(
    name="omnigraph",
    help="A typed property graph kept in a lake.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("init")(graph.init)
app.command("load")(load.load)
app.command("ingest")(load.ingest)
app.command("read")(read.read)
app.command("change")(change.change)
app.command("export")(export.export)
app.command("embed")(embed.embed)
app.command("optimize")(maintain.optimize)
app.command("cleanup")(maintain.cleanup)
app.command("verify")(maintain.verify)
app.command("snapshot")(snapshot.snapshot)
branch.app.command("diff")(changes.diff)
commit.app.command("changes")(changes.commit_changes)
app.add_typer(branch.app, name="branch")
app.add_typer(commit.app, name="commit")
app.add_typer(changes.app, name="changes")
app.add_typer(tag.app, name="tag")
app.add_typer(run.app, name="run")
app.add_typer(schema.app, name="schema")
app.add_typer(query.app, name="query")
app.add_typer(index.app, name="index")

_HEAD: Final = "head"
"""What `--if-commit` is about, as the error names it."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        app()
    except OmnigraphError as refused:
        sys.stderr.write(f"error: {_described(refused)}\n")
        sys.exit(_exit_code(refused))
    except OSError as problem:
        if problem.filename is not None:
            raise  # reading is translated where it happens, so this one is a bug
        _discard_output()
        sys.stderr.write(f"error: cannot write the output: {problem.strerror}\n")
        sys.exit(1)


def _described(refused: OmnigraphError) -> str:
    """The message; several problems stand on lines of their own below how many there are."""
    problems = sum(refused.counts.values()) if isinstance(refused, DataError) else 0
    return f"{problems} problems\n{refused}" if problems > 1 else str(refused)


def _exit_code(refused: OmnigraphError) -> int:
    return 4 if isinstance(refused, PreconditionFailed) and refused.member == _HEAD else 1


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
