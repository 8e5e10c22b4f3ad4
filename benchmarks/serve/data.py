"""The graph that is served, and what clients ask of it: the same every time."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA: Final = """
node Person {
  code: String @key
  name: String
  age: I32
  city: String
}
edge Knows: Person -> Person
node Counter {
  name: String @key
  value: I64
}
"""
QUERIES: Final = """
query lookup($code: String) {
  match { $p: Person { code: $code } }
  return { $p.name, $p.age, $p.city }
}
query hop($code: String) {
  match { $p: Person { code: $code }  $p knows $a }
  return { $a.name, $a.age }
  limit 20
}
query aggregate($city: String, $age: I32) {
  match { $p: Person  $p.city = $city  $p.age > $age }
  return { count($p) as people, avg($p.age) as age }
}
"""
CHANGES: Final = """
query insert_person($code: String, $age: I32) {
  insert Person { code: $code, name: "Somebody", age: $age, city: "city-7" }
}
query update_person($code: String, $age: I32) {
  update Person set { age: $age } where code = $code
}
"""
READS: Final = ("lookup", "hop", "aggregate")
WRITES: Final = ("insert_person", "update_person")
COUNTER: Final = "total"
COUNTING: Final = """
query value($name: String) {
  match { $c: Counter { name: $name } }
  return { $c.value }
}
query raise_to($name: String, $seen: I64, $next: I64) {
  update Counter set { value: $next } where name = $name and value = $seen
}
"""
"""A counter goes up by a change that only holds while it is what the client has seen."""

TOKEN: Final = "a-token-for-the-benchmark"
ACTOR: Final = "bench"
POLICY: Final = """
version: 1
groups:
  team: [bench]
rules:
  - id: team-all
    allow:
      actors: { group: team }
      actions: [read, change]
      branch_scope: any
"""
CONFIG: Final = """
graphs:
  served:
    uri: {uri}
policy:
  file: policy.yaml
"""
_CITIES: Final = 200


@dataclass(frozen=True, slots=True)
class Scale:
    people: int
    edges: int


FULL: Final = Scale(100_000, 300_000)
QUICK: Final = Scale(5_000, 15_000)


def build(directory: Path, scale: Scale) -> Path:
    """A graph below a directory, indexed; the configuration of a server for it goes out."""
    directory.mkdir(parents=True)
    graph = Omnigraph.init(str(directory / "graph"), SCHEMA)
    numbers = np.arange(scale.people)
    people = {
        "code": [_code(number) for number in numbers.tolist()],
        "name": [f"Name of {number}" for number in numbers.tolist()],
        "age": pa.array(numbers % 90, pa.int32()),
        "city": [f"city-{number}" for number in (numbers * 7 % _CITIES).tolist()],
    }
    graph.load(pa.table(people), type="Person", mode="append")
    ends = np.random.default_rng(5).integers(0, scale.people, (2, scale.edges)).tolist()
    knows = {
        side: [_code(number) for number in end]
        for side, end in zip(("from", "to"), ends, strict=True)
    }
    graph.load(pa.table(knows), type="edge:Knows", mode="append")
    graph.load(pa.table({"name": [COUNTER], "value": [0]}), type="Counter", mode="append")
    graph.ensure_indices()
    graph.close()
    (directory / "policy.yaml").write_text(POLICY)
    config = directory / "omnigraph.yaml"
    config.write_text(CONFIG.format(uri=directory / "graph"))
    return config


def _code(number: int) -> str:
    return f"person-{number:06d}"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what it is for the report, where it goes, and its document."""

    name: str
    path: str
    document: dict[str, object]

    @property
    def is_write(self) -> bool:
        return self.name in WRITES

    def encoded(self) -> bytes:
        body = json.dumps(self.document).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def calls(scale: Scale, client: int, *, write_share: float) -> Iterator[Call]:
    """What one client asks, without end."""
    chance = random.Random(client)
    number = 0
    while True:
        if chance.random() < write_share:
            number += 1
            yield _write(scale, chance, f"new-{client}-{number}")
        else:
            yield read(scale, chance, chance.choice(READS))


def read(scale: Scale, chance: random.Random, name: str) -> Call:
    params: dict[str, object] = {"code": _code(chance.randrange(scale.people))}
    if name == "aggregate":
        city = f"city-{chance.randrange(_CITIES)}"
        params = {"city": city, "age": chance.randrange(90)}
    return Call(name, "/read", {"query_source": QUERIES, "query_name": name, "params": params})


def _write(scale: Scale, chance: random.Random, new: str) -> Call:
    name = chance.choice(WRITES)
    code = new if name == "insert_person" else _code(chance.randrange(scale.people))
    params = {"code": code, "age": chance.randrange(90)}
    return Call(name, "/change", {"query_source": CHANGES, "query_name": name, "params": params})
