"""A graph of a million edges whose neighbours can be told without it, and what workers do with it.

Person number `p` knows the ten numbers of `friends(p)`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import OmnigraphError

SCHEMA: Final = """
node Person {
  name: String @key
  age: I32?
}
edge Knows: Person -> Person {
  since: I32?
}
"""
PEOPLE: Final = 100_000
DEGREE: Final = 10


def friends(person: int) -> set[int]:
    """Whom a person knows."""
    return {(person * 7 + step * 13 + 1) % PEOPLE for step in range(DEGREE)}


def build(address: str) -> None:
    """All people, then all edges, person by person; the edge of step `n` has been since `n`."""
    og = Omnigraph.init(address, SCHEMA)
    numbers = np.arange(PEOPLE)
    names = pa.array([f"p{number}" for number in range(PEOPLE)])
    og.load(pa.table({"name": names, "age": pa.array(numbers % 90, pa.int32())}), type="Person")
    sources = np.repeat(numbers, DEGREE)
    steps = np.tile(np.arange(DEGREE), PEOPLE)
    targets = (sources * 7 + steps * 13 + 1) % PEOPLE
    og.load(
        pa.table(
            {
                "from": names.take(pa.array(sources)),
                "to": names.take(pa.array(targets)),
                "since": pa.array(steps, pa.int32()),
            }
        ),
        type="edge:Knows",
    )


def ask(address: str, asked: list[tuple[str, str]]) -> list[list[dict[str, Any]]]:
    """The rows of each query about a name; of one that fails, the class of its error."""
    og = Omnigraph.open(address)
    return [_rows(og, query, name) for query, name in asked]


def _rows(og: Omnigraph, query: str, name: str) -> list[dict[str, Any]]:
    try:
        return og.query("main", query, params={"name": name}).to_pylist()
    except OmnigraphError as error:
        return [{"error": type(error).__name__}]


def build_and_ask(address: str, query: str, name: str) -> list[dict[str, Any]]:
    """The first process of a graph."""
    build(address)
    return ask(address, [(query, name)])[0]
