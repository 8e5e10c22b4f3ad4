"""What a report knows of a snapshot, from real tables, and a real run beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.exec.collect import run_read
from omnigraph_core.exec.context import Run
from omnigraph_core.exec.graph_data import GraphData
from omnigraph_core.exec.guard import Guard
from omnigraph_core.exec.queries import plan_read
from omnigraph_core.exec.query_vectors import QueryVectors
from omnigraph_core.exec.statistics import GraphStats
from omnigraph_core.exec.trace import Trace
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.plan.estimate import IndexFact
from omnigraph_core.plan.explain import explain_plan
from omnigraph_core.plan.values import Values
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology.memory import ByteCache
from tests.support.graphs import BIN, HOLDS, PART, holds, new_graph, parts, publish, rows_of
from tests.support.oracle import NOW
from tests.support.parts import present

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.exec.context import ReadPlan

IDS = [f"p{i}" for i in range(12)]


@pytest.fixture
def graph(tmp_path: Path) -> GraphData:
    """Twelve parts in one bin, ten of them in the index of their ids."""
    og = new_graph(str(tmp_path / "graph"))
    snapshot = og.snapshot()
    first = present(stage_append(og.table(snapshot, PART), parts(IDS[:10], stock=3)))
    indexed = present(stage_index(first, IndexRequest("id", SegmentKind.BTREE, "id_idx")))
    staged = {
        PART: present(stage_append(indexed, parts(IDS[10:], stock=4))),
        BIN: present(stage_append(og.table(snapshot, BIN), rows_of(BIN, ["bin"]))),
        HOLDS: present(stage_append(og.table(snapshot, HOLDS), holds(IDS))),
    }
    publish(og, snapshot, staged, TableOperation.APPEND)
    now = og.snapshot()
    return GraphData(og._context, now, accepted_catalog(now.schema), ByteCache(2**24), None)


def read_of(graph: GraphData, text: str) -> ReadPlan:
    return plan_read(compile_one(text, graph.catalog), graph.catalog)


def test_counts_and_indexes(graph: GraphData) -> None:
    stats = GraphStats(graph)
    assert (stats.node_count("Part"), stats.edge_count("Holds")) == (12, 12)
    assert stats.indexes("Part", "id") == (IndexFact("BTREE", 10),)
    assert stats.indexes("Part", "stock") == ()
    assert stats.is_kept("Part", "name")


def test_distinct_values_are_known_once_somebody_has_counted_them(graph: GraphData) -> None:
    stats = GraphStats(graph)
    assert stats.distinct_count("Part", "sku") is None
    graph.nodes("Part").codes("sku")
    assert stats.distinct_count("Part", "sku") == 12


def test_a_column_that_does_not_fit_is_not_kept(graph: GraphData) -> None:
    small = GraphData(graph._context, graph.snapshot, graph.catalog, ByteCache(64), None)
    assert not GraphStats(small).is_kept("Part", "name")


def test_a_run_tells_its_rows(graph: GraphData) -> None:
    text = """
    query q() {
        match { $b: Bin $b holds $p $p.stock > 3 not { $x holds $p $x.code = "other" } }
        return { $p.sku }
    }
    """
    read, trace = read_of(graph, text), Trace()
    guard, vectors = Guard(budget=2**30), QueryVectors({})
    found = run_read(Run(read, graph, Values(NOW), guard, vectors, trace), read.plan)
    assert sorted(found.column(0).to_pylist()) == IDS[10:]
    report = explain_plan(read.plan, GraphStats(graph), graph.catalog, measured=trace)
    made = [(step.kind, step.work.rows_out if step.work else None) for step in report.steps]
    assert made == [("scan", 1), ("expand", 2), ("anti-join", 2)]
    inner = report.steps[2].inner[0]
    assert inner.kind == "expand"
    assert inner.work is None or inner.work.rows_out == 0
