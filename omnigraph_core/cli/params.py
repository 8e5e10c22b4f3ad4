"""Query parameters from the command line: JSON text in, one object out.

Numbers keep every digit; what JSON does not allow, and a name given twice, is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from omnigraph_core.cli.files import read_text
from omnigraph_core.errors import ConfigError

ParamsOption = Annotated[
    str | None, typer.Option("--params", metavar="JSON", help="Parameters, a JSON object.")
]
ParamsFileOption = Annotated[
    Path | None,
    typer.Option("--params-file", metavar="FILE", help="File that holds the parameters."),
]


def read_params(text: str | None, path: Path | None) -> dict[str, object]:
    """The parameters of `--params` or `--params-file`; none if neither is given.

    Raises:
        typer.BadParameter: both are given.
        ConfigError: not a JSON object.
    """
    if text is not None and path is not None:
        raise typer.BadParameter("--params and --params-file exclude each other")
    if path is not None:
        return _parse(read_text(path, what="parameter file"), str(path))
    return {} if text is None else _parse(text, "--params")


def read_value(text: str) -> object:
    """One JSON value.

    Raises:
        ValueError, RecursionError: it is none.
    """
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_members)


def _parse(text: str, name: str) -> dict[str, object]:
    try:
        found = read_value(text)
    except RecursionError as problem:
        raise ConfigError(f"{name}: nested too deeply") from problem
    except ValueError as problem:
        raise ConfigError(f"{name}: expected a JSON object: {problem}") from problem
    if not isinstance(found, dict):
        raise ConfigError(f"{name}: expected a JSON object, found {_shown(found)}")
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON value")


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise ValueError(f"`{twice}` is given twice")
    return members


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"
