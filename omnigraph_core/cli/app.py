"""All commands of `omnigraph`, and how they end.

Exit codes: 0 success, 1 failure (message on stderr), 2 wrong usage, 4 the head is not the commit
that `--if-commit` names, 130 interrupted.

stdout carries data only. Errors raised on purpose and those of the system are shown as they are;
anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from omnigraph_core import __version__
from omnigraph_core.cli.commands import (
    blob,
    branch,
    change,
    changes,
    commit,
    completion,
    embed,
    explain,
    export,
    graph,
    index,
    job,
    load,
    maintain,
    policy,
    query,
    read,
    run,
    schema,
    serve,
    snapshot,
    tag,
)
from omnigraph_core.cli.interrupt import INTERRUPTED
from omnigraph_core.cli.options import JsonOption  # noqa: TC001 - typer reads annotations
from omnigraph_core.cli.output import is_coloured, print_json, visible
from omnigraph_core.errors import DataError, OmnigraphError, PreconditionFailed

_OF_COMMANDS: Final = ("--config", "--target", "--uri", "--as", "--branch", "--json")


class Commands(TyperGroup):
    """All commands; says where an option belongs that stands before its command, and that one was
    interrupted if the command itself does not say more.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0].partition("=")[0] if args else ""
        if first in _OF_COMMANDS:
            raise typer.BadParameter(
                f"{first} belongs after the command: omnigraph COMMAND {first} …", ctx=ctx
            )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="omnigraph",
    cls=Commands,
    help="A typed property graph kept in a lake.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("init", cls=graph.ExampleCommand)(graph.init)
app.command("load")(load.load)
app.command("ingest")(load.ingest)
app.command("read")(read.read)
app.command("change")(change.change)
app.command("mutate", help="Another name for `change`.")(change.change)
app.command("lint")(query.lint)
app.command("check", help="Another name for `lint`.")(query.lint)
app.command("explain")(explain.explain)
app.command("export")(export.export)
app.command("embed")(embed.embed)
app.command("optimize")(maintain.optimize)
app.command("cleanup")(maintain.cleanup)
app.command("verify")(maintain.verify)
app.command("snapshot")(snapshot.snapshot)
app.command("serve", context_settings=serve.PASSED_ON, add_help_option=False)(serve.serve)
app.command("completion")(completion.completion)
app.add_typer(graph.app, name="graphs")
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
app.add_typer(policy.app, name="policy")
app.add_typer(blob.app, name="blob")
app.add_typer(job.app, name="job")

_PROGRAM: Final = "omnigraph"
_HEAD: Final = "head"
"""What `--if-commit` is about, as the error names it."""


def run_command() -> None:
    """Run the command line and leave with its exit code."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # A name that the locale of a terminal does not have is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name=_PROGRAM)
    except OmnigraphError as refused:
        _tell(_described(refused))
        sys.exit(_exit_code(refused))
    except OSError as problem:
        if problem.filename is None:
            _discard_output()
        where = "cannot write the output" if problem.filename is None else problem.filename
        _tell(f"{where}: {problem.strerror}")
        sys.exit(1)


def _tell(message: str) -> None:
    label = typer.style("error:", fg="red") if is_coloured(sys.stderr) else "error:"
    # What a server or a file says may hold anything, and a terminal obeys control characters.
    typer.echo(f"{label} {visible(message)}", err=True)


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
def version(as_json: JsonOption = False) -> None:
    """Show the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        _show_version(True)
