"""What every part of a running query works with.

A `ReadPlan` depends on query and schema alone and is kept; a `Run` is one execution of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.ir.nodes import AntiJoin, Expand, NodeScan, OptionalJoin
from omnigraph_core.query.typed import EntityKind

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    import pyarrow as pa

    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.guard import Guard
    from omnigraph_core.exec.query_vectors import QueryVectors
    from omnigraph_core.exec.trace import Trace
    from omnigraph_core.ir.nodes import Pipeline
    from omnigraph_core.plan.least_values import LeastValue
    from omnigraph_core.plan.steps import QueryPlan
    from omnigraph_core.plan.values import Values
    from omnigraph_core.query.descriptor import ResultColumn
    from omnigraph_core.topology.dense import DenseTable


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A read ready to run on any snapshot of its schema."""

    plan: QueryPlan
    columns: tuple[ResultColumn, ...]
    schema: pa.Schema
    """Of the result."""
    types: Mapping[str, tuple[EntityKind, str]]
    """Kind and type of every variable, those inside joins as well."""
    least: tuple[LeastValue, ...] = ()
    """What parameters may not fall below."""


@dataclass(slots=True)
class Run:
    """One execution of a read over one snapshot."""

    read: ReadPlan
    graph: GraphData
    values: Values
    guard: Guard
    vectors: QueryVectors
    trace: Trace | None = None
    memo: dict[Hashable, object] = field(default_factory=dict)
    """What was computed once and is needed again in this run."""

    @property
    def plan(self) -> QueryPlan:
        return self.read.plan

    @property
    def schema(self) -> pa.Schema:
        return self.read.schema

    def dense(self, variable: str) -> DenseTable:
        """The table whose rows a variable is bound to."""
        kind, type_name = self.read.types[variable]
        graph = self.graph
        return graph.nodes(type_name) if kind is EntityKind.NODE else graph.edges(type_name)


def variable_types(pipeline: Pipeline) -> dict[str, tuple[EntityKind, str]]:
    """Kind and type of every variable a pipeline binds, at any depth; names are never reused."""
    return dict(_bindings(pipeline))


def _bindings(pipeline: Pipeline) -> Iterator[tuple[str, tuple[EntityKind, str]]]:
    for op in pipeline:
        match op:
            case NodeScan():
                yield op.variable, (EntityKind.NODE, op.type_name)
            case Expand():
                if not op.is_closing:
                    yield op.dst_var, (EntityKind.NODE, op.dst_type)
                if op.edge_binding is not None:
                    yield op.edge_binding, (EntityKind.EDGE, op.edge_type)
            case AntiJoin() | OptionalJoin():
                yield from _bindings(op.inner)
            case _:
                continue


def iter_table_keys(pipeline: Pipeline) -> Iterator[str]:
    """The tables that a pipeline reads, at any depth; a table may come more than once."""
    for op in pipeline:
        match op:
            case NodeScan():
                yield node_table_key(op.type_name)
            case Expand():
                yield from (edge_table_key(op.edge_type), node_table_key(op.dst_type))
            case AntiJoin() | OptionalJoin():
                yield from iter_table_keys(op.inner)
            case _:
                continue
