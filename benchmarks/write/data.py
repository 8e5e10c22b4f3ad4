"""The graph of the bulk load, the same every time: as one file of records and as plain rows.

The records are what a user would load. The plain files, one per type, are what pyarrow reads at its
fastest.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA: Final = """
node Person {
  name: String @key
  age: I64?
  bio: String
  vector: Vector(128)
}
node Company {
  name: String @key
  city: String?
}
edge Knows: Person -> Person {
  since: Date?
  weight: F64?
}
edge WorksAt: Person -> Company {
  role: String?
}
"""
_WORDS: Final = tuple(f"word{number}" for number in range(5_000))
_ROLES: Final = ("engineer", "designer", "analyst", "manager")


@dataclass(frozen=True, slots=True)
class Scale:
    people: int
    companies: int
    acquaintances: int
    jobs: int
    hub_share: float = 0.0
    """Of acquaintances, those that begin at one person."""

    @property
    def rows(self) -> int:
        return self.people + self.companies + self.acquaintances + self.jobs


FULL: Final = Scale(100_000, 5_000, 1_000_000, 100_000)
QUICK: Final = Scale(10_000, 500, 100_000, 10_000)


@dataclass(frozen=True, slots=True)
class Files:
    records: Path
    plain: dict[str, Path]


def generate(directory: Path, scale: Scale) -> Files:
    """Write both forms of the data below a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    records = directory / "records.jsonl"
    plain = {name: directory / f"{name}.jsonl" for name in _MAKERS}
    with records.open("w") as mixed:
        for name, make in _MAKERS.items():
            with plain[name].open("w") as file:
                for row in make(scale):
                    file.write(json.dumps(row) + "\n")
                    mixed.write(json.dumps(_record(name, row)) + "\n")
    return Files(records, plain)


def _record(name: str, row: dict[str, object]) -> dict[str, object]:
    if "src" not in row:
        return {"type": name, "data": row}
    data = {key: value for key, value in row.items() if key not in ("src", "dst")}
    return {"edge": name, "from": row["src"], "to": row["dst"], "data": data}


def _people(scale: Scale) -> Iterator[dict[str, object]]:
    chance = random.Random(1)
    numbers = np.random.default_rng(1)
    for number in range(scale.people):
        yield {
            "name": f"person-{number:07d}",
            "age": chance.randrange(90),
            "bio": " ".join(chance.choices(_WORDS, k=30)),
            "vector": [round(value, 6) for value in numbers.standard_normal(128).tolist()],
        }


def _companies(scale: Scale) -> Iterator[dict[str, object]]:
    for number in range(scale.companies):
        yield {"name": f"company-{number:05d}", "city": _WORDS[number % 300]}


def _acquaintances(scale: Scale) -> Iterator[dict[str, object]]:
    chance = random.Random(2)
    for _ in range(scale.acquaintances):
        is_hub = chance.random() < scale.hub_share if scale.hub_share else False
        yield {
            "src": f"person-{0 if is_hub else chance.randrange(scale.people):07d}",
            "dst": f"person-{chance.randrange(scale.people):07d}",
            "since": f"20{chance.randrange(10, 26)}-{chance.randrange(1, 13):02d}-11",
            "weight": round(chance.random(), 6),
        }


def _jobs(scale: Scale) -> Iterator[dict[str, object]]:
    chance = random.Random(3)
    for _ in range(scale.jobs):
        yield {
            "src": f"person-{chance.randrange(scale.people):07d}",
            "dst": f"company-{chance.randrange(scale.companies):05d}",
            "role": chance.choice(_ROLES),
        }


_MAKERS: Final = {
    "Person": _people,
    "Company": _companies,
    "Knows": _acquaintances,
    "WorksAt": _jobs,
}
