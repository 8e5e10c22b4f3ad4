"""A loaded graph of sensors and sites, and the shortest ways to change its schema and read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = """
interface Named { label: String? }
node Sensor implements Named {
  serial: String @key
  kind: String
  unit: enum(celsius, kelvin, rankine)
  reading: F32
  count: I32?
  sizes: [I32]?
  note: String?
  scan: Blob?
  text: String
  shape: Vector(2)?
}
node Site { code: String @key }
edge At: Sensor -> Site @card(0..2) { since: Date?  weight: U32? }
edge Near: Site -> Site
"""
SENSORS: list[dict[str, Any]] = [
    {"serial": "s1", "kind": "air", "unit": "celsius", "reading": 0.1, "count": 1, "sizes": [1, 2],
     "note": "one", "scan": "base64:AAE=", "text": "first", "shape": [1.0, 2.0], "label": "L1"},
    {"serial": "s2", "kind": "water", "unit": "kelvin", "reading": -2.5, "count": None,
     "sizes": None, "note": None, "scan": None, "text": "second", "shape": None, "label": None},
    {"serial": "s3", "kind": "air", "unit": "kelvin", "reading": 7.0, "count": -5, "sizes": [],
     "note": "one", "scan": None, "text": "third", "shape": None, "label": None},
]  # fmt: skip
EDGES = [("s1", "a", 3), ("s1", "b", None), ("s2", "a", 7)]


def new_graph(root: Path | str) -> Omnigraph:
    """Three sensors in two fragments, two sites, three edges."""
    og = Omnigraph.init(str(root), SCHEMA)
    lines: list[dict[str, Any]] = [{"type": "Site", "data": {"code": code}} for code in "ab"]
    lines += [{"type": "Sensor", "data": row} for row in SENSORS[:2]]
    lines += [
        {"edge": "At", "from": src, "to": dst, "data": {"weight": weight}}
        for src, dst, weight in EDGES
    ]
    load(og, *lines)
    load(og, {"type": "Sensor", "data": SENSORS[2]})
    return og


def load(og: Omnigraph, *lines: dict[str, Any], branch: str = "main") -> None:
    og.load("".join(json.dumps(line) + "\n" for line in lines).encode(), branch=branch)


def changed(*edits: tuple[str, str]) -> str:
    """The schema with pieces of text replaced; each must be there once."""
    source = SCHEMA
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def apply(og: Omnigraph, *edits: tuple[str, str], **options: Any) -> list[str]:
    """Apply the edited schema; the kinds of the steps."""
    result = og.schema_apply(changed(*edits), **options)
    return [str(report.step.kind) for report in result.steps]


def column(og: Omnigraph, table_key: str, name: str, branch: str = "main") -> dict[str, Any]:
    """Values of a column by id."""
    rows = og.table(og.snapshot(branch), table_key).read(["id", name])
    return dict(zip(*(rows.column(item).to_pylist() for item in ("id", name)), strict=True))
