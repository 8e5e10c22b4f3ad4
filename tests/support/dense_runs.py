"""Runs over tables alone: what expressions and conditions need, without a graph around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from omnigraph_core.exec.context import ReadPlan, Run
from omnigraph_core.exec.guard import Guard
from omnigraph_core.exec.query_vectors import QueryVectors
from omnigraph_core.ir.nodes import QueryIR
from omnigraph_core.plan.steps import QueryPlan
from omnigraph_core.plan.values import Values
from omnigraph_core.query.typed import EntityKind
from omnigraph_core.schema.catalog import Catalog, NodeType
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.memory import ByteCache
from omnigraph_core.topology.postings import Postings, postings_of
from tests.support.oracle import NOW
from tests.support.parts import present

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.query_vectors import QueryVector
    from omnigraph_core.query.typed import Nearest
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.values import Value

PLENTY = 2**28
NOTHING = 64
"""Bytes of a cache that no column fits in."""


def stored(root: Path, rows: pa.Table, location: str = "nodes/sample") -> Table:
    """The rows in a table of their own."""
    store = open_store(str(root))
    store.create_root()
    table = create_table(store, location, rows.schema)
    return present(stage_append(table, rows)) if rows.num_rows else table


@dataclass(repr=False)
class Tables:
    """Tables by the name of their node type: as much of a snapshot as rows of one table need."""

    catalog: Catalog
    cache: ByteCache
    dense: Mapping[str, DenseTable]
    derived: None = None

    def nodes(self, type_name: str) -> DenseTable:
        return self.dense[type_name]

    def words(self, dense: DenseTable, property: str, check: Callable[[], None]) -> Postings:
        return postings_of(dense, property, self.cache, None, check)


@dataclass(repr=False)
class Runs:
    """Makes runs over one table whose rows are bound to any variable."""

    table: Table
    type: NodeType
    capacity: int = PLENTY
    cache: ByteCache = field(init=False)
    tables: Tables = field(init=False)

    def __post_init__(self) -> None:
        self.cache = ByteCache(self.capacity)
        catalog = Catalog({}, {self.type.name: self.type}, {}, {})
        dense = DenseTable(self.table, self.cache)
        self.tables = Tables(catalog, self.cache, {self.type.name: dense})

    @property
    def dense(self) -> DenseTable:
        return self.tables.dense[self.type.name]

    def run(
        self,
        *variables: str,
        params: Mapping[str, Value] | None = None,
        vectors: Mapping[Nearest, QueryVector | None] | None = None,
    ) -> Run:
        types = dict.fromkeys(variables, (EntityKind.NODE, self.type.name))
        plan = QueryPlan(QueryIR("sample"), (), is_set=False, row_needs=frozenset())
        read = ReadPlan(plan, (), pa.schema([]), types)
        values = Values(NOW, {} if params is None else params)
        graph = cast("GraphData", self.tables)
        return Run(read, graph, values, Guard(budget=2**30), QueryVectors(vectors or {}))
