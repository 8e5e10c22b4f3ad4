"""The query a command is about: a file or a text on the command line, and the name it goes by."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Iterator

QueryOption = Annotated[
    Path | None, typer.Option("--query", metavar="FILE", help="Query file (.gq).")
]
QueryStringOption = Annotated[
    str | None,
    typer.Option("--query-string", "-e", metavar="TEXT", help="The query, in place of a file."),
]
NameOption = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Which query, if there are several.")
]

_ON_THE_LINE: Final = "query string"


@dataclass(frozen=True, slots=True)
class QueryText:
    """Query text, and what its problems are reported under."""

    text: str
    name: str


def query_text(path: Path | None, text: str | None) -> QueryText:
    """What `--query` or `--query-string` gives.

    Raises:
        typer.BadParameter: both are given, or neither.
        ConfigError: the file cannot be read.
    """
    if (path is None) == (text is None):
        raise typer.BadParameter("give a query with --query or with --query-string, one of them")
    if path is not None:
        return QueryText(read_text(path, what="query file"), str(path))
    return QueryText(text or "", _ON_THE_LINE)


@contextmanager
def problems_in(name: str) -> Iterator[None]:
    """Run the block; what a query text is refused for is reported under this name."""
    try:
        yield
    except CompileError as refused:
        named = [replace(item, file=name) for item in refused.diagnostics]
        raise type(refused)(named, hint=refused.hint) from refused
