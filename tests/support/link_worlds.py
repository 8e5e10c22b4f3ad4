"""Graphs with enough edges for their links to be kept as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Final = """
node Person { name: String @key }
node City { name: String @key }
node Ghost { name: String @key }
edge Knows: Person -> Person { since: I64? }
edge Lives: Person -> City
edge Haunts: Ghost -> City
"""
PEOPLE: Final = 3_000
CITIES: Final = 41
KNOWS: Final = 60_001
LIVES: Final = 50_000


def linked_graph(root: Path, *, knows: int = KNOWS, lives: int = LIVES) -> Omnigraph:
    """People who know each other, some twice, and live in cities; all in several fragments, of
    which rows are gone again."""
    og = Omnigraph.init(str(root), SCHEMA)
    chance = np.random.default_rng(7)
    for start in range(0, PEOPLE, 1_000):
        names = [f"p{number}" for number in range(start, start + 1_000)]
        og.load(pa.table({"name": names}), type="Person")
    og.load(pa.table({"name": [f"c{number}" for number in range(CITIES)]}), type="City")
    for part in range(3):
        og.load(_edges(chance, part, knows // 3 + (part < knows % 3), PEOPLE, "p"), type="Knows")
        og.load(_edges(chance, part, lives // 3 + (part < lives % 3), CITIES, "c"), type="Lives")
    return og


def _edges(
    chance: np.random.Generator, part: int, count: int, targets: int, letter: str
) -> pa.Table:
    # Some know many: one person has far more edges than others.
    sources = np.where(chance.random(count) < 0.05, 5, chance.integers(0, PEOPLE, count))
    return pa.table(
        {
            "id": [f"{letter}{part}-{number}" for number in range(count)],
            "from": [f"p{number}" for number in sources],
            "to": [f"{letter}{number}" for number in chance.integers(0, targets, count)],
        }
    )


KNOWN: Final = "query q() { match { $a: Person { name: $who } $a knows $b } return { $b.name } }"
EVERYBODY: Final = (
    "query q() { match { $a: Person $a knows $b $b lives $c } return { $c.name, count($a) as n } }"
)
