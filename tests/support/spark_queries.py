"""A graph with every kind of search, and reads of it that a driver anywhere can be asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from omnigraph_core.engine.omnigraph import Omnigraph

if TYPE_CHECKING:
    from omnigraph_core.spark.runner import SparkRunner

SCHEMA = """
node Part {
  sku: String @key
  text: String?
  size: I64
  big: U64?
  mass: F64?
  spot: Vector(2)?
}
node Bin { name: String @key }
edge Needs: Part -> Part { amount: I32? }
edge Holds: Bin -> Part
"""
WORDS = ("bolt", "blue", "gear", "steel", "run")
READS = {
    "hops": "match { $a: Part { sku: $sku } $a needs{1,3} $b } return { $b.sku, $b.size }",
    "edges": "match { $a $n:needs $b $n.amount > 1 } return { $a.sku, $n.amount, $b.sku }",
    "not": "match { $a: Part not { $a needs $b $b.size > 3 } } return { $a.sku }",
    "optional": "match { $a: Part optional { $d holds $a } } return { $a.sku, $d.name }",
    "groups": """
        match { $d holds $a $a needs $b }
        return { $d.name as bin, count($b) as n, sum($b.size) as total, max($b.text) as last }
        having { n > 1 }
        order { total desc }
    """,
    "weighted": """
        match { $a: Part $b: Bin }
        return { $b.name as bin, sum($a.mass) as mass, avg($a.mass) as mean }
        order { bin }
    """,
    "distinct": "match { $a needs $b } return distinct { $b.size as size } order { size desc }",
    "words": """
        match { $a: Part search($a.text, "bolts") }
        return { $a.sku, bm25($a.text, "blue bolt") as score }
        order { bm25($a.text, "blue bolt") }
    """,
    "near": """
        match { $d holds $a }
        return { $a.sku, $d.name, nearest($a.spot, [1.0, 0.5]) as distance }
        order { nearest($a.spot, [1.0, 0.5]) }
        limit 5
    """,
    "fused": """
        match { $a: Part }
        return { $a.sku }
        order { rrf(nearest($a.spot, [1.0, 0.5]), bm25($a.text, "steel gear")) }
        limit 6
    """,
}


def query(name: str) -> str:
    given = "$sku: String" if "$sku" in READS[name] else ""
    return f"query {name}({given}) {{ {READS[name]} }}"


def make_graph(address: str, count: int = 12) -> Omnigraph:
    """Parts in a ring with shortcuts, in bins; loaded in two steps, to be in two files."""
    og = Omnigraph.init(address, SCHEMA)
    for part in (range(count // 2), range(count // 2, count)):
        og.load("".join(json.dumps(_part(n)) + "\n" for n in part).encode(), mode="merge")
    edges = [_needs(n, (n + step) % count) for n in range(count) for step in (1, 5)]
    bins: list[dict[str, Any]] = [{"type": "Bin", "data": {"name": f"bin{n}"}} for n in range(3)]
    held = [{"edge": "Holds", "from": f"bin{n % 3}", "to": f"p{n}"} for n in range(count) if n % 4]
    og.load("".join(json.dumps(record) + "\n" for record in (*bins, *edges, *held)).encode())
    return og


def _part(number: int) -> dict[str, Any]:
    text = " ".join(WORDS[(number + step) % 5] for step in range(1, number % 4 + 1))
    data: dict[str, Any] = {
        "sku": f"p{number}",
        "size": number % 7,
        "big": number,
        "mass": number / 4,
    }
    if number % 5:
        data |= {"text": text, "spot": [number % 3, 1.5 - number % 4]}
    return {"type": "Part", "data": data}


def _needs(one: int, other: int) -> dict[str, Any]:
    return {
        "edge": "Needs",
        "from": f"p{one}",
        "to": f"p{other}",
        "data": {"amount": (one + other) % 4},
    }


def ask_both(runner: SparkRunner, address: str, name: str) -> list[list[dict[str, Any]]]:
    """The rows of a read in this process, and on Spark."""
    og = Omnigraph.open(address)
    params = {"sku": "p1"} if "$sku" in READS[name] else {}
    both = (og.query("main", query(name), None, params, engine=e) for e in ("local", "spark"))
    return [result.to_pylist() for result in both]
