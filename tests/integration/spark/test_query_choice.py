"""`auto` chooses between this process and Spark by the rows that are expected, and tells why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine import beyond
from tests.support.spark_queries import make_graph, query

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from omnigraph_core.engine.omnigraph import Omnigraph

BY_KEY = 'query by_key() { match { $a: Part { sku: "p1" } } return { $a.size } }'
COUNTED = "query counted() { match { $a: Part } return { count($a) as n } }"
FAR = 'query far() { match { $a: Part { sku: "p1" } $a needs $b $b needs $c } return { $c.sku } }'


@pytest.fixture
def graph(tmp_path: Path) -> Omnigraph:
    return make_graph(str(tmp_path / "graph"))


def where(graph: Omnigraph, text: str, engine: str = "auto") -> str:
    report = graph.explain("main", text, engine=engine)
    assert report.engine is not None
    assert report.lines[-1] == f"  {report.engine}"
    assert report.to_json()["engine"] == report.engine
    return report.engine


def test_small_graphs_stay_in_this_process(graph: Omnigraph) -> None:
    assert where(graph, query("not")) == (
        "in this process: no step has to do with more than 50,000,000 rows"
    )


def test_what_was_asked_for_is_done(graph: Omnigraph) -> None:
    assert where(graph, query("not"), "spark") == "on Spark: as asked for"
    report = graph.explain("main", query("not"))
    assert report.engine is None
    assert "engine" not in report.to_json()


def test_a_large_table_or_many_rows_are_for_spark(
    graph: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SPARK_ROWS", "11")
    assert where(graph, query("not")) == "on Spark: scan $a: Part reads ~12 rows, more than 11"
    assert where(graph, BY_KEY).startswith("in this process")
    assert where(graph, COUNTED).startswith("in this process")
    monkeypatch.setenv("OMNIGRAPH_SPARK_ROWS", "3")
    assert where(graph, FAR) == "on Spark: expand $b -Needs-> $c: Part makes ~4 rows, more than 3"
    monkeypatch.setenv("OMNIGRAPH_SPARK_ROWS", "140")
    pairs = "query pairs() { match { $a: Part $b: Part } return { $a.sku, $b.sku } }"
    assert where(graph, pairs) == "on Spark: scan $b: Part makes ~140 rows, more than 140"


def test_without_pyspark_everything_stays_here(
    graph: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_SPARK_ROWS", "1")
    monkeypatch.setattr(beyond.importlib.util, "find_spec", lambda name: None)
    assert where(graph, query("not")).endswith("but pyspark is not installed")
    assert graph.query("main", query("not"), engine="auto").num_rows == 4


def test_the_choice_is_carried_out(
    graph: Omnigraph, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    original = beyond.execute_on_spark

    def noting(*given: object) -> object:
        asked.append("spark")
        return original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("omnigraph_core.engine.reads.execute_on_spark", noting)
    here = graph.query("main", query("distinct"), engine="auto")
    assert asked == []
    monkeypatch.setenv("OMNIGRAPH_SPARK_ROWS", "2")
    there = graph.query("main", query("distinct"), engine="auto")
    assert asked == ["spark"]
    assert there.table.equals(here.table)
    version = graph.snapshot().manifest_version
    again = graph.run_query_at(version, query("distinct"), engine="spark")
    assert asked == ["spark", "spark"]
    assert again.table.equals(here.table)
