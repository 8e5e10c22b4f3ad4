"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import typer

# Spelled out here because the enums they stand for live beside the storage code, whose import
# would slow down every command. A test compares them.
Mode: TypeAlias = Literal["overwrite", "append", "merge"]
Format: TypeAlias = Literal["jsonl", "csv", "parquet", "arrow"]
Embed: TypeAlias = Literal["now", "defer", "off"]
Engine: TypeAlias = Literal["auto", "local", "spark"]

MAIN = "main"

MOST: Final = 2**53 - 1
"""The highest number an option takes: every program that reads JSON has it exactly."""

BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Branch to write to.  [default: main]"),
]
EngineOption = Annotated[
    Engine,
    typer.Option("--engine", help="Who does the work: this process, Spark, or as its size asks."),
]
EmbedOption = Annotated[
    Embed | None,
    typer.Option(
        "--embed",
        help="Vectors that are lacking: make them `now` or fail, `defer` what the provider fails "
        "to make, or `off`.  [default: now]",
    ),
]
NoEmbedOption = Annotated[bool, typer.Option("--no-embed", help="The same as --embed off.")]
IfCommitOption = Annotated[
    str | None,
    typer.Option(
        "--if-commit", metavar="ID", help="Refuse unless this commit is the head of the branch."
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="Do it once: a repeat under the same key returns the first result.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def embed_choice(embed: Embed | None, *, is_off: bool) -> Embed:
    """What `--embed` and `--no-embed` say together.

    Raises:
        typer.BadParameter: they contradict each other.
    """
    if is_off and embed not in (None, "off"):
        raise typer.BadParameter(f"--no-embed and --embed {embed} exclude each other")
    return "off" if is_off else embed or "now"
