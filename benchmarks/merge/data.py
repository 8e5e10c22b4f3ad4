"""The graph that is merged: its size is the only thing that differs between two of them.

People and whom they know are linked; devices are linked to nothing, so that a merge can take them
over without looking at the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph

SCHEMA: Final = """
node Person {
  name: String @key
  age: I64?
  email: String? @unique
  bio: String
  vector: Vector(64)
}
node Device {
  serial: String @key
  note: String?
}
edge Knows: Person -> Person {
  weight: F64?
}
"""
CHANGED: Final = 100
"""Rows that each side changes: half of them people, half of them edges."""
_DEVICES: Final = 100


@dataclass(frozen=True, slots=True)
class Scale:
    people: int
    edges: int

    @property
    def rows(self) -> int:
        return self.people + self.edges


SMALL: Final = Scale(6_000, 4_000)
QUICK: Final = Scale(60_000, 40_000)
FULL: Final = Scale(600_000, 400_000)


def fill(graph: Omnigraph, scale: Scale) -> None:
    """Load the graph and index it, as after a nightly run."""
    people = np.arange(scale.people)
    graph.load(person_rows(people, "first"), type="Person", mode="append")
    devices = [f"d{number}" for number in range(_DEVICES)]
    graph.load(
        pa.table({"serial": devices, "note": ["new"] * _DEVICES}), type="Device", mode="append"
    )
    graph.load(edge_rows(np.arange(scale.edges), _ends(scale), 0), type="edge:Knows", mode="append")
    graph.ensure_indices()


def person_rows(people: np.ndarray, bio: str) -> pa.Table:
    chance = np.random.default_rng(11)
    words = chance.integers(0, 2**40, (len(people), 6)).astype("U14")
    texts = [f"{bio} {' '.join(row)}" for row in words.tolist()]
    vectors = chance.random((len(people), 64), dtype=np.float32)
    return pa.table(
        {
            "name": [f"p{number:09}" for number in people.tolist()],
            "age": people % 90,
            "email": [f"p{number}@example.org" for number in people.tolist()],
            "bio": texts,
            "vector": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 64),
        }
    )


def _ends(scale: Scale) -> np.ndarray:
    """Whom each edge joins."""
    return np.random.default_rng(7).integers(0, scale.people, (2, scale.edges))


def edge_rows(numbers: np.ndarray, ends: np.ndarray, weight: int) -> pa.Table:
    names = [[f"p{number:09}" for number in side] for side in ends.tolist()]
    return pa.table(
        {
            "id": [f"k{number:09}" for number in numbers.tolist()],
            "from": names[0],
            "to": names[1],
            "weight": numbers * 0.5 + weight,
        }
    )


def change(
    graph: Omnigraph, branch: str, scale: Scale, *, side: int, has_new_ends: bool = False
) -> None:
    """Change rows all over the tables; no row is changed by two sides."""
    half = CHANGED // 2
    people = np.linspace(0, scale.people - 4, half).astype(int) + side
    edges = np.linspace(0, scale.edges - 4, half).astype(int) + side
    graph.load(person_rows(people, f"side {side}"), type="Person", branch=branch)
    ends = _ends(scale)[:, edges]
    if has_new_ends:
        ends = (ends + scale.people // 2) % scale.people
    rows = edge_rows(edges, ends, side)
    graph.load(rows, type="edge:Knows", branch=branch)


def change_devices(graph: Omnigraph, branch: str) -> None:
    graph.load(pa.table({"serial": ["d1", "d2"], "note": ["a", "b"]}), type="Device", branch=branch)
