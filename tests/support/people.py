"""The people schema and its four persons: the smallest graph on which every construct shows."""

from __future__ import annotations

import datetime as dt
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph_core.schema.build import compile_schema
from omnigraph_core.values import from_json
from tests.support.oracle_graph import Edge, Node, OracleGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType
    from omnigraph_core.values import Value

SCHEMA = Path(__file__).parent.parent / "fixtures" / "schemas" / "people.pg"


@cache
def people_catalog() -> Catalog:
    return compile_schema(SCHEMA.read_text())


def person(name: str, age: int | None = None) -> Node:
    return Node("Person", name, {"name": name, "age": age})


def company(name: str) -> Node:
    return Node("Company", name, {"name": name})


def knows(number: int, src: str, dst: str, since: dt.date | None = None) -> Edge:
    return Edge("Knows", f"k{number}", src, dst, {"since": since})


def works_at(number: int, src: str, dst: str) -> Edge:
    return Edge("WorksAt", f"w{number}", src, dst)


def people_graph() -> OracleGraph:
    """Alice knows Bob and Charlie, Bob knows Diana; Alice works at Acme, Bob at Globex."""
    return OracleGraph(
        people_catalog(),
        [
            person("Alice", 30),
            person("Bob", 25),
            person("Charlie", 35),
            person("Diana", 28),
            company("Acme"),
            company("Globex"),
        ],
        [
            knows(1, "Alice", "Bob", dt.date(2020, 1, 1)),
            knows(2, "Alice", "Charlie"),
            knows(3, "Bob", "Diana"),
            works_at(1, "Alice", "Acme"),
            works_at(2, "Bob", "Globex"),
        ],
    )


def graph_from_records(lines: Iterable[str]) -> OracleGraph:
    """A graph from load records, one JSON object per line; edges are numbered in order."""
    catalog = people_catalog()
    records = [json.loads(line) for line in lines]
    nodes = [
        Node(r["type"], r["data"]["name"], _values(catalog.nodes[r["type"]], r["data"]))
        for r in records
        if "type" in r
    ]
    edges = [
        Edge(r["edge"], f"e{n}", r["from"], r["to"], _values(catalog.edges[r["edge"]], r["data"]))
        for n, r in enumerate({"data": {}} | r for r in records)
        if "edge" in r
    ]
    return OracleGraph(catalog, nodes, edges)


def _values(declared: NodeType | EdgeType, data: dict[str, object]) -> dict[str, Value]:
    return {name: from_json(data.get(name), p.type) for name, p in declared.properties.items()}
