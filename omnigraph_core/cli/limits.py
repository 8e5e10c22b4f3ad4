"""What a query of the command line may use: seconds, bytes and machines, as in the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from omnigraph_core import settings

if TYPE_CHECKING:
    from omnigraph_core.settings import Setting

T = TypeVar("T")

TimeoutOption = Annotated[
    str | None,
    typer.Option("--timeout", metavar="SECONDS", help="Stop the query if it takes longer."),
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", metavar="BYTES", help="Stop it if its rows need more: 512M, 4G."),
]
EngineOption = Annotated[
    Literal["local", "spark", "auto"],
    typer.Option(
        "--engine", help="Where the query runs: in this process, on Spark, or there if it is large."
    ),
]


def read_limits(timeout: str | None, memory: str | None) -> tuple[float | None, int | None]:
    """Seconds and bytes; None leaves a limit to the settings.

    Raises:
        typer.BadParameter: one is not a number of them.
    """
    return _parsed("--timeout", timeout, settings.QUERY_TIMEOUT), _parsed(
        "--memory", memory, settings.QUERY_MEMORY
    )


def _parsed(option: str, text: str | None, setting: Setting[T]) -> T | None:
    if text is None:
        return None
    try:
        return setting.parse(text)
    except ValueError as problem:
        raise typer.BadParameter(f"{option} {text!r}: {problem}") from problem
