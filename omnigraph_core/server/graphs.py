"""The graphs of a server: opened when they are first asked for, once per process.

A graph that cannot be opened, or whose store does not answer, fails the requests for it and nothing
else: it is opened on a thread of its own, by one attempt for all who wait. A graph has one policy,
however its address is written.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from omnigraph_core.errors import ConfigError, GraphNotFound, OmnigraphError, StorageError
from omnigraph_core.server.hiding import Hiding, hiding_of
from omnigraph_core.storage.uri import normal_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from omnigraph_core.config.model import Config
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.policy.model import Judge
    from omnigraph_core.server.options import ServerOptions

_LOG: Final = logging.getLogger("omnigraph.server")

DEFAULT_ID: Final = "default"
OPEN_SECONDS: Final = 10.0
"""A request waits for a graph to be opened; the attempt itself goes on."""

_Opened: TypeAlias = "tuple[Omnigraph, Judge | None]"


@dataclass(frozen=True, slots=True)
class Served:
    """A graph as one request sees it: acting as whoever calls."""

    id: str
    uri: str
    """As it is shown: the address, or the id if addresses are hidden."""
    graph: Omnigraph
    judge: Judge | None = None
    """The policy, for what is decided outside of the engine."""
    hiding: Hiding = field(default_factory=lambda: Hiding({}))
    """Takes addresses out of what is told."""


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
        self.hiding = hiding_of(self._addresses()) if hides_uris else Hiding({})
        self._opened: dict[str, _Opened] = {}
        self._opening: dict[str, Future[_Opened]] = {}
        self._served: dict[tuple[str, str | None], Served] = {}
        self._lock = threading.Lock()

    @property
    def has_policy(self) -> bool:
        return any(place.policy_file is not None for place in self._places.values())

    def shown(self) -> tuple[tuple[str, str], ...]:
        """The id and the address of each graph, by id."""
        return tuple((graph_id, self._shown(graph_id)) for graph_id in sorted(self._places))

    def check(self, graph_id: str | None) -> None:
        """
        Raises:
            GraphNotFound: the server has none of that id.
        """
        self._known(graph_id)

    def check_policies(self) -> None:
        """
        Raises:
            ConfigError: a policy cannot be used; tells every problem of all of them.
        """
        from omnigraph_core.policy.load import load_policy

        problems = []
        files = {place.policy_file for place in self._places.values()}
        for path in sorted(path for path in files if path is not None):
            try:
                load_policy(path)
            except ConfigError as problem:
                problems.append(problem.message)
        if problems:
            raise ConfigError("\n".join(problems))

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
        mine = graph.acting_as(actor)
        found = Served(known, self._shown(known), mine, judge, self.hiding)
        self._served[known, actor] = found  # there are only so many actors: those with tokens
        return found

    async def served(self, graph_id: str | None, actor: str | None) -> Served:
        """The same, opened if need be.

        Raises:
            GraphNotFound: the server has none of that id, or there is none at its address.
            StorageError: it cannot be opened, or not in time.
        """
        known = self._known(graph_id)
        attempt = asyncio.wrap_future(self._attempt(known))
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                await attempt  # one under way is not stopped: others wait for it too
        except TimeoutError as late:
            raise StorageError(
                f"graph '{known}' is still being opened: its store does not answer", retryable=True
            ) from late
        found = self.try_served(known, actor)
        assert found is not None, "it has just been opened"
        return found

    def open_default(self) -> None:
        """
        Raises:
            OmnigraphError: why the default graph cannot be opened.
        """
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

    def _addresses(self) -> Iterable[tuple[str, str]]:
        return ((graph_id, place.uri) for graph_id, place in self._places.items())

    def _attempt(self, graph_id: str) -> Future[_Opened]:
        """The attempt to open a graph that is under way, or a new one."""
        with self._lock:
            if graph_id in self._opened:
                attempt: Future[_Opened] = Future()
                attempt.set_result(self._opened[graph_id])
                return attempt
            if graph_id in self._opening:
                return self._opening[graph_id]
            attempt = self._opening[graph_id] = Future()
        attempt.set_running_or_notify_cancel()
        threading.Thread(
            target=self._open, args=(graph_id, attempt), name=f"open-{graph_id}", daemon=True
        ).start()
        return attempt

    def _open(self, graph_id: str, attempt: Future[_Opened]) -> None:
        opened: _Opened | None = None
        problem: OmnigraphError | None = None
        try:
            opened = _opened(self._places[graph_id])
        except OmnigraphError as found:
            _LOG.error("graph '%s' cannot be opened: %s", graph_id, found)
            problem = found
        finally:  # whatever happens, nobody waits for ever
            with self._lock:
                del self._opening[graph_id]
                if opened is not None:
                    self._opened[graph_id] = opened
            if opened is not None:
                attempt.set_result(opened)
            else:
                attempt.set_exception(_unopened(graph_id, problem))


def _unopened(graph_id: str, problem: OmnigraphError | None) -> OmnigraphError:
    """What clients are told: why is the business of whoever runs the server."""
    told: OmnigraphError
    if isinstance(problem, GraphNotFound):
        told = GraphNotFound(f"graph '{graph_id}' is not at its address")
    elif isinstance(problem, ConfigError):
        told = StorageError(
            f"graph '{graph_id}' cannot be opened: it is not set up right; the log of the server "
            "says how"
        )
    else:
        told = StorageError(f"graph '{graph_id}' cannot be opened now", retryable=True)
    told.__cause__ = problem
    return told


def find_graphs(options: ServerOptions, config: Config) -> Graphs:
    """The graphs a server is told to serve: a default one and all local ones of the configuration.

    Raises:
        ConfigError: none is named, a name is not in the configuration, or one graph has two
            policies.
    """
    places = {
        name: GraphPlace(graph.uri, graph.policy_file or config.policy.file)
        for name, graph in config.graphs.items()
        if not _is_url(graph.uri)
    }
    by_address = _by_address(places)
    if options.uri is not None:
        _refuse_url(options.uri)
        named = by_address.get(normal_address(options.uri))
        default_id = named or DEFAULT_ID
        if named is None:
            places[default_id] = GraphPlace(options.uri, config.policy.file)
    else:
        default_id = _default_name(options, config, tuple(places))
    return Graphs(places, default_id, hides_uris=config.server.hides_uris)


def _by_address(places: Mapping[str, GraphPlace]) -> dict[str, str]:
    """Names by address, however it is written."""
    found: dict[str, str] = {}
    for name, place in places.items():
        first = found.setdefault(normal_address(place.uri), name)
        if places[first].policy_file != place.policy_file:
            raise ConfigError(
                f"`{first}` and `{name}` are the same graph and have different policies",
                hint="give both the same `policy.file`, or remove one of them",
            )
    return found


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


def _opened(place: GraphPlace) -> _Opened:
    # Slow to load: whatever else is wrong with a server is told before.
    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.policy.source import PolicyFile

    judge = None if place.policy_file is None else PolicyFile(place.policy_file, place.uri)
    return Omnigraph.open(place.uri, policy=judge), judge
