"""The query a command is about: a file or a text on the command line, and the name it goes by."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.diagnostics import Source
from omnigraph_core.errors import CompileError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph_core.config.model import AliasConfig, Config
    from omnigraph_core.diagnostics import Diagnostic

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


def query_text(
    config: Config, path: Path | None, text: str | None, *, alias: AliasConfig | None = None
) -> QueryText:
    """What `--query`, `--query-string` or an alias gives.

    A file that is not an absolute path is looked for beside the configuration, then in the places
    for queries that it names; one given by `--query` in the current directory as well.

    Raises:
        ConfigError: not one of them is given, or the file is not found or cannot be read.
    """
    if alias is not None:
        found = _found(Path(alias.query), config, ())
        return QueryText(read_text(found, what="query file"), alias.query)
    if (path is None) == (text is None):
        raise ConfigError("give exactly one query: with --query or with --query-string")
    if path is None:
        return QueryText(text or "", _ON_THE_LINE)
    found = _found(path, config, (Path(),))
    return QueryText(read_text(found, what="query file"), str(path))


def _found(path: Path, config: Config, more: tuple[Path, ...]) -> Path:
    if path.is_absolute():
        places: tuple[Path, ...] = (path,)
    else:
        beside = () if config.directory is None else (config.directory,)
        places = tuple(place / path for place in (*beside, *config.query_roots, *more))
    for place in places:
        if place.exists():
            return place
    looked = ", ".join(dict.fromkeys(str(place.parent.absolute()) for place in places))
    raise ConfigError(f"query file '{path}' not found", hint=f"looked in {looked}")


@contextmanager
def problems_in(name: str, text: str = "") -> Iterator[None]:
    """Run the block; what a text is refused for is reported under this name.

    Args:
        text: what was given, for the line of each problem; a server leaves it to us.
    """
    try:
        yield
    except CompileError as refused:
        source = Source(text)
        named = [_placed(item, name, source) for item in refused.diagnostics]
        raise type(refused)(named, hint=refused.hint) from refused


def _placed(item: Diagnostic, name: str, source: Source) -> Diagnostic:
    lines = source.text.count("\n") + 1
    shown = item.line_text or (source.line_text(item.line) if item.line <= lines else "")
    return replace(item, file=name, line_text=shown)
