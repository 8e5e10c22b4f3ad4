"""A graph with every rule that rows keep together, and a full scan that says which are broken.

The scan reads whole tables into plain values and shares nothing with the checks of a write.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.exec.catalogs import accepted_catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType

SCHEMA: Final = """
node Part {
  sku: String @key
  code: String? @unique
  stock: I64?
}

node Bin {
  label: String @key
}

edge LiesIn: Part -> Bin @card(0..2) {
  since: I64?
  @unique(src, dst)
}
"""
MOST_BINS: Final = 2
PART: Final = "node:Part"
BIN: Final = "node:Bin"
LIES_IN: Final = "edge:LiesIn"

Row = dict[str, Any]
Rows = dict[str, list[Row]]


def new_graph(address: str) -> Omnigraph:
    return Omnigraph.init(address, SCHEMA, actor="tester")


def part(sku: str, code: str | None = None, stock: int | None = None) -> Row:
    """A record of a part, ready to load."""
    given = {"sku": sku, "code": code, "stock": stock}
    return {
        "type": "Part",
        "data": {name: value for name, value in given.items() if value is not None},
    }


def bin(label: str) -> Row:
    return {"type": "Bin", "data": {"label": label}}


def lies_in(sku: str, label: str) -> Row:
    return {"edge": "LiesIn", "from": sku, "to": label}


def jsonl(*records: Row) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def rows_of(og: Omnigraph, snapshot: Snapshot) -> Rows:
    """Every row of every table, by id."""
    return {
        key: sorted(og.table(snapshot, key).read().to_pylist(), key=lambda row: str(row["id"]))
        for key in snapshot.tables
    }


def ids_of(og: Omnigraph, table_key: str, branch: str = "main") -> list[str]:
    """The ids of a table as it is now, sorted."""
    return sorted(og.table(og.snapshot(branch), table_key).read(["id"])["id"].to_pylist())


def check_every_version(og: Omnigraph, branch: str = "main") -> int:
    """No published version of the branch breaks a rule; how many there are."""
    newest = og.snapshot(branch).manifest_version
    seen: set[tuple[int, ...]] = set()
    for version in range(1, newest + 1):
        snapshot = og.snapshot_at_version(version, branch=branch)
        tables = tuple(entry.physical_version for _, entry in sorted(snapshot.tables.items()))
        if tables not in seen:
            seen.add(tables)
            check_rules(og, snapshot)
    return newest


def check_rules(og: Omnigraph, snapshot: Snapshot) -> None:
    rows = rows_of(og, snapshot)
    for key, entry in snapshot.tables.items():
        assert entry.row_count == len(rows[key]), f"{key} at {snapshot.manifest_version}"
    found = broken_rules(accepted_catalog(snapshot.schema), rows)
    assert not found, f"at version {snapshot.manifest_version}: {found[:5]}"


def broken_rules(catalog: Catalog, rows: Rows) -> list[str]:
    """What tables break taken together, in words."""
    return [
        *(f for node in catalog.nodes.values() for f in _broken_node(node, rows[node.table_key])),
        *(f for edge in catalog.edges.values() for f in _broken_edge(edge, catalog, rows)),
    ]


def _broken_node(node: NodeType, rows: list[Row]) -> Iterator[str]:
    yield from _repeated(node.name, ("id",), rows)
    for group in (*node.unique, *([node.key] if node.key else [])):
        yield from _repeated(node.name, group, rows)


def _broken_edge(edge: EdgeType, catalog: Catalog, rows: Rows) -> Iterator[str]:
    own = rows[edge.table_key]
    for group in (("id",), *edge.unique):
        yield from _repeated(edge.name, group, own)
    for side, node in (("src", edge.source), ("dst", edge.target)):
        there = {row["id"] for row in rows[catalog.nodes[node].table_key]}
        lost = (row for row in own if row[side] not in there)
        yield from (f"{edge.name} {row['id']}: no {node} {row[side]}" for row in lost)
    yield from _beyond(edge, Counter(row["src"] for row in own))


def _beyond(edge: EdgeType, counts: Counter[str]) -> Iterator[str]:
    """Sources that never had an edge may have none."""
    least, most = edge.cardinality.minimum, edge.cardinality.maximum
    for source, count in counts.items():
        if count < least or (most is not None and count > most):
            yield f"{edge.name}: {count} from {source}"


def _repeated(name: str, group: Iterable[str], rows: list[Row]) -> Iterator[str]:
    columns = tuple(group)
    tuples = Counter(tuple(row[column] for column in columns) for row in rows)
    for values, count in tuples.items():
        if count > 1 and None not in values:
            yield f"{name}.{columns}: {values} {count} times"
