"""Parts in bins: a small graph on which every way to merge shows, and short ways to edit it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.exec.json_rows import plain_objects

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.merge.model import MergeResult

SCHEMA = """
node Part {
  sku: String @key
  name: String?
  stock: I64?
  serial: String? @unique
  drawing: Blob?
  shape: Vector(2)?
  @range(stock, 0..100)
}

node Bin {
  code: String @key
}

edge Holds: Bin -> Part {
  count: I64?
}

edge Fits: Part -> Part @card(0..1)
"""
PART, BIN, HOLDS, FITS = "node:Part", "node:Bin", "edge:Holds", "edge:Fits"


def new_graph(root: Path | str) -> Omnigraph:
    """Four parts p1 to p4 with a stock of 1, two bins, and h1: b1 holds p1."""
    og = Omnigraph.init(str(root), SCHEMA)
    parts = [part(f"p{n}", stock=1) for n in (1, 2, 3, 4)]
    put(og, "main", *parts, bin("b1"), bin("b2"), holds("h1", "b1", "p1"))
    return og


def copied(og: Omnigraph, root: Path) -> Omnigraph:
    """The graph as it is, in a directory of its own."""
    shutil.copytree(og.uri, root / "graph")
    return Omnigraph.open(str(root / "graph"))


def part(sku: str, **values: Any) -> dict[str, Any]:
    return {"type": "Part", "data": {"sku": sku, **values}}


def bin(code: str) -> dict[str, Any]:
    return {"type": "Bin", "data": {"code": code}}


def holds(id: str, code: str, sku: str, **values: Any) -> dict[str, Any]:
    return {"edge": "Holds", "from": code, "to": sku, "data": {"id": id, **values}}


def fits(id: str, one: str, other: str) -> dict[str, Any]:
    return {"edge": "Fits", "from": one, "to": other, "data": {"id": id}}


def put(og: Omnigraph, branch: str, *records: dict[str, Any]) -> None:
    """Insert or replace, with one commit."""
    og.load("\n".join(json.dumps(record) for record in records).encode(), branch=branch)


def change(og: Omnigraph, branch: str, text: str) -> None:
    """One statement."""
    og.mutate(f"query q() {{ {text} }}", branch=branch)


def drop(og: Omnigraph, branch: str, sku: str) -> None:
    """Delete a part, and so its edges."""
    change(og, branch, f'delete Part where sku = "{sku}"')


def evolve(og: Omnigraph, branch: str, *edits: tuple[str, str]) -> None:
    """Apply the branch's schema with texts replaced."""
    text = og.schema_show(branch).source
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    og.schema_apply(text, branch=branch)


def rows(og: Omnigraph, branch: str, key: str = PART) -> dict[str, dict[str, Any]]:
    """The rows of a table by id, without what is null."""
    found = {}
    for text in plain_objects(og.table(og.snapshot(branch), key).read()).to_pylist():
        row = json.loads(text)
        found[row["id"]] = {name: value for name, value in row.items() if value is not None}
    return found


def column(og: Omnigraph, branch: str, name: str, key: str = PART) -> dict[str, Any]:
    return {id: row.get(name) for id, row in rows(og, branch, key).items()}


def graph(og: Omnigraph, branch: str) -> dict[str, dict[str, dict[str, Any]]]:
    return {key: rows(og, branch, key) for key in og.snapshot(branch).tables}


def dispositions(result: MergeResult) -> dict[str, str]:
    """What was done to the tables that are not simply kept."""
    found = {table.table_key: str(table.disposition) for table in result.tables}
    return {key: word for key, word in found.items() if word != "kept"}


def told(result: MergeResult) -> list[tuple[str, str | None, str]]:
    return [(item.table_key, item.row_id, str(item.kind)) for item in result.conflicts]
