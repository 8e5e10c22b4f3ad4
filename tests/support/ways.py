"""One graph reached in several ways, and what both ends say of it compared value by value.

A graph is always made at hand. It is then reached as programs reach it: by its path, by an `s3://`
address, or by the URL of a server process that serves many places, most of them still empty.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa
import pytest

from omnigraph_core import connect
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.engine.verifying.model import Finding
from omnigraph_core.errors import OmnigraphError
from omnigraph_core.manifest.image import GraphCommit
from omnigraph_core.manifest.snapshot import Snapshot
from omnigraph_core.plan.report import PlanReport
from omnigraph_core.query.descriptor import ResultColumn
from omnigraph_core.settings import EMBED_PROVIDER, SERVER_SPOOL
from omnigraph_core.write.blobs import Blob
from tests.support.server import server_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from tests.support.s3 import S3Server

T = TypeVar("T")

_PLACES: Final = 400
"""Graphs a server knows by name; those that no test has made yet are not there."""
_SERVER_SIDE: Final = frozenset({"incarnation", "idempotency_key", "request_digest", "summary"})
"""Of a commit: where its branch is kept and what a repeat is answered with is not told."""


class Way(StrEnum):
    PATH = "path"
    HTTP = "http"
    S3 = "s3"
    HTTP_OVER_S3 = "http+s3"

    @property
    def is_remote(self) -> bool:
        return self in (Way.HTTP, Way.HTTP_OVER_S3)

    @property
    def is_on_s3(self) -> bool:
        return self in (Way.S3, Way.HTTP_OVER_S3)


NOT_ON_S3: Final = pytest.mark.parametrize(
    "way", [Way.PATH, Way.HTTP], indirect=True, scope="module"
)
"""For what is decided before a store is asked, or is shown for every store elsewhere."""


@dataclass(frozen=True, slots=True)
class Place:
    """A graph as its way shows it, and the same graph at hand through a handle of its own."""

    way: Way
    graph: Omnigraph
    at_hand: Omnigraph

    def both(self, call: Callable[[Omnigraph], T]) -> T:
        """What a call gives on this way; of a server, what it gives at hand as well."""
        found = call(self.graph)
        if self.way.is_remote:
            assert told(found) == told(call(self.at_hand))
        return found

    def raised(self, call: Callable[[Omnigraph], object]) -> OmnigraphError:
        """What a call is refused with on this way; by a server, as it is refused at hand."""
        found = _refused(call, self.graph)
        if self.way.is_remote:
            expected = _refused(call, self.at_hand)
            assert type(found) is type(expected)
            assert facts(found) == facts(expected)
        return found


def facts(error: OmnigraphError) -> dict[str, object]:
    """Everything callers can learn of an error."""
    return {
        "kind": error.kind,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "details": json.loads(json.dumps(error.details())),
        "retryable": error.retryable,
    }


def _refused(call: Callable[[Omnigraph], object], graph: Omnigraph) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as caught:
        call(graph)
    return caught.value


def told(value: Any) -> Any:
    """A value as it can be compared: of values that stand for others, what they stand for."""
    if isinstance(value, GraphCommit):
        names = [item.name for item in fields(GraphCommit)]
        return {name: getattr(value, name) for name in names if name not in _SERVER_SIDE}
    if isinstance(value, Snapshot):
        place = (value.branch, value.incarnation, value.manifest_version)
        return place, dict(value.tables), value.schema, told(value.commit)
    if isinstance(value, ResultColumn):
        return value.to_json()
    if isinstance(value, PlanReport | Finding):
        return type(value), value.to_json()
    if isinstance(value, Blob):
        return value.uri, None if value.uri is not None else value.read()
    if isinstance(value, pa.Table):
        return value.schema, value.to_pydict()
    return _members(value)


def _members(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        members = ((item.name, item.compare) for item in fields(value))
        return type(value), {name: told(getattr(value, name)) for name, counts in members if counts}
    if isinstance(value, tuple | list):
        return type(value), [told(item) for item in value]
    if isinstance(value, dict):
        return {told(name): told(item) for name, item in value.items()}
    return (type(value), value) if isinstance(value, Enum) else value


class Ways:
    """Makes graphs and reaches them. Servers are started when the first graph needs one."""

    def __init__(self, directory: Path, s3_server: Callable[[], S3Server]) -> None:
        self._directory = directory
        self._s3_server = s3_server
        self._numbers = count()
        self._servers: dict[Way, str] = {}
        self._leaving = ExitStack()

    def __enter__(self) -> Ways:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leaving.close()

    def settings(self, way: Way) -> dict[str, str]:
        """The environment that graphs of a way are used in."""
        found = {EMBED_PROVIDER.name: "mock"}
        return found | self._s3_server().environment() if way.is_on_s3 else found

    def new(self, way: Way, schema: str, *data: bytes) -> Place:
        """A graph of its own with these records, one commit each."""
        number = next(self._numbers)
        root = self._root(way)
        url = f"{self._server(way)}/graphs/g{number}" if way.is_remote else None
        at_hand = Omnigraph.init(f"{root}/g{number}", schema, actor="tester")
        for records in data:
            at_hand.load(records, actor="tester")
        graph = cast("Omnigraph", connect(url or at_hand.uri))
        return Place(way, graph, at_hand)

    def _root(self, way: Way) -> str:
        if not way.is_on_s3:
            return str(self._directory / "graphs")
        return f"s3://{self._s3_server().bucket}/{self._directory.name}"

    def _server(self, way: Way) -> str:
        if way not in self._servers:
            self._servers[way] = self._leaving.enter_context(self._serving(way))
        return self._servers[way]

    def _serving(self, way: Way) -> AbstractContextManager[str]:
        """A process that serves every place of a way there will ever be."""
        home = Omnigraph.init(f"{self._root(way)}/home", "node Home {\n  name: String @key\n}\n")
        graphs = {
            f"g{number}": {"uri": f"{self._root(way)}/g{number}"} for number in range(_PLACES)
        }
        config = self._directory / f"{way}.yaml"
        document = {"graphs": {**graphs, "home": {"uri": home.uri}}, "server": {"graph": "home"}}
        config.write_text(json.dumps(document))
        spool = {SERVER_SPOOL.name: str(self._directory / f"{way}-spool")}
        return _serving(config, self.settings(way) | spool)


@contextmanager
def _serving(config: Path, env: Mapping[str, str]) -> Iterator[str]:
    with server_process("--config", config, env=env) as server:
        yield server.url
