"""One graph seen twice: at hand, and behind a real server on a real port."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.client.remote import RemoteGraph
from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = """
node Part @description("what is stored") {
  sku: String @key
  name: String? @index
  stock: I64? @range(stock, 0..)
  weight: F64?
  grade: enum(a, b)?
  made: Date?
  seen: DateTime?
  tags: [String]?
  note: String?
  shape: Vector(4)? @embed("note")
  drawing: Blob?
}

node Bin {
  code: String @key
}

edge Holds: Bin -> Part {
  count: I64?
  since: DateTime?
}
"""
BOLT = {
    "sku": "p1",
    "name": "bolt",
    "stock": 3,
    "weight": 0.5,
    "grade": "a",
    "made": "2026-01-31",
    "seen": "2026-01-31T08:00:00.000Z",
    "tags": ["m3", "steel"],
    "note": "a bolt of steel",
    "drawing": "base64:AAECAwQ=",
}
NUT = {"sku": "p2", "name": "nut", "stock": 0, "drawing": "https://example.org/nut.png"}
RECORDS: list[dict[str, object]] = [
    {"type": "Part", "data": BOLT},
    {"type": "Part", "data": NUT},
    {"type": "Part", "data": {"sku": "p3"}},
    {"type": "Bin", "data": {"code": "b1"}},
    {"type": "Bin", "data": {"code": "b2"}},
    {"edge": "Holds", "from": "b1", "to": "p1", "data": {"since": "2026-02-01T00:00:00.250Z"}},
    {"edge": "Holds", "from": "b1", "to": "p2", "data": {"count": 7}},
]


def lines(*records: dict[str, object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@dataclass(frozen=True, slots=True)
class Pair:
    """The same graph at hand and behind a server."""

    local: Omnigraph
    remote: RemoteGraph
    url: str

    def fork(self, name: str) -> str:
        """A branch for a test of its own."""
        self.local.branch_create(name)
        return name


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("client")
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
        settings.setenv("OMNIGRAPH_SERVER_SPOOL", str(directory / "spool"))
        uri = str(directory / "stock")
        with Omnigraph.init(uri, SCHEMA, actor="tester") as local:
            local.load(lines(*RECORDS))
            with serving(uri) as server, RemoteGraph(server.url) as remote:
                yield Pair(local, remote, server.url)
