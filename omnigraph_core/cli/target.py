"""Which graph a command is about, and opening it.

A command that works on a graph takes one parameter `graph: GivenGraph`; `on_graph` gives it the
address in all its forms (`URI`, `--uri`, `--target`), `--config` and `--as`.

The engine is imported only when a graph is opened: checking a query or showing help needs no
storage, and loading it takes longer than either.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer
from typer.models import OptionInfo

from omnigraph_core.cli.options import MAIN, MOST
from omnigraph_core.cli.progress import busy
from omnigraph_core.config.env_file import adopt_env_file
from omnigraph_core.config.find import find_config
from omnigraph_core.diagnostics import did_you_mean
from omnigraph_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager

    from omnigraph_core.config.model import AliasConfig, Config
    from omnigraph_core.engine.omnigraph import Omnigraph

UriArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="URI",
        help="The graph: a path, file:///path, s3://bucket/prefix or the URL of a server.",
        show_default=False,
    ),
]
UriOption = Annotated[
    str | None, typer.Option("--uri", metavar="URI", help="The graph, in place of the argument.")
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="NAME", help="The graph by its name in omnigraph.yaml, or by URL."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Use this file, in place of the nearest omnigraph.yaml."
    ),
]
ActorOption = Annotated[
    str | None, typer.Option("--as", metavar="ACTOR", help="Who does this, for policy and history.")
]

_POSITIONAL: Final = "uri"
_OPTIONS: Final = {
    "uri_option": UriOption,
    "target": TargetOption,
    "config": ConfigOption,
    "actor": ActorOption,
}


@dataclass(frozen=True, slots=True)
class ChosenGraph:
    """The graph a command works on; `name` if it was chosen by its name in the configuration."""

    address: str
    name: str | None = None

    @property
    def is_remote(self) -> bool:
        return is_url(self.address)


class GivenGraph:
    """What the command line says of the graph; nothing is looked up before it is needed."""

    def __init__(
        self,
        *,
        uri: str | None = None,
        uri_option: str | None = None,
        target: str | None = None,
        config: Path | None = None,
        actor: str | None = None,
        alias: AliasConfig | None = None,
        closing: ExitStack | None = None,
        is_quiet: bool = False,
    ) -> None:
        """
        Raises:
            typer.BadParameter: the argument is empty.
        """
        if uri == "":
            raise typer.BadParameter("a graph URI must be provided: the argument is empty")
        self._positional = uri
        self._option = uri_option
        self._target = target
        self._config_path = config
        self._actor = actor
        self._alias = alias
        self._closing = closing or ExitStack()
        self._is_quiet = is_quiet

    @cached_property
    def config(self) -> Config:
        """
        Raises:
            ConfigError: the file is missing though it was named, or is wrong.
        """
        found = find_config(self._config_path)
        adopt_env_file(found)
        for warning in found.warnings:
            typer.echo(f"warning: {warning}", err=True)
        return found

    @property
    def actor(self) -> str | None:
        """Who acts: `--as`, else whom the configuration names; behind a server the token tells.

        Raises:
            typer.BadParameter: `--as` for a graph behind a server.
        """
        if not self.chosen().is_remote:
            return self._actor or self.config.cli.actor
        if self._actor is not None:
            raise typer.BadParameter("--as: the token says who acts on a graph behind a server")
        return None

    def branch(self, flag: str | None) -> str:
        """The branch: the one given, else of the alias, of the configuration, else main."""
        named = None if self._alias is None else self._alias.branch
        return flag or named or self.config.cli.branch or MAIN

    @property
    def address(self) -> str:
        return self.chosen().address

    def by_alias(self, alias: AliasConfig, uri: str | None = None) -> GivenGraph:
        """The same where an alias is used, and with an argument that is the address after all."""
        return self._with(uri, alias)

    def at(self, uri: str | None) -> GivenGraph:
        """The same with an argument that turned out to be the address."""
        return self._with(uri, self._alias)

    def _with(self, uri: str | None, alias: AliasConfig | None) -> GivenGraph:
        changed = GivenGraph(
            uri=uri,
            uri_option=self._option,
            target=self._target,
            config=self._config_path,
            actor=self._actor,
            alias=alias,
            closing=self._closing,
            is_quiet=self._is_quiet,
        )
        changed.__dict__["config"] = self.config  # read once, and its warnings told once
        return changed

    @property
    def given(self) -> tuple[str, ...]:
        """The ways in which the command line says which graph it is; more than one is wrong."""
        ways = {"the argument": self._positional, "--uri": self._option, "--target": self._target}
        return tuple(way for way, value in ways.items() if value)

    @property
    def is_known(self) -> bool:
        """Whether the command line, an alias or the configuration say which graph it is."""
        return bool(self.given or self._name)

    @property
    def _name(self) -> str | None:
        named = None if self._alias is None else self._alias.graph
        return self._target or named or self.config.cli.graph

    def chosen(self) -> ChosenGraph:
        """The address: the one given, else of `--target`, of an alias, of the configuration.

        Raises:
            typer.BadParameter: two addresses were given, or none.
            ConfigError: a name is not in the configuration.
        """
        if len(self.given) > 1:
            ways = " and ".join(self.given)
            raise typer.BadParameter(f"{ways} exclude each other: give one graph")
        address = self._positional or self._option
        if address:
            return ChosenGraph(address)
        if not self._name:
            raise typer.BadParameter(
                "a graph URI must be provided, as an argument, with --uri or with --target, "
                "or as `cli.graph` in omnigraph.yaml"
            )
        return self._by_name(self._name)

    def open(self) -> Omnigraph:
        """The graph itself, or a graph behind a server: it answers the same calls. Closed after
        the command.

        Raises:
            GraphNotFound: there is none at that address.
        """
        from omnigraph_core.cli.opening import open_chosen  # slow: see above

        chosen, actor = self.chosen(), self.actor
        with self.busy(f"opening {chosen.address}"):
            opened = open_chosen(self.config, chosen, actor)
        self._closing.callback(opened.close)
        return opened

    def busy(self, doing: str) -> AbstractContextManager[None]:
        """Run the block; if it takes long, a terminal shows what is being done."""
        return busy(doing, is_quiet=self._is_quiet)

    def _by_name(self, name: str) -> ChosenGraph:
        if is_url(name):
            return ChosenGraph(name)
        graph = self.config.graphs.get(name)
        if graph is None:
            raise ConfigError(
                f"graph '{name}' not found in omnigraph.yaml",
                hint=names_there("graphs", name, self.config.graphs),
            )
        return ChosenGraph(graph.uri, name)


def names_there(what: str, name: str, known: Collection[str]) -> str:
    """What could have been meant by a name the configuration does not have.

    >>> names_there("graphs", "sotck", ["stock", "team"])
    'did you mean `stock`? graphs there: stock, team'
    """
    near = did_you_mean(name, known)
    return " ".join(filter(None, (near, f"{what} there: {', '.join(known) or 'none'}")))


def is_url(address: str) -> bool:
    """
    >>> is_url("https://graphs.example.org/graphs/stock"), is_url("s3://bucket/stock")
    (True, False)
    """
    return address.lower().startswith(("http://", "https://"))


def on_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Let the command line fill a command's parameter `graph: GivenGraph`.

    A command that has a parameter `args`, a list, keeps the argument to itself: it decides whether
    the first one is an address (`GivenGraph.at`).
    """
    has_arguments = "args" in inspect.signature(command).parameters

    @wraps(command)
    def filled(**values: Any) -> None:
        _refuse_extremes(values, filled.__annotations__)
        names = (_POSITIONAL, *_OPTIONS)
        given = {name: values.pop(name) for name in names if name in values}
        with ExitStack() as closing:
            is_quiet = values.get("quiet", False)
            command(graph=GivenGraph(**given, closing=closing, is_quiet=is_quiet), **values)

    offered = dict(_OPTIONS) if has_arguments else {_POSITIONAL: UriArgument, **_OPTIONS}
    _declare(filled, command, offered)
    return filled


def _refuse_extremes(values: dict[str, Any], annotations: dict[str, Any]) -> None:
    """A script whose variable is not set must not reach another graph, branch or actor; and beyond
    what programs count with, numbers are mistakes.

    Raises:
        typer.BadParameter: the text of an option is empty, or its number too high.
    """
    # Its first spelling is where typer keeps a default that is given otherwise.
    options = {
        str(declared.default): values[name]
        for name, annotation in annotations.items()
        if isinstance(declared := getattr(annotation, "__metadata__", (None,))[0], OptionInfo)
    }
    empty = [option for option, value in options.items() if value == ""]
    if empty:
        raise typer.BadParameter(f"{' and '.join(empty)} must not be empty")
    for option, value in options.items():
        if isinstance(value, int) and abs(value) > MOST:
            raise typer.BadParameter(f"{option} {value}: at most {MOST}")


def _declare(
    filled: Callable[..., None], command: Callable[..., None], offered: dict[str, Any]
) -> None:
    """Tell typer what the command takes: its own parameters, and those offered for `graph`."""
    hints = get_type_hints(command, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "graph"
    ]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in offered.items()
    ]
    parameters = [*own, *added]
    # Arguments come in the order of the parameters: the graph is the last one.
    filled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    filled.__annotations__ = {item.name: item.annotation for item in parameters}
