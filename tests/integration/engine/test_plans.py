"""Reports on real tables: what is known of a snapshot, and what a run of the query had to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine.plans import explain_read, profile_read
from omnigraph_core.exec.catalogs import accepted_catalog
from omnigraph_core.exec.graph_data import GraphData
from omnigraph_core.exec.queries import plan_read
from omnigraph_core.exec.run import NO_LIMITS
from omnigraph_core.ir.compile import compile_one
from omnigraph_core.manifest.image import TableOperation
from omnigraph_core.storage.indexes import stage_index
from omnigraph_core.storage.segments import IndexRequest, SegmentKind
from omnigraph_core.storage.staged import stage_append
from omnigraph_core.topology.memory import ByteCache
from tests.support.graphs import BIN, HOLDS, PART, holds, new_graph, parts, publish, rows_of
from tests.support.parts import present

if TYPE_CHECKING:
    from pathlib import Path

    from omnigraph_core.engine.omnigraph import Omnigraph
    from omnigraph_core.plan.report import PlanReport

IDS = [f"p{i}" for i in range(12)]
FULL = """
query q($least: I64) {
    match { $b: Bin $b holds $p $p.stock > $least not { $x holds $p $x.code = "other" } }
    return { $p.sku }
}
"""


@pytest.fixture
def og(tmp_path: Path) -> Omnigraph:
    """Twelve parts in one bin, ten of them in the indexes of their ids and stocks."""
    graph = new_graph(str(tmp_path / "graph"))
    snapshot = graph.snapshot()
    table = present(stage_append(graph.table(snapshot, PART), parts(IDS[:10], stock=3)))
    for column in ("id", "stock"):
        request = IndexRequest(column, SegmentKind.BTREE, f"{column}_idx")
        table = present(stage_index(table, request))
    staged = {
        PART: present(stage_append(table, parts(IDS[10:], stock=4))),
        BIN: present(stage_append(graph.table(snapshot, BIN), rows_of(BIN, ["bin"]))),
        HOLDS: present(stage_append(graph.table(snapshot, HOLDS), holds(IDS))),
    }
    publish(graph, snapshot, staged, TableOperation.APPEND)
    return graph


def data(og: Omnigraph, capacity: int = 2**24) -> GraphData:
    snapshot = og.snapshot()
    catalog = accepted_catalog(snapshot.schema)
    return GraphData(og._context, snapshot, catalog, ByteCache(capacity), None)


def explained(graph: GraphData, text: str) -> PlanReport:
    return explain_read(graph, plan_read(compile_one(text, graph.catalog), graph.catalog))


def test_estimates_come_from_the_snapshot(og: Omnigraph) -> None:
    scan, expand, anti = explained(data(og), FULL).steps
    assert (scan.kind, scan.estimated_rows) == ("scan", 1)
    assert (expand.kind, expand.estimated_rows) == ("expand", pytest.approx(12 * 0.3))
    assert anti.kind == "anti-join"


def test_values_that_were_counted_are_known(og: Omnigraph) -> None:
    graph = data(og)
    text = "query q() { match { $p: Part } return { $p.name, count($p) as n } }"
    assert explained(graph, text).result[0].estimated_rows == pytest.approx(1.2)
    graph.nodes("Part").codes("name")
    assert explained(graph, text).result[0].estimated_rows == 12


def test_a_column_that_does_not_fit_is_looked_for_in_its_index(og: Omnigraph) -> None:
    text = "query q() { match { $p: Part $p.stock > 3 } return { $p.sku } }"
    (kept,) = explained(data(og), text).steps
    assert (kept.notes, kept.indexes) == (("column filter on stock",), ())
    (asked,) = explained(data(og, capacity=64), text).steps
    assert asked.pushed == ("$p.stock > 3",)
    assert [str(index) for index in asked.indexes] == ["index BTREE(stock), 83% covered"]


def test_a_run_tells_its_rows(og: Omnigraph) -> None:
    graph = data(og)
    read = plan_read(compile_one(FULL, graph.catalog), graph.catalog)
    report = profile_read(graph, read, {"least": 3}, og._embedder, NO_LIMITS)
    made = [(step.kind, step.work.rows_out if step.work else None) for step in report.steps]
    assert made == [("scan", 1), ("expand", 2), ("anti-join", 2)]
    assert report.total is not None
    assert report.total.rows_out == 2
    steps = sum(step.work.seconds for step in report.steps if step.work)
    assert 0 < steps <= report.total.seconds


def test_a_lookup_is_profiled_too(og: Omnigraph) -> None:
    text = 'query q() { match { $p: Part {sku: "p3"} } return { $p.stock } }'
    report = og.profile("main", text)
    assert [step.work.rows_out for step in report.steps if step.work] == [1]
    assert "key lookup on sku" in report.text
    assert og.explain("main", text).total is None
