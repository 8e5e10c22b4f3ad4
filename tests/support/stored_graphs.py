"""Graphs of the oracle in real tables: what a match needs of a snapshot, without commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from omnigraph_core.exec.context import ReadPlan, Run, variable_types
from omnigraph_core.exec.guard import Guard
from omnigraph_core.exec.query_vectors import QueryVectors
from omnigraph_core.plan.values import Values
from omnigraph_core.schema.arrow import table_schema
from omnigraph_core.storage.dataset import create_table
from omnigraph_core.storage.session import open_store
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology.dense import DenseTable
from omnigraph_core.topology.links import Links, links_of
from omnigraph_core.topology.memory import ByteCache
from tests.support.oracle import NOW
from tests.support.parts import present

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from omnigraph_core.exec.frame import Frame
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.trace import Trace
    from omnigraph_core.plan.steps import QueryPlan
    from omnigraph_core.schema.catalog import Catalog, EdgeType, NodeType
    from omnigraph_core.storage.dataset import Table
    from omnigraph_core.storage.session import Store
    from omnigraph_core.values import Value
    from tests.support.oracle import Row
    from tests.support.oracle_graph import Edge, Node, OracleGraph


@dataclass(repr=False)
class StoredGraph:
    """One version of every table of a graph, and the entities behind their numbers."""

    catalog: Catalog
    tables: Mapping[str, DenseTable]
    entities: Mapping[str, tuple[Node | Edge, ...]]
    cache: ByteCache
    oracle: OracleGraph
    derived: None = None
    _links: dict[str, Links] = field(default_factory=dict)

    def nodes(self, type_name: str) -> DenseTable:
        return self.tables[type_name]

    def edges(self, type_name: str) -> DenseTable:
        return self.tables[type_name]

    def links(self, edge_type: str) -> Links:
        if edge_type not in self._links:
            declared = self.catalog.edges[edge_type]
            ends = self.tables[declared.source], self.tables[declared.target]
            self._links[edge_type] = links_of(self.tables[edge_type], *ends, self.cache, None)
        return self._links[edge_type]

    def run(
        self,
        plan: QueryPlan,
        params: Mapping[str, Value] | None = None,
        guard: Guard | None = None,
        trace: Trace | None = None,
    ) -> Run:
        """A run of a plan that ends with its match."""
        read = ReadPlan(plan, (), pa.schema([]), variable_types(plan.ir.pipeline))
        values = Values(NOW, params or {})
        limits = guard or Guard(budget=2**30)
        return Run(read, cast("GraphData", self), values, limits, QueryVectors({}), trace)

    def rows(self, run: Run, frame: Frame) -> list[Row]:
        """The rows of a frame as the oracle has them, each as often as it counts."""
        types = run.read.types
        columns = {
            name: [self._entity(types[name][1], number) for number in numbers.tolist()]
            for name, numbers in frame.numbers.items()
        }
        weights = [1] * frame.length if frame.weights is None else frame.weights.tolist()
        return [
            {name: column[place] for name, column in columns.items()}
            for place, weight in enumerate(weights)
            for _ in range(weight)
        ]

    def _entity(self, type_name: str, number: int) -> Node | Edge | None:
        return None if number < 0 else self.entities[type_name][number]


def store_graph(root: Path, graph: OracleGraph) -> StoredGraph:
    """The graph in a store of its own, dangling edges included."""
    store = open_store(str(root))
    store.create_root()
    cache = ByteCache(2**28)
    catalog = graph.catalog
    entities: dict[str, tuple[Node | Edge, ...]] = {
        **{name: tuple(nodes.values()) for name, nodes in graph.nodes.items()},
        **{name: tuple(edges) for name, edges in graph.edges.items()},
    }
    declared: dict[str, NodeType | EdgeType] = {**catalog.nodes, **catalog.edges}
    tables = {
        name: DenseTable(_stored(store, name, declared[name], rows), cache)
        for name, rows in entities.items()
    }
    return StoredGraph(catalog, tables, entities, cache, graph)


def _stored(
    store: Store, name: str, type: NodeType | EdgeType, rows: Iterable[Node | Edge]
) -> Table:
    schema = table_schema(type)
    columns = {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in schema}
    table = create_table(store, f"sample/{name}", schema)
    filled = pa.table(columns, schema=schema)
    return present(stage_append(table, filled)) if filled.num_rows else table
