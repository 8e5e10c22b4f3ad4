"""Graphs with need of maintenance, and everything that maintenance must not change or must do.

Twins are copies of one directory: what one process does to one of them, executors do to the other.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.indexing import IndexReport

SCHEMA: Final = """
node Doc {
  slug: String @key
  title: String? @index
  kind: enum(memo, letter, book)? @index
  tags: [String]?
  @index(tags)
  size: I64? @index
  is_open: Bool? @index
  shape: Vector(8)? @index
}
edge Cites: Doc -> Doc { weight: F64? }
"""
DOCS: Final = 6_000
LOADS: Final = 6
_KINDS: Final = ("memo", "letter", "book")

QUERIES: Final = {
    "words": 'query q() { match { $d: Doc search($d.title, "bolt") } return { $d.slug } }',
    "value": "query q() { match { $d: Doc $d.size = 17 } return { $d.slug } }",
    "member": 'query q() { match { $d: Doc $d.tags contains "t3" } return { $d.slug } }',
    "enum": 'query q() { match { $d: Doc $d.kind = "book" $d.size < 40 } return { $d.slug } }',
    "edges": 'query q() { match { $d: Doc { slug: "d00007" } $d cites $e } return { $e.slug } }',
}


def docs(start: int, stop: int) -> pa.Table:
    """Rows that follow from their numbers; now and then a value is missing."""
    numbers = np.arange(start, stop)
    chance = np.random.default_rng(start)
    shapes = chance.normal(size=(len(numbers), 8)).astype(np.float32)
    has_shape = numbers % 9 != 0
    return pa.table(
        {
            "slug": [f"d{number:05}" for number in numbers],
            "title": [None if n % 11 == 0 else f"bolt {n % 13} of {n % 7} wood" for n in numbers],
            "kind": [None if n % 10 == 0 else _KINDS[n % 3] for n in numbers],
            "tags": [None if n % 8 == 0 else [f"t{n % 5}", f"u{n % 3}"] for n in numbers],
            "size": [None if n % 12 == 0 else int(n % 97) for n in numbers],
            "is_open": [None if n % 6 == 0 else bool(n % 2) for n in numbers],
            "shape": pa.array(
                [
                    shape.tolist() if has else None
                    for shape, has in zip(shapes, has_shape, strict=True)
                ],
                pa.list_(pa.float32(), 8),
            ),
        }
    )


def cites(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": [f"c{number:05}" for number in numbers],
            "from": [f"d{number:05}" for number in numbers],
            "to": [f"d{(number * 7) % start if start else 0:05}" for number in numbers],
            "weight": [number / 4 for number in numbers],
        }
    )


def grown_graph(address: Path, *, docs_count: int = DOCS, loads: int = LOADS) -> Omnigraph:
    """A graph that was written to in small steps: many fragments, some rows gone."""
    og = Omnigraph.init(str(address), SCHEMA)
    step = docs_count // loads
    for start in range(0, docs_count, step):
        og.load(docs(start, start + step), type="Doc")
        og.load(cites(start, start + step), type="Cites")
    og.mutate("query drop() { delete Doc where size = 5 }")
    return og


def twin(original: Path, copy: Path) -> Omnigraph:
    shutil.copytree(original, copy)
    return Omnigraph.open(str(copy))


def rows(og: Omnigraph, branch: str = "main") -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, by id."""
    snapshot = og.snapshot(branch)
    return {
        key: og.table(snapshot, key).read().sort_by("id").to_pylist() for key in snapshot.tables
    }


def answers(og: Omnigraph) -> dict[str, list[str]]:
    """What queries that may use indexes find."""
    return {
        name: sorted(og.query("main", query).to_arrow().column(0).to_pylist())
        for name, query in QUERIES.items()
    }


def coverage(reports: tuple[IndexReport, ...]) -> list[dict[str, object]]:
    return [report.to_json() for report in reports]


def records(root: Path) -> int:
    """Of rows that a compaction has moved."""
    return len(list(root.rglob("moved.arrays")))
