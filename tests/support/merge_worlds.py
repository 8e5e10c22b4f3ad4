"""Random graphs that branches edit apart, in a schema with every kind of rule and property.

A world is made from a number and nothing else, so that a failure is played again by its number.
Content is read as JSON texts: what differs in a bit differs in its text.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from omnigraph_core.errors import DataError
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.exec.json_rows import row_objects
from omnigraph_core.schema.build import compile_schema
from omnigraph_core.schema.catalog import EdgeType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.history.snapshots import ReadTarget
    from omnigraph_core.schema.catalog import Catalog, NodeType
    from tests.support.merge_oracle import Graph, Row

SCHEMA = """
node Part {
    code: String @key
    serial: String? @unique
    maker: String?
    size: I32?
    grade: enum(raw, ready)?
    length: F64?
    tags: [String]?
    place: Vector(2)?
    picture: Blob?
    _row_note: String?
    @unique(maker, size)
    @range(length, 0..100)
}
node Bin {
    label: String?
    rank: I64?
}
node Shelf {
    number: I64 @key
    title: String? @unique
}
edge Fits: Part -> Part @card(0..2) {
    grade: I32?
    @unique(src, grade)
}
edge Holds: Bin -> Part {
    count: I32?
    note: String?
}
edge Near: Shelf -> Bin @card(1..3)
"""
CATALOG = compile_schema(SCHEMA)
Record = dict[str, Any]

_VALUES: dict[str, dict[str, tuple[Any, ...]]] = {
    "Part": {
        "serial": (None, None, *(f"s{n}" for n in range(14))),
        "maker": (None, "", "m1", "m2", "m3"),
        "size": (None, *range(6)),
        "grade": (None, "raw", "ready"),
        "length": (None, 0.0, -0.0, 0.1, 100.0),
        "tags": (None, [], ["a"], ["a", "b"], ["ab"], [""]),
        "place": (None, [0.0, 1.0], [-0.0, 1.0], [0.1, 1e-30]),
        "picture": (None, "base64:", "base64:AA==", "base64:AAA=", "s3://bin/a", "s3://bin/b"),
        "_row_note": (None, "", "x", "y"),
    },
    "Bin": {"label": (None, "", "x", "y"), "rank": (None, 0, -(2**63), 2**63 - 1)},
    "Shelf": {"title": (None, None, *(f"t{n}" for n in range(6)))},
    "Fits": {"grade": (None, None, *range(6))},
    "Holds": {"count": (None, 0, 1, 2), "note": (None, "", "x")},
    "Near": {},
}
_IDS = {
    "Part": [f"p{n}" for n in range(12)],
    "Bin": [f"b{n}" for n in range(6)],
    "Shelf": [str(n) for n in range(5)],
    "Fits": [f"f{n}" for n in range(14)],
    "Holds": [f"h{n}" for n in range(14)],
    "Near": [f"n{n}" for n in range(10)],
}


def graph_of(og: Omnigraph, target: str | ReadTarget = "main") -> Graph:
    """Everything a target holds."""
    snapshot = og.snapshot_of(target)
    catalog = accepted_catalog(snapshot.schema)
    graph: Graph = {}
    for type in (*catalog.nodes.values(), *catalog.edges.values()):
        rows = og.table(snapshot, type.table_key).read()
        for text in row_objects(type, rows).to_pylist():
            key, id, row = read_record(json.loads(text))
            assert id not in graph.setdefault(key, {})
            graph[key][id] = row
    return graph


def read_record(record: Record) -> tuple[str, str, Row]:
    """Table key, id and row of an exported record."""
    data = dict(record["data"])
    id = data.pop("id")
    if "edge" in record:
        data |= {"src": record["from"], "dst": record["to"]}
        return f"edge:{record['edge']}", id, as_row(data)
    return f"node:{record['type']}", id, as_row(data)


def as_row(values: Mapping[str, object]) -> Row:
    return {name: json.dumps(value) for name, value in values.items()}


def record_of(key: str, id: str, row: Row) -> Record:
    """What loads a row."""
    kind, name = key.split(":")
    data = {"id": id} | {name: json.loads(text) for name, text in row.items()}
    if kind == "node":
        return {"type": name, "data": data}
    return {"edge": name, "from": data.pop("src"), "to": data.pop("dst"), "data": data}


def load(og: Omnigraph, branch: str, records: Iterable[Record], **options: Any) -> None:
    og.load("\n".join(map(json.dumps, records)).encode(), branch=branch, **options)


def delete(og: Omnigraph, branch: str, type_name: str, ids: Iterable[str]) -> None:
    """Rows of a type; with nodes, the edges at them."""
    query = f"query q($ids: [String]) {{ delete {type_name} where id in $ids }}"
    og.mutate(query, {"ids": list(ids)}, branch=branch)


class World:
    """Edits of branches, drawn from one source of chance. What a rule refuses is left undone."""

    def __init__(self, og: Omnigraph, seed: int) -> None:
        self.og = og
        self.random = random.Random(seed)
        self.catalog: Catalog = CATALOG

    def fill(self, branch: str, share: float = 0.6) -> None:
        """Rows for about that share of all ids; as large a part of them as the rules allow."""
        for names in (("Part", "Bin", "Shelf"), ("Fits", "Holds", "Near")):
            graph = graph_of(self.og, branch)
            records = [
                self._drawn(name, id, graph)
                for name in names
                for id in _IDS[name]
                if self.random.random() < share
            ]
            self._load(branch, [record for record in records if record])

    def edit(self, branch: str, times: int) -> None:
        """Change a branch some times, each in a way of its own."""
        ways: tuple[tuple[Callable[[str], None], int], ...] = (
            (self.put, 5), (self.touch, 5), (self.remove_nodes, 2), (self.remove_edges, 2),
            (self.overwrite, 1), (self.come_and_go, 1), (self.there_and_back, 1),
            (self.rewrite, 1), (self.optimize, 1), (self.index, 1),
        )  # fmt: skip
        chosen = self.random.choices(*zip(*ways, strict=True), k=times)
        for way in chosen:
            way(branch)

    def put(self, branch: str) -> None:
        """Rows with any id, new or not, every property drawn anew."""
        graph = graph_of(self.og, branch)
        records = {}
        for name in [self._type_name() for _ in range(self.random.randint(2, 7))]:
            id = self._any_id(name, graph)
            drawn = self._drawn(name, id, graph)
            if drawn is not None:
                records[name, id] = drawn
        self._load(branch, records.values())

    def touch(self, branch: str) -> None:
        """One property of some rows."""
        graph = graph_of(self.og, branch)
        changed = []
        for key, id in self._some_rows(graph, most=8):
            row, choices = graph[key][id], _VALUES[key.split(":")[1]]
            if choices:
                name = self.random.choice(sorted(choices))
                value = json.dumps(self.random.choice(choices[name]))
                changed.append(record_of(key, id, row | {name: value}))
        self._load(branch, changed)

    def retouch(self, branch: str, values: Mapping[str, tuple[object, ...]]) -> None:
        """The same in whatever schema the branch has by now; `values` are those that came with it.

        Other properties get values that other rows of the table have.
        """
        graph = graph_of(self.og, branch)
        changed = []
        for key, id in self._some_rows(graph, most=8):
            names = sorted(graph[key][id].keys() - {"src", "dst", "code", "number"})
            if names:
                name = self.random.choice(names)
                taken = [json.loads(row[name]) for row in graph[key].values()]
                choices = values.get(f"{name} of {key}", values.get(name, taken))
                text = json.dumps(self.random.choice(list(choices)))
                changed.append(record_of(key, id, graph[key][id] | {name: text}))
        self._load(branch, changed)

    def remove_nodes(self, branch: str) -> None:
        self._remove(branch, self.random.choice(("Part", "Bin", "Shelf")), most=2)

    def remove_edges(self, branch: str) -> None:
        self._remove(branch, self.random.choice(("Fits", "Holds", "Near")), most=2)

    def overwrite(self, branch: str) -> None:
        """A table's rows without some of them, with others changed: every row is written anew."""
        graph = graph_of(self.og, branch)
        name = self._type_name()
        key = self._type(name).table_key
        records = []
        for id, row in graph.get(key, {}).items():
            drawn = self._drawn(name, id, graph) if self.random.random() < 0.1 else None
            if self.random.random() < 0.9:
                records.append(drawn or record_of(key, id, row))
        self._load(branch, records, mode="overwrite", skip_bad=False)

    def come_and_go(self, branch: str) -> None:
        """Rows that are gone again at once."""
        graph = graph_of(self.og, branch)
        free = sorted({*_IDS["Part"]} - {*graph.get("node:Part", {})})
        if free:
            self._load(branch, [{"type": "Part", "data": {"code": free[0]}}])
            delete(self.og, branch, "Part", free[:1])

    def there_and_back(self, branch: str) -> None:
        """A row that changes and is then what it was."""
        graph = graph_of(self.og, branch)
        for key, id in self._some_rows({"node:Bin": graph.get("node:Bin", {})}, most=1):
            row = graph[key][id]
            self._load(branch, [record_of(key, id, row | {"label": '"elsewhere"'})])
            self._load(branch, [record_of(key, id, row)])

    def rewrite(self, branch: str) -> None:
        """Rows loaded again as they are."""
        graph = graph_of(self.og, branch)
        rows = self._some_rows(graph, most=5)
        self._load(branch, [record_of(key, id, graph[key][id]) for key, id in rows])

    def optimize(self, branch: str) -> None:
        self.og.optimize(branch=branch)

    def index(self, branch: str) -> None:
        self.og.ensure_indices(branch=branch)

    def _drawn(self, name: str, id: str, graph: Graph) -> Record | None:
        """A row of a type with drawn values; None for an edge that has no ends to go to."""
        values = {
            property: self.random.choice(choices) for property, choices in _VALUES[name].items()
        }
        type = self._type(name)
        if isinstance(type, EdgeType):
            ends = [sorted(graph.get(f"node:{node}", {})) for node in (type.source, type.target)]
            if not all(ends):
                return None
            src, dst = (self.random.choice(ids) for ids in ends)
            return {"edge": name, "from": src, "to": dst, "data": {"id": id, **values}}
        if type.key is None:
            return {"type": name, "data": {"id": id, **values}}
        return {"type": name, "data": {type.key[0]: int(id) if id.isdigit() else id, **values}}

    def _any_id(self, name: str, graph: Graph) -> str:
        """An id of a type: half of the time one that is free, if any is."""
        free = sorted({*_IDS[name]} - {*graph.get(self._type(name).table_key, {})})
        return self.random.choice(free if free and self.random.random() < 0.5 else _IDS[name])

    def _type_name(self) -> str:
        return self.random.choice(sorted(_VALUES))

    def _type(self, name: str) -> NodeType | EdgeType:
        return self.catalog.nodes.get(name) or self.catalog.edges[name]

    def _some_rows(self, graph: Graph, *, most: int) -> list[tuple[str, str]]:
        rows = sorted((key, id) for key, table in graph.items() for id in table)
        return self.random.sample(rows, min(len(rows), self.random.randint(1, most)))

    def _remove(self, branch: str, name: str, *, most: int) -> None:
        key = self._type(name).table_key
        graph = graph_of(self.og, branch)
        ids = [id for _, id in self._some_rows({key: graph.get(key, {})}, most=most)]
        try:
            delete(self.og, branch, name, ids)
        except DataError:
            return  # an edge at it was the last one its source may lose

    def _load(self, branch: str, records: Iterable[Record], **options: Any) -> None:
        listed = list(records)
        if not listed:
            return
        try:
            load(self.og, branch, listed, **{"skip_bad": True} | options)
        except DataError:
            return  # no row was good, or rows that stay would lose theirs
