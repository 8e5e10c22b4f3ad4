"""The graph of the read benchmark, the same every time: one Arrow table for each type.

People know each other by a power law, nobody twice and nobody themselves. Vectors lie in clusters,
words follow Zipf and survive every stemmer, so that all engines can be asked for the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.write.data import FULL, QUICK, Scale

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FULL", "QUICK", "Case", "Graph", "Scale", "cases", "generate", "load"]

SCHEMA: Final = """
node Person {
  code: String @key
  name: String
  age: I32
  city: String
  bio: String @index
  vector: Vector(128) @index
}
node Company {
  name: String @key
  city: String
}
edge Knows: Person -> Person {
  since: Date
}
edge WorksAt: Person -> Company
"""
DIMENSIONS: Final = 128
CITIES: Final = 300
WORDS: Final = 20_000
CASES: Final = 8
LOOKUPS: Final = 1_000
_CLUSTERS: Final = 500
_DAYS: Final = (14_600, 20_400)


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges have the columns `src` and `dst`: codes of people, names of companies."""

    people: pa.Table
    companies: pa.Table
    knows: pa.Table
    works_at: pa.Table


@dataclass(frozen=True, slots=True)
class Case:
    """One set of parameters; every operation takes what it needs of it."""

    start: str
    many: tuple[str, ...]
    age: int
    city: str
    vector: tuple[float, ...]
    words: str


def generate(directory: Path, scale: Scale) -> None:
    """Write the tables below a directory as Parquet."""
    directory.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(7)
    people = _people(scale, chance)
    companies = _companies(scale)
    made = {
        "people": people,
        "companies": companies,
        "knows": _knows(scale, people["code"].combine_chunks(), chance),
        "works_at": _works_at(scale, people["code"], companies["name"], chance),
    }
    for name, table in made.items():
        pq.write_table(table, directory / f"{name}.parquet")


def load(directory: Path) -> Graph:
    names = ("people", "companies", "knows", "works_at")
    return Graph(*(pq.read_table(directory / f"{name}.parquet") for name in names))


def cases(graph: Graph) -> tuple[Case, ...]:
    """Typical people to start from, and what to look for."""
    chance = np.random.default_rng(11)
    codes = graph.people["code"].to_pylist()
    cities = graph.people["city"].to_pylist()
    starts = _typical(graph)
    vectors = matrix(graph.people["vector"])
    found = []
    for number in range(CASES):
        start = starts[int(chance.integers(len(starts)))]
        near = vectors[int(chance.integers(len(codes)))] + chance.normal(0, 0.02, DIMENSIONS)
        found.append(
            Case(
                start=start,
                many=tuple(codes[i] for i in chance.choice(len(codes), LOOKUPS, replace=False)),
                age=45 + number * 4,
                city=cities[int(chance.integers(len(codes)))],
                vector=tuple(near.astype(np.float32).tolist()),
                words=" ".join(vocabulary()[i] for i in chance.choice(np.arange(50, 1500), 3)),
            )
        )
    return tuple(found)


def matrix(column: pa.ChunkedArray) -> np.ndarray:
    values: np.ndarray = column.combine_chunks().flatten().to_numpy()
    return values.reshape(len(column), DIMENSIONS)


def vocabulary() -> list[str]:
    """Six letters each, none an English ending."""
    syllables = [first + second for first in "bdfgklmnprtvz" for second in "aou"]
    picked = np.random.default_rng(3).choice(len(syllables) ** 3, WORDS, replace=False)
    size = len(syllables)
    return [
        syllables[n // size // size] + syllables[n // size % size] + syllables[n % size]
        for n in picked.tolist()
    ]


def _people(scale: Scale, chance: np.random.Generator) -> pa.Table:
    count = scale.people
    cities = pa.array([f"city-{number:03d}" for number in range(CITIES)])
    return pa.table(
        {
            "code": pa.array([f"person-{number:06d}" for number in range(count)]),
            "name": pa.array([f"Name of {number}" for number in range(count)]),
            "age": pa.array(chance.integers(18, 90, count).astype(np.int32)),
            "city": cities.take(pa.array(_zipf(CITIES, count, 3, chance))),
            "bio": _bios(count, chance),
            "vector": _vectors(count, chance),
        }
    )


def _zipf(choices: int, count: int, shift: int, chance: np.random.Generator) -> np.ndarray:
    """Numbers below `choices`, small ones more often."""
    weights = np.cumsum(1 / (np.arange(choices) + shift))
    return np.searchsorted(weights, chance.random(count) * weights[-1]).astype(np.int32)


def _bios(count: int, chance: np.random.Generator) -> pa.Array:
    lengths = chance.integers(20, 41, count)
    words = pa.array(vocabulary()).take(pa.array(_zipf(WORDS, lengths.sum(), 20, chance)))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.compute.binary_join(pa.ListArray.from_arrays(pa.array(offsets), words), " ")


def _vectors(count: int, chance: np.random.Generator) -> pa.Array:
    middles = chance.standard_normal((_CLUSTERS, DIMENSIONS))
    own = 0.6 * chance.standard_normal((count, DIMENSIONS))
    values = (middles[chance.integers(0, _CLUSTERS, count)] + own).astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSIONS)


def _companies(scale: Scale) -> pa.Table:
    numbers = range(scale.companies)
    return pa.table(
        {
            "name": pa.array([f"company-{number:05d}" for number in numbers]),
            "city": pa.array([f"city-{number % CITIES:03d}" for number in numbers]),
        }
    )


def _knows(scale: Scale, codes: pa.Array, chance: np.random.Generator) -> pa.Table:
    order = chance.permutation(scale.people)
    weights = np.cumsum((np.arange(scale.people) + 10.0) ** -0.5)
    draws = int(scale.acquaintances * 1.2)
    ends = [
        order[np.searchsorted(weights, chance.random(draws) * weights[-1])].astype(np.int64)
        for _ in range(2)
    ]
    pairs = np.unique((ends[0] * scale.people + ends[1])[ends[0] != ends[1]])
    pairs = chance.permutation(pairs)[: scale.acquaintances]
    src, dst = np.divmod(pairs, scale.people)
    days = chance.integers(*_DAYS, len(pairs)).astype(np.int32)
    return pa.table(
        {
            "src": codes.take(pa.array(src)),
            "dst": codes.take(pa.array(dst)),
            "since": pa.array(days).cast(pa.date32()),
        }
    )


def _works_at(
    scale: Scale, codes: pa.ChunkedArray, names: pa.ChunkedArray, chance: np.random.Generator
) -> pa.Table:
    draws = int(scale.jobs * 1.1)
    people = chance.integers(0, scale.people, draws)
    pairs = np.unique(people * scale.companies + chance.integers(0, scale.companies, draws))
    pairs = chance.permutation(pairs)[: scale.jobs]
    src, dst = np.divmod(pairs, scale.companies)
    return pa.table(
        {
            "src": codes.combine_chunks().take(pa.array(src)),
            "dst": names.combine_chunks().take(pa.array(dst)),
        }
    )


def _typical(graph: Graph) -> list[str]:
    """People who know about as many as people do on average."""
    mean = len(graph.knows) / len(graph.people)
    counts = graph.knows["src"].combine_chunks().value_counts()
    values = counts.field("counts").to_numpy()
    is_near = (values >= 0.8 * mean) & (values <= 1.5 * mean)
    return sorted(counts.field("values").filter(pa.array(is_near)).to_pylist())
