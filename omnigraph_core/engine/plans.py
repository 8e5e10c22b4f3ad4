"""Plans of reads for people: what is expected of each step, and what it took when it ran.

Facts come from the snapshot's own counts, from what is in memory and from the tables' metadata; to
explain a query reads no rows.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph_core.engine.beyond import LOCAL, chosen
from omnigraph_core.exec.run import execute
from omnigraph_core.exec.trace import Trace
from omnigraph_core.ids import edge_table_key, node_table_key
from omnigraph_core.plan.estimate import IndexFact
from omnigraph_core.plan.explain import explain_plan
from omnigraph_core.plan.report import Work
from omnigraph_core.storage.indexes import index_coverage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph_core.embedding.embedder import Embedder
    from omnigraph_core.exec.context import ReadPlan
    from omnigraph_core.exec.graph_data import GraphData
    from omnigraph_core.exec.run import Limits
    from omnigraph_core.plan.report import PlanReport


def explain_read(graph: GraphData, read: ReadPlan, engine: str = LOCAL) -> PlanReport:
    """How a read would be carried out on a snapshot, and where, if that is to be chosen."""
    report = explain_plan(read.plan, Facts(graph), graph.catalog)
    if engine == LOCAL:
        return report
    return replace(report, engine=str(chosen(engine, read.plan, Facts(graph), graph.catalog)))


def profile_read(
    graph: GraphData,
    read: ReadPlan,
    params: Mapping[str, object] | None,
    embedder: Embedder,
    limits: Limits,
) -> PlanReport:
    """How a read was carried out: it is run, and its rows are counted and thrown away."""
    facts, trace = Facts(graph), Trace()
    started = time.perf_counter()
    rows = execute(graph, read, params, embedder, limits, trace)
    total = Work(0, rows.num_rows, time.perf_counter() - started)
    return explain_plan(read.plan, facts, graph.catalog, measured=trace, total=total)


class Facts:
    """What the planner may know of a snapshot's tables."""

    def __init__(self, graph: GraphData) -> None:
        self._graph = graph
        self._indexes: dict[str, dict[str, list[IndexFact]]] = {}

    def node_count(self, type_name: str) -> int:
        return self._graph.snapshot.table(node_table_key(type_name)).row_count

    def edge_count(self, edge_type: str) -> int:
        return self._graph.snapshot.table(edge_table_key(edge_type)).row_count

    def distinct_count(self, type_name: str, property: str) -> int | None:
        return self._graph.nodes(type_name).try_distinct_count(property)

    def is_kept(self, type_name: str, property: str) -> bool:
        dense = self._graph.nodes(type_name)
        return dense.is_resident(property) or dense.fits(property)

    def indexes(self, type_name: str, property: str) -> tuple[IndexFact, ...]:
        known = self._indexes.get(type_name)
        if known is None:
            known = self._indexes[type_name] = self._read_indexes(type_name)
        return tuple(known.get(property, ()))

    def _read_indexes(self, type_name: str) -> dict[str, list[IndexFact]]:
        rows = self.node_count(type_name)
        found: dict[str, list[IndexFact]] = {}
        for coverage in index_coverage(self._graph.nodes(type_name).table):
            fact = IndexFact(str(coverage.kind), rows - coverage.unindexed_rows)
            found.setdefault(coverage.columns[0], []).append(fact)
        return found
