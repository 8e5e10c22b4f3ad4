"""`omnigraph completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import typer
from typer._completion_classes import completion_init
from typer._completion_shared import get_completion_script

Shell: TypeAlias = Literal["bash", "zsh", "fish"]

ShellArgument = Annotated[
    Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)
]

_PROGRAM: Final = "omnigraph"
_VARIABLE: Final = "_OMNIGRAPH_COMPLETE"

# The scripts ask this program for completions in typer's own way, which it has to be told of.
completion_init()


def completion(shell: ShellArgument) -> None:
    """Print a script that lets a shell complete commands.

    To use it: eval "$(omnigraph completion bash)", or the same where the shell starts.
    """
    script = get_completion_script(prog_name=_PROGRAM, complete_var=_VARIABLE, shell=shell)
    typer.echo(script)
