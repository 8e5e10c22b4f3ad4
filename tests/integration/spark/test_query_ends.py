"""How reads on Spark end when they do not end well: as they would in this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from omnigraph_core.engine import beyond
from omnigraph_core.errors import (
    BudgetExceeded,
    ConfigError,
    DataError,
    OmnigraphError,
    ParameterError,
    QueryCancelled,
    QueryTimeout,
)
from omnigraph_core.exec.guard import Cancellation
from tests.support.spark_queries import make_graph, query
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph_core.engine.omnigraph import Omnigraph

ENDLESS = """
query endless() {
  match { $a: Part $b: Part $c: Part $d: Part $a.size != $b.size }
  return { $a.sku, $b.sku, $c.sku, $d.sku }
}
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Omnigraph:
    return make_graph(str(tmp_path_factory.mktemp("graph") / "graph"), 400)


def failure(graph: Omnigraph, text: str, engine: str, **given: object) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as failed:
        graph.query("main", text, params=given, engine=engine)
    return failed.value


def test_a_result_larger_than_its_memory_is_not_fetched(
    spark: SparkSession, graph: Omnigraph
) -> None:
    text = "query q() { match { $a: Part $b: Part } return { $a.sku, $b.sku } }"
    with pytest.raises(BudgetExceeded, match="`return`") as failed:
        graph.query("main", text, memory=100_000, engine="spark")
    assert failed.value.needed > 160_000 * 4
    small = graph.query("main", query("groups"), memory=100_000, engine="spark")
    assert small.num_rows == 3


def test_few_rows_that_are_too_large_are_refused(spark: SparkSession, graph: Omnigraph) -> None:
    text = "query q() { match { $a: Part } return { $a } limit 300 }"
    with pytest.raises(BudgetExceeded, match="`return`"):
        graph.query("main", text, memory=1_000, engine="spark")


def test_time_runs_out(spark: SparkSession, graph: Omnigraph) -> None:
    graph.query("main", query("not"), engine="spark")  # whatever is done once is done
    with pytest.raises(QueryTimeout):
        graph.query("main", ENDLESS, timeout=2.0, engine="spark")
    wait_until(lambda: not jobs_of(spark), "the end of all jobs")


def test_a_query_is_cancelled_from_another_thread(spark: SparkSession, graph: Omnigraph) -> None:
    cancellation = Cancellation()

    def cancel_a_job() -> None:
        try:
            wait_until(lambda: jobs_of(spark), "a job")
        finally:
            cancellation.cancel()

    with ThreadPoolExecutor(1) as pool:
        cancelling = pool.submit(cancel_a_job)
        with pytest.raises(QueryCancelled):
            graph.query("main", ENDLESS, cancellation=cancellation, engine="spark")
        cancelling.result()
    wait_until(lambda: not jobs_of(spark), "the end of all jobs")


def jobs_of(spark: SparkSession) -> list[int]:
    """Those that run."""
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


@pytest.mark.parametrize(
    "result",
    ["sum($a.size) as s", "sum($c.big) as s", "count($a) as n"],
)
def test_numbers_that_do_not_fit_are_refused_as_ever(
    spark: SparkSession, graph: Omnigraph, result: str
) -> None:
    scans = " ".join(f"${name}: Part" for name in "abcdefgh")
    text = f"query q() {{ match {{ {scans} }} return {{ {result} }} }}"
    here, there = (failure(graph, text, engine) for engine in ("local", "spark"))
    assert isinstance(there, DataError)
    assert (type(there), there.message, there.hint) == (type(here), here.message, here.hint)


def test_an_error_of_a_task_is_the_error_of_the_query(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = make_graph(str(tmp_path_factory.mktemp("graph") / "graph"))
    change = "query q() { update Part set { big: 18446744073709551615 } where size >= 0 }"
    graph.mutate(change)
    text = "query q() { match { $a: Part } return { $a.size, sum($a.big) as s } }"
    here, there = (failure(graph, text, engine) for engine in ("local", "spark"))
    assert isinstance(there, DataError)
    assert there.message == here.message == "sum of $a.big exceeds U64"


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (query("hops"), {}),
        (query("hops"), {"sku": 3, "more": 1}),
        ("query q($n: I64) { match { $a: Part } return { $a.sku } limit $n }", {"n": -1}),
        (
            'query q($n: I64) { match { $a: Part fuzzy($a.text, "x", $n) } return { $a.sku } }',
            {"n": -1},
        ),
    ],
)
def test_parameters_are_checked_before_spark_is_asked(
    graph: Omnigraph, text: str, given: dict[str, object]
) -> None:
    here, there = (failure(graph, text, engine, **given) for engine in ("local", "spark"))
    assert isinstance(there, ParameterError)
    assert there.message == here.message


def test_limits_beyond_what_spark_counts(spark: SparkSession, graph: Omnigraph) -> None:
    text = "query q($n: I64, $m: I64) { match { $a: Part } return { $a.sku } limit $n offset $m }"
    given: dict[str, object] = {"n": 5_000_000_000, "m": 390}
    assert graph.query("main", text, params=given, engine="spark").num_rows == 10
    given = {"n": 1, "m": 5_000_000_000}
    with pytest.raises(ConfigError, match="`offset` is 5,000,000,000"):
        graph.query("main", text, params=given, engine="spark")


def test_an_engine_that_is_none_is_refused(graph: Omnigraph) -> None:
    with pytest.raises(ConfigError, match="`engine` is 'duck'") as failed:
        graph.query("main", query("not"), engine="duck")
    assert failed.value.hint == "give one of local, spark, auto"


def test_without_pyspark_the_way_to_it_is_told(
    graph: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beyond.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pyspark") as failed:
        graph.query("main", query("not"), engine="spark")
    assert failed.value.hint == "pip install 'omnigraph[spark]'"
