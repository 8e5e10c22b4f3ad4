"""The graphs of a server: opened when they are first asked for, once per process.

A graph that cannot be opened fails the requests for it and nothing else.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph_core.errors import ConfigError, GraphNotFound, OmnigraphError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from omnigraph_core.config.model import Config
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.policy.model import Judge
    from omnigraph_core.server.options import ServerOptions

DEFAULT_ID: Final = "default"


@dataclass(frozen=True, slots=True)
class Served:
    """A graph as one request sees it: acting as whoever calls."""

    id: str
    uri: str
    """As it is shown: the address, or the id if addresses are hidden."""
    graph: Omnigraph
    judge: Judge | None = None
    """The policy, for what is decided outside of the engine."""


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """Where a graph is and which policy holds there."""

    uri: str
    policy_file: Path | None = None


class Graphs:
    """All graphs of a server by id; one of them is meant when none is named."""

    def __init__(
        self, places: Mapping[str, GraphPlace], default_id: str, *, hides_uris: bool = False
    ) -> None:
        self.default_id = default_id
        self._places = dict(places)
        self._hides_uris = hides_uris
        self._opened: dict[str, tuple[Omnigraph, Judge | None]] = {}
        self._served: dict[tuple[str, str | None], Served] = {}
        self._locks = {graph_id: threading.Lock() for graph_id in self._places}

    @property
    def has_policy(self) -> bool:
        return any(place.policy_file is not None for place in self._places.values())

    def shown(self) -> tuple[tuple[str, str], ...]:
        """The id and the address of each graph, by id."""
        return tuple((graph_id, self._shown(graph_id)) for graph_id in sorted(self._places))

    def try_served(self, graph_id: str | None, actor: str | None) -> Served | None:
        """A graph for a request, unless it has to be opened first: that takes a while.

        Raises:
            GraphNotFound: the server has none of that id.
        """
        known = self._known(graph_id)
        found = self._served.get((known, actor))
        if found is not None or known not in self._opened:
            return found
        graph, judge = self._opened[known]
        found = Served(known, self._shown(known), graph.acting_as(actor), judge)
        self._served[known, actor] = found  # there are only so many actors: those with tokens
        return found

    def served(self, graph_id: str | None, actor: str | None) -> Served:
        """The same, opened if need be.

        Raises:
            GraphNotFound: the server has none of that id, or there is none at its address.
            StorageError: it cannot be opened now.
        """
        known = self._known(graph_id)
        with self._locks[known]:
            if known not in self._opened:
                self._opened[known] = self._open(known)
        found = self.try_served(known, actor)
        assert found is not None, "it has just been opened"
        return found

    def open_default(self) -> None:
        """
        Raises:
            OmnigraphError: why the default graph cannot be opened.
        """
        with self._locks[self.default_id]:
            if self.default_id not in self._opened:
                self._opened[self.default_id] = _opened(self._places[self.default_id])

    def close(self) -> None:
        for graph, _ in self._opened.values():
            graph.close()

    def _known(self, graph_id: str | None) -> str:
        if graph_id is None or graph_id in self._places:
            return graph_id or self.default_id
        if graph_id == DEFAULT_ID:
            return self.default_id
        raise GraphNotFound(f"graph '{graph_id}' not found on this server")

    def _shown(self, graph_id: str) -> str:
        return graph_id if self._hides_uris else self._places[graph_id].uri

    def _open(self, graph_id: str) -> tuple[Omnigraph, Judge | None]:
        try:
            return _opened(self._places[graph_id])
        except GraphNotFound as missing:
            raise GraphNotFound(f"graph '{graph_id}' is not at its address") from missing
        except OmnigraphError as problem:
            raise StorageError(
                f"graph '{graph_id}' cannot be opened now", retryable=True
            ) from problem


def find_graphs(options: ServerOptions, config: Config) -> Graphs:
    """The graphs a server is told to serve: a default one and all local ones of the configuration.

    Raises:
        ConfigError: none is named, or a name is not in the configuration.
    """
    places = {
        name: GraphPlace(graph.uri, graph.policy_file or config.policy.file)
        for name, graph in config.graphs.items()
        if not _is_url(graph.uri)
    }
    if options.uri is not None:
        _refuse_url(options.uri)
        named = next((name for name, place in places.items() if place.uri == options.uri), None)
        default_id = named or DEFAULT_ID
        if named is None:
            places[default_id] = GraphPlace(options.uri, config.policy.file)
    else:
        default_id = _default_name(options, config, tuple(places))
    return Graphs(places, default_id, hides_uris=config.server.hides_uris)


def _default_name(options: ServerOptions, config: Config, local: tuple[str, ...]) -> str:
    name = options.target or config.server.graph
    if name is None and len(local) == 1:
        name = local[0]
    if name is None:
        raise ConfigError(
            "a graph URI must be provided, as an argument or with --target",
            hint="or name one under `server.graph` in omnigraph.yaml",
        )
    if name in config.graphs:
        _refuse_url(config.graphs[name].uri)
    if name not in local:
        known = ", ".join(config.graphs) or "none"
        raise ConfigError(
            f"graph '{name}' not found in omnigraph.yaml", hint=f"graphs there: {known}"
        )
    return name


def _refuse_url(uri: str) -> None:
    if _is_url(uri):
        raise ConfigError(
            f"cannot serve {uri}: it is behind a server already",
            hint="give a path, file:///path or s3://bucket/prefix",
        )


def _is_url(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))


def _opened(place: GraphPlace) -> tuple[Omnigraph, Judge | None]:
    # Slow to load: whatever else is wrong with a server is told before.
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.policy.source import PolicyFile

    judge = None if place.policy_file is None else PolicyFile(place.policy_file, place.uri)
    return Omnigraph.open(place.uri, policy=judge), judge
