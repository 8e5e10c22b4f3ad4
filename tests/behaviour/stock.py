"""The stock that behaviour is tested on: every type of value, nulls, edges, blobs and vectors."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

SCHEMA: Final = """
node Part @description("what is stored") {
  sku: String @key
  name: String? @index
  stock: I64? @range(stock, 0..)
  size: I32?
  serial: U64?
  weight: F64?
  ratio: F32?
  is_new: Bool?
  grade: enum(a, b)?
  made: Date?
  seen: DateTime?
  tags: [String]?
  visits: [DateTime]?
  note: String?
  meaning: Vector(4)? @embed("note")
  drawing: Blob?
}

node Bin {
  code: String @key
  label: String? @unique
}

edge Holds: Bin -> Part @card(0..3) {
  count: I64?
  since: DateTime?
}
"""
DRAWING: Final = bytes(range(256)) * 8
BOLT: Final[dict[str, Any]] = {
    "sku": "bolt",
    "name": "Bolzen „M8“",
    "stock": 9_007_199_254_740_993,
    "size": -8,
    "serial": 18_446_744_073_709_551_615,
    "weight": 0.1,
    "ratio": 0.5,
    "is_new": True,
    "grade": "a",
    "made": "2026-01-31",
    "seen": "2026-01-31T08:00:00.250Z",
    "tags": ["m8", "", "steel, zinc"],
    "visits": ["1969-12-31T23:59:59.999Z", "2026-02-01T00:00:00.000Z"],
    "note": "a bolt of steel",
    "drawing": f"base64:{base64.b64encode(DRAWING).decode()}",
}
NUT: Final[dict[str, Any]] = {"sku": "nut", "name": "nut", "stock": 0, "tags": []}


def part(sku: str, **values: Any) -> dict[str, Any]:
    return {"type": "Part", "data": {"sku": sku, **values}}


def bin_(code: str, **values: Any) -> dict[str, Any]:
    return {"type": "Bin", "data": {"code": code, **values}}


def holds(code: str, sku: str, **values: Any) -> dict[str, Any]:
    return {"edge": "Holds", "from": code, "to": sku, "data": values}


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


STOCK: Final = lines(
    {"type": "Part", "data": BOLT},
    {"type": "Part", "data": {**NUT, "drawing": "https://example.org/nut.png"}},
    part("bare"),
    bin_("b1", label="first"),
    bin_("b2"),
    holds("b1", "bolt", id="h1", count=40, since="2026-02-01T00:00:00.250Z"),
    holds("b1", "nut", id="h2"),
)
"""Seven rows; one note, so one vector."""

AMOUNTS: Final = (
    "query amounts() { match { $p: Part } return { $p.sku as sku, $p.stock as stock } "
    "order { $p.sku } }"
)


def amounts(graph: Omnigraph, branch: str = "main") -> dict[str, int | None]:
    """The stock of every part."""
    rows = graph.query(branch, AMOUNTS).to_pylist()
    return {row["sku"]: row["stock"] for row in rows}


def put(graph: Omnigraph, *records: dict[str, Any], branch: str = "main") -> str:
    """Load records; the id of the commit."""
    commit = graph.load(lines(*records), branch=branch, embed="off").commit
    assert commit is not None
    return commit.graph_commit_id
