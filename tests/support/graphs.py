"""A small graph for tests of the commit kernel, and the shortest ways to write and read it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.manifest.changes import UpdateTable
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.manifest.requirements import requirements_of
from omnigraph_core.storage.staged import stage_append

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from omnigraph_core.manifest.image import GraphCommit
    from omnigraph_core.manifest.requirements import PublishState
    from omnigraph_core.manifest.snapshot import Snapshot
    from omnigraph_core.storage.dataset import Table

SCHEMA = """
node Part {
  sku: String @key
  name: String? @index
  stock: I64?
}

node Bin {
  code: String @key
}

edge Holds: Bin -> Part {
  count: I64?
}
"""
PART = "node:Part"
BIN = "node:Bin"
HOLDS = "edge:Holds"


def new_graph(address: str) -> Omnigraph:
    return Omnigraph.init(address, SCHEMA, actor="tester")


def copied(graph: Omnigraph, root: Path) -> Omnigraph:
    """A graph of its own at another place, with everything that this one holds."""
    shutil.copytree(graph.uri, root, dirs_exist_ok=True)
    return Omnigraph.open(str(root))


def parts(ids: Sequence[str], stock: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "sku": pa.array(ids, pa.string()),
            "name": pa.array([f"part {id}" for id in ids], pa.string()),
            "stock": pa.array([stock] * len(ids), pa.int64()),
        }
    )


def holds(ids: Sequence[str]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "src": pa.array(["bin"] * len(ids), pa.string()),
            "dst": pa.array(ids, pa.string()),
            "count": pa.array([1] * len(ids), pa.int64()),
        }
    )


def update(table_key: str, table: Table, operation: TableOperation) -> UpdateTable:
    """The change that publishes a staged version."""
    return UpdateTable.of(table_key, table, operation)


def publish(
    og: Omnigraph, snapshot: Snapshot, staged: Mapping[str, Table], operation: TableOperation
) -> GraphCommit:
    """Publish staged versions on the branch of the snapshot they were staged on."""
    changes = [update(key, table, operation) for key, table in staged.items()]
    requirements = requirements_of(snapshot, touched=staged)
    return og.commit(changes, requirements, branch=snapshot.branch, actor="tester")


def append_parts(og: Omnigraph, ids: Sequence[str], branch: str = "main") -> GraphCommit:
    """One commit on one table."""
    snapshot = og.snapshot(branch)
    staged = stage_append(og.table(snapshot, PART), parts(ids))
    assert staged is not None
    return publish(og, snapshot, {PART: staged}, TableOperation.APPEND)


def append_pair(og: Omnigraph, ids: Sequence[str], branch: str = "main") -> GraphCommit:
    """One commit on two tables: every id is a part and an edge, or neither."""
    snapshot = og.snapshot(branch)
    part = stage_append(og.table(snapshot, PART), parts(ids))
    edge = stage_append(og.table(snapshot, HOLDS), holds(ids))
    assert part is not None
    assert edge is not None
    return publish(og, snapshot, {PART: part, HOLDS: edge}, TableOperation.APPEND)


def ids(og: Omnigraph, snapshot: Snapshot, table_key: str = PART) -> list[str]:
    """The ids of a table, sorted."""
    return sorted(og.table(snapshot, table_key).read(["id"])["id"].to_pylist())


def content(og: Omnigraph, snapshot: Snapshot) -> dict[str, list[dict[str, object]]]:
    """Every row of every table, by id: what two equal snapshots share."""
    return {
        key: sorted(og.table(snapshot, key).read().to_pylist(), key=lambda row: str(row["id"]))
        for key in snapshot.tables
    }


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """A requirement that holds, and lets something happen between reading a base and writing."""

    action: Callable[[], object]

    def check(self, state: PublishState) -> None:
        self.action()


def rows_of(key: str, ids: Sequence[str]) -> pa.Table:
    """Rows for any of the three tables."""
    if key == PART:
        return parts(ids)
    return holds(ids) if key == HOLDS else pa.table({"id": list(ids), "code": list(ids)})


def append(og: Omnigraph, key: str, ids: Sequence[str], branch: str = "main") -> GraphCommit:
    """One commit on any one table."""
    snapshot = og.snapshot(branch)
    staged = stage_append(og.table(snapshot, key), rows_of(key, ids))
    assert staged is not None
    return publish(og, snapshot, {key: staged}, TableOperation.APPEND)


def touch(og: Omnigraph, key: str = BIN, branch: str = "main") -> GraphCommit:
    """The quickest commit: the version a table has is published again."""
    snapshot = og.snapshot(branch)
    change = update(key, og.table(snapshot, key), TableOperation.INDEX)
    return og.commit([change], requirements_of(snapshot, touched=[key]), branch=branch)
