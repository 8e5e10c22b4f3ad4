"""The query a command runs: its text, its name, its graph, and values given by place.

Options name a file, give the text, or name an alias of the configuration. Without an alias the
command takes one argument, the graph; with one, arguments are values for it, and the first is the
graph only if nothing else says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph_core.cli.params import read_value
from omnigraph_core.cli.query_text import QueryText, problems_in, query_text
from omnigraph_core.cli.target import names_there
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from omnigraph_core.cli.target import GivenGraph
    from omnigraph_core.config.model import AliasConfig, Config, Form
    from omnigraph_core.query.ast import TypeRef

ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="URI|VALUE",
        help="The graph: a path, file:///path, s3://bucket/prefix or the URL of a server. With "
        "--alias: values for it, after the graph if nothing else says which.",
        show_default=False,
    ),
]
AliasOption = Annotated[
    str | None,
    typer.Option("--alias", metavar="NAME", help="A query by its name in omnigraph.yaml."),
]

_TEXTS: Final = ("String", "Date", "DateTime", "Blob")
"""Types whose values are texts in JSON."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query to run on a graph."""

    graph: GivenGraph
    query: QueryText
    name: str | None = None
    values: Mapping[str, object] | None = None
    """Parameters an alias has got by place; those given by name are stronger."""
    form: Form | None = None

    def params(self, by_name: Mapping[str, object]) -> dict[str, object]:
        return {**(self.values or {}), **by_name}


def asked(
    graph: GivenGraph,
    args: Sequence[str] | None,
    *,
    alias: str | None,
    query: Path | None,
    query_string: str | None,
    name: str | None,
    is_mutation: bool,
) -> Asked:
    """
    Raises:
        typer.BadParameter: an argument too many.
        ConfigError: not one query is named, or there is no such alias or file.
        CompileError: the text of an alias with values cannot be read as queries.
    """
    if [alias, query, query_string].count(None) != 2:
        raise ConfigError(
            "give exactly one query: with --query, with --query-string or with --alias"
        )
    arguments = list(args or ())
    if alias is not None:
        found = _alias(graph.config, alias, is_mutation=is_mutation)
        return _by_alias(graph, arguments, found, name)
    if len(arguments) > 1:
        raise typer.BadParameter(
            f"one argument is expected, the graph; values go with --alias: {arguments[1]!r}"
        )
    at = graph.at(arguments[0] if arguments else None)
    return Asked(at, query_text(at.config, query, query_string), name)


def _alias(config: Config, name: str, *, is_mutation: bool) -> AliasConfig:
    found = config.aliases.get(name)
    if found is None:
        raise ConfigError(
            f"alias '{name}' not found in omnigraph.yaml",
            hint=names_there("aliases", name, config.aliases),
        )
    if found.is_mutation != is_mutation:
        command = "change" if found.is_mutation else "read"
        raise ConfigError(
            f"alias '{name}' is for `{command}`", hint=f"use `omnigraph {command} --alias {name}`"
        )
    return found


def _by_alias(
    graph: GivenGraph, arguments: list[str], alias: AliasConfig, name: str | None
) -> Asked:
    at = graph.by_alias(alias)
    if not at.is_known and arguments:
        at = at.at(arguments.pop(0))
    text = query_text(at.config, None, None, alias=alias)
    chosen = name or alias.query_name
    return Asked(at, text, chosen, _values(alias, arguments, text, chosen), alias.format)


def _values(
    alias: AliasConfig, arguments: Sequence[str], text: QueryText, name: str | None
) -> dict[str, object]:
    if len(arguments) > len(alias.args):
        takes = ", ".join(alias.args) or "none"
        raise ConfigError(
            f"alias '{alias.name}' takes {len(alias.args)} values, got {len(arguments)}",
            hint=f"its values in their order: {takes}",
        )
    if not arguments:
        return {}
    types = _declared(text, name)
    given = zip(alias.args, arguments, strict=False)
    return {param: value_of(argument, types.get(param)) for param, argument in given}


def _declared(text: QueryText, name: str | None) -> dict[str, TypeRef]:
    from omnigraph_core.query.check import select_query  # slow, and for values of an alias only
    from omnigraph_core.query.parse import parse_queries

    with problems_in(text.name, text.text):
        query = select_query(parse_queries(text.text, text.name), name)
    return {str(param.name): param.type for param in query.params}


def value_of(argument: str, declared: TypeRef | None) -> object:
    """What an argument says, as the parameter it is for is declared.

    JSON where it is JSON, else a text; a parameter that takes texts gets numbers as texts too.

    >>> value_of("29", None), value_of("M8", None), value_of("null", None)
    (29, 'M8', None)
    """
    try:
        value = read_value(argument)
    except (ValueError, RecursionError):
        return argument
    if declared is None or declared.is_list or declared.name not in _TEXTS:
        return value
    is_null = value is None and declared.is_nullable
    return value if isinstance(value, str) or is_null else argument
