"""Random graphs as the oracle has them: a schema, values of its types, nodes and edges."""

from __future__ import annotations

import datetime as dt
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from omnigraph_core.ids import key_id
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.types import PropType, Scalar
from omnigraph_core.values import canonical_text, to_json
from tests.support.loading import lines
from tests.support.oracle_graph import Edge, Node, OracleGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

    from omnigraph_core.query.checked import Direction
    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType
    from omnigraph_core.values import Value

SCHEMA = """
node Part {
  sku: String @key
  name: String? @index
  body: String? @index
  kind: enum(bolt, gear, nut)? @index
  small: I32? @index
  whole: I64
  few: U32?
  big: U64?
  short: F32?
  real: F64? @index
  day: Date?
  moment: DateTime? @index
  isNew: Bool?
  tags: [String]?
  counts: [I64]?
  days: [Date]?
  shape: Vector(3)? @index
  drawing: Blob?
}
node Bin {
  number: I64 @key
  label: String? @index
  opened: DateTime?
}
node Shelf {
  row: I32
  label: String
  height: F32?
  @key(row, label)
}
node Note {
  text: String @index
  weight: F64?
  spot: Vector(3)?
}
node Day {
  date: Date @key
  level: F64?
}
node Grade {
  score: F32 @key
  isFinal: Bool?
}

edge Needs: Part -> Part {
  amount: I32?
  since: Date?
  remark: String?
  share: F64?
}
edge Holds: Bin -> Part {
  count: U64?
  isGood: Bool?
}
edge Near: Bin -> Bin
edge On: Bin -> Shelf
edge Made: Part -> Day
edge Graded: Part -> Grade {
  by: String?
}
edge About: Note -> Part {
  at: DateTime?
  words: [String]?
}
"""
"""A property of every type, keys of one column, of several and none, edges between equal types and
different ones."""


@cache
def catalog() -> Catalog:
    return compile_schema(SCHEMA)


# Values: few of each type, so that comparisons, groups and ties find equal ones

NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 2, 1, 8, 0, 0, 250000, tzinfo=dt.UTC)
"""What `now()` is; a stored moment is that very one."""
WORDS = (
    "bolt", "bolts", "blue", "gear", "running", "run", "the", "of", "Köln", "steel", "steal", "x1",
)  # fmt: skip
TEXTS = (
    "blue bolt", "the bolts of Köln", "Running gear, running!", "steel", "the of", "",
    "x1 steel-blue", "bolt bolt bolt gear",
)  # fmt: skip
NAMES = ("", "a", "ab", "b", "B", "é", "it's", "100%", "a_b")
VALUES: dict[Scalar, tuple[Value, ...]] = {
    Scalar.STRING: NAMES,
    Scalar.BOOL: (False, True),
    Scalar.I32: (-(2**31), -1, 0, 1, 2, 2**31 - 1),
    Scalar.I64: (-(2**52), -1, 0, 1, 2, 2**53 + 1),
    Scalar.U32: (0, 1, 2, 2**32 - 1),
    Scalar.U64: (0, 1, 2, 2**53 + 1),
    Scalar.F32: (-1.25, 0.0, 0.5, 1.0, 2.0, 0.10000000149011612),
    Scalar.F64: (-2.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.0**30),
    Scalar.DATE: (dt.date(1960, 2, 29), dt.date(1970, 1, 1), dt.date(2026, 1, 31)),
    Scalar.DATETIME: (
        NOON, NOON + dt.timedelta(milliseconds=1), NOW, dt.datetime(1960, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2050, 1, 1, tzinfo=dt.UTC),
    ),
    Scalar.VECTOR: (0.0, 0.0, 1.0, -1.0, 2.0, 0.5),
}  # fmt: skip
"""Sums of the fractions come out the same in any order: groups that tie do so wherever summed."""


def random_value(rng: Random, type: PropType, name: str = "") -> Value:
    """A value that a property of this type may hold."""
    if type.is_list:
        scalar = PropType(type.scalar)
        return tuple(random_value(rng, scalar) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    if type.is_vector:
        return tuple(rng.choice(VALUES[Scalar.VECTOR]) for _ in range(type.dimension or 0))
    if type.enum_values is not None:
        return rng.choice(type.enum_values)
    if type.is_blob:
        return "base64:AAEC"
    if name in ("body", "text"):
        return random_text(rng)
    return rng.choice(VALUES[type.scalar])


def random_text(rng: Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(TEXTS)
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 6)))


# Graphs


class Contents(OracleGraph):
    """What a graph holds; changed into another one, never in place."""

    def __init__(self, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
        super().__init__(catalog(), nodes, edges)
        self._reached: dict[tuple[object, ...], set[Node]] = {}

    def reached(
        self, start: Node, edge_type: str, direction: Direction, minimum: int, maximum: int
    ) -> set[Node]:
        key = (start, edge_type, direction, minimum, maximum)
        if key not in self._reached:
            self._reached[key] = super().reached(*key)
        return self._reached[key]

    def all_nodes(self) -> list[Node]:
        return [node for nodes in self.nodes.values() for node in nodes.values()]

    def all_edges(self) -> list[Edge]:
        return [edge for edges in self.edges.values() for edge in edges]

    def of(self, type_name: str) -> list[Node] | list[Edge]:
        is_node = type_name in self.nodes
        return list(self.nodes[type_name].values()) if is_node else self.edges[type_name]

    def replaced(self, entities: Iterable[Node | Edge]) -> Contents:
        """With these rows in the place of those that have their ids."""
        known = {(e.type, e.id): e for e in (*self.all_nodes(), *self.all_edges(), *entities)}
        nodes = [entity for entity in known.values() if isinstance(entity, Node)]
        return Contents(nodes, [entity for entity in known.values() if isinstance(entity, Edge)])

    def without(self, type_name: str, ids: Iterable[str]) -> Contents:
        """Without these rows, and without the edges of nodes among them."""
        gone = {(type_name, id) for id in ids}
        ends = {name: (e.source, e.target) for name, e in self.catalog.edges.items()}

        def is_kept(edge: Edge) -> bool:
            source, target = ends[edge.type]
            taken = {(edge.type, edge.id), (source, edge.src), (target, edge.dst)}
            return not taken & gone

        nodes = [node for node in self.all_nodes() if (node.type, node.id) not in gone]
        return Contents(nodes, filter(is_kept, self.all_edges()))

    def jsonl(self) -> bytes:
        records = [{"type": n.type, "data": _data(n)} for n in self.all_nodes()]
        records += [
            {"edge": e.type, "from": e.src, "to": e.dst, "data": _data(e)} for e in self.all_edges()
        ]
        return lines(*records)


KEYED = frozenset({"Part", "Bin", "Shelf", "Day", "Grade"})


def _data(entity: Node | Edge) -> dict[str, Any]:
    id = {} if entity.type in KEYED else {"id": entity.id}
    values = {n: to_json(v) for n, v in entity.properties.items() if v is not None}
    return {**id, **values}


NODE_COUNTS = {
    "Part": (6, 13), "Bin": (2, 5), "Shelf": (2, 3), "Note": (3, 6), "Day": (2, 3), "Grade": (2, 4),
}  # fmt: skip
EDGE_COUNTS = {
    "Needs": (8, 24), "Holds": (4, 12), "Near": (3, 9), "On": (3, 7), "About": (4, 10),
    "Made": (3, 7), "Graded": (3, 7),
}  # fmt: skip
LABELS = ("p", "q", "R")
DAYS = (dt.date(1960, 2, 29), dt.date(1970, 1, 1), dt.date(2026, 1, 31))
SCORES = {"-1.25": -1.25, "0": 0.0, "0.5": 0.5, "2": 2.0, "0.1": 0.10000000149011612}
"""The key of a grade by its id: the shortest text that means the number in 32 bits."""


def random_contents(rng: Random, base: Contents | None = None) -> Contents:
    """A graph, or rows to merge into one: some new, some in the place of others."""
    share = 1.0 if base is None else 0.4
    absent = rng.choice(("Bin", "Shelf", "Note", "Needs", "Holds", *[""] * 12))
    nodes: list[Node] = []
    for name, (low, high) in NODE_COUNTS.items():
        count = round(rng.randint(low, high) * share) if name != absent else 0
        nodes += [_random_node(rng, catalog().nodes[name]) for _ in range(count)]
    ids: dict[str, list[str]] = {name: [] for name in catalog().nodes}
    for node in (*nodes, *([] if base is None else base.all_nodes())):
        ids[node.type].append(node.id)
    edges: list[Edge] = []
    for name, (low, high) in EDGE_COUNTS.items():
        edge = catalog().edges[name]
        count = round(rng.randint(low, high) * share) if name != absent else 0
        if ids[edge.source] and ids[edge.target]:
            edges += [_random_edge(rng, edge, ids) for _ in range(count)]
    return Contents(nodes, {(edge.type, edge.id): edge for edge in edges}.values())


def _random_node(rng: Random, type: NodeType) -> Node:
    values = _random_values(rng, type)
    if type.name == "Part":
        values["sku"] = id = f"p{rng.randint(0, 20)}"
    elif type.name == "Bin":
        values["number"] = number = rng.randint(-1, 11)
        id = str(number)
    elif type.name == "Shelf":
        values["row"], values["label"] = row, label = rng.randint(0, 2), rng.choice(LABELS)
        id = key_id([str(row), label])
    elif type.name == "Day":
        values["date"] = date = rng.choice(DAYS)
        id = canonical_text(date)
    elif type.name == "Grade":
        id = rng.choice(tuple(SCORES))
        values["score"] = SCORES[id]
    else:
        id = f"n{rng.randint(0, 9)}"
    return Node(type.name, id, values)


def _random_edge(rng: Random, type: EdgeType, ids: Mapping[str, list[str]]) -> Edge:
    """Parallel edges and loops are as likely as the ids are few."""
    src, dst = rng.choice(ids[type.source]), rng.choice(ids[type.target])
    if type.source == type.target and rng.random() < 0.12:
        dst = src
    return Edge(type.name, f"e{rng.randint(0, 60)}", src, dst, _random_values(rng, type))


def _random_values(rng: Random, type: NodeType | EdgeType) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, declared in type.properties.items():
        is_null = declared.type.is_nullable and rng.random() < 0.2
        found[name] = None if is_null else random_value(rng, declared.type, name)
    return found


def shown_contents(contents: Contents) -> str:
    """The graph as text, for whoever has to find out what went wrong."""
    texts = contents.jsonl().decode().splitlines()
    return "\n".join(json.dumps(json.loads(text), ensure_ascii=False) for text in texts)
