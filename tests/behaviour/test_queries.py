"""Reads: rows in every form, parameters, targets, limits, plans."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.errors import (
    BudgetExceeded,
    ConfigError,
    ParameterError,
    QueryCancelled,
    QueryNotFound,
    QueryTimeout,
    QueryTypeError,
)
from omnigraph_core.exec.guard import Cancellation
from omnigraph_core.exec.result import QueryResult
from omnigraph_core.history.snapshots import ReadTarget
from omnigraph_core.plan.report import PlanReport
from tests.behaviour.stock import AMOUNTS, BOLT, amounts, part, put
from tests.support.ways import NOT_ON_S3, told

if TYPE_CHECKING:
    from omnigraph_core.engine.omnigraph import Omnigraph
    from tests.support.ways import Place

QUERIES = """
query values($sku: String) {
  match { $p: Part { sku: $sku } }
  return {
    $p.sku, $p.name, $p.stock, $p.size, $p.serial, $p.weight, $p.ratio, $p.is_new, $p.grade,
    $p.made, $p.seen, $p.tags, $p.visits, $p.note, $p.meaning
  }
}
query whole($sku: String) { match { $p: Part { sku: $sku } } return { $p } }
query held($code: String) {
  match { $b: Bin { code: $code }  $b $h:holds $p }
  return { $p.sku as sku, $h.count as n } order { $p.sku }
}
query counted() {
  match { $b: Bin  $b holds $p }
  return { $b.code as bin, count($p) as parts, sum($p.stock) as stock, avg($p.weight) as weight }
}
query typed($day: Date, $moment: DateTime, $tags: [String], $big: U64, $ratio: F64, $flag: Bool) {
  match { $p: Part  $p.made = $day  $p.seen = $moment  $p.serial = $big  $p.is_new = $flag
          $p.weight < $ratio }
  return { $p.sku as sku }
}
query nothing() { match { $p: Part { sku: "none" } } return { $p.sku, $p.tags, $p } }
"""


def read(place: Place, name: str, params: dict[str, Any] | None = None) -> QueryResult:
    found = place.both(lambda graph: graph.query("main", QUERIES, name, params))
    assert isinstance(found, QueryResult)
    return found


def test_every_type_of_value(shared: Place) -> None:
    found = read(shared, "values", {"sku": "bolt"})
    (row,) = found.to_pylist()
    expected = {f"p.{name}": value for name, value in BOLT.items() if name != "drawing"}
    meaning = row.pop("p.meaning")
    assert row == expected
    assert len(meaning) == 4
    schema = found.to_arrow().schema
    kinds = {name: schema.field(f"p.{name}").type for name in ("stock", "size", "serial", "ratio")}
    assert kinds == {
        "stock": pa.int64(), "size": pa.int32(), "serial": pa.uint64(), "ratio": pa.float32(),
    }  # fmt: skip
    kinds_told = {column["name"]: column["kind"] for column in found.describe()}
    assert kinds_told["p.serial"] == "bigint"
    assert (kinds_told["p.tags"], kinds_told["p.meaning"]) == ("list", "vector")


def test_nulls_are_nulls_and_empty_lists_are_empty(shared: Place) -> None:
    (row,) = read(shared, "values", {"sku": "bare"}).to_pylist()
    assert row.pop("p.sku") == "bare"
    assert set(row.values()) == {None}
    (row,) = read(shared, "values", {"sku": "nut"}).to_pylist()
    assert (row["p.tags"], row["p.visits"], row["p.stock"]) == ([], None, 0)


def test_a_whole_node(shared: Place) -> None:
    (row,) = read(shared, "whole", {"sku": "bolt"}).to_pylist()
    node = row["p"]
    assert {name: node[name] for name in ("id", "sku", "serial", "visits")} == {
        "id": "bolt", "sku": "bolt", "serial": BOLT["serial"], "visits": BOLT["visits"],
    }  # fmt: skip


@NOT_ON_S3
def test_every_form_of_rows(shared: Place) -> None:
    for name, params in (("values", {"sku": "bolt"}), ("counted", None), ("nothing", None)):
        here, at_hand = (
            graph.query("main", QUERIES, name, params) for graph in (shared.graph, shared.at_hand)
        )
        for is_js_safe in (False, True):
            text = here.to_json(is_js_safe=is_js_safe)
            assert text == at_hand.to_json(is_js_safe=is_js_safe)
            assert json.loads(text) == here.to_pylist(is_js_safe=is_js_safe)
            lines = b"".join(here.iter_ndjson(is_js_safe=is_js_safe))
            assert lines == b"".join(at_hand.iter_ndjson(is_js_safe=is_js_safe))
        assert here.to_ipc() == at_hand.to_ipc()
        assert list(here.to_batches(1)) == list(at_hand.to_batches(1))
        assert here.to_pandas().equals(at_hand.to_pandas())
        assert here.to_polars().equals(at_hand.to_polars())
        assert (len(here), repr(here)) == (len(at_hand), repr(at_hand))
    assert len(here) == 0


def test_edges_and_sums(shared: Place) -> None:
    held = read(shared, "held", {"code": "b1"}).to_pylist()
    assert held == [{"sku": "bolt", "n": 40}, {"sku": "nut", "n": None}]
    (row,) = read(shared, "counted").to_pylist()
    assert row == {"bin": "b1", "parts": 2, "stock": BOLT["stock"], "weight": 0.1}


@NOT_ON_S3
def test_parameters_of_python_and_of_json_are_the_same(shared: Place) -> None:
    moment = dt.datetime(2026, 1, 31, 8, 0, 0, 250_000, tzinfo=dt.UTC)
    here = moment.astimezone(dt.timezone(dt.timedelta(hours=2)))
    others = {"tags": ("a", "b"), "big": BOLT["serial"], "ratio": 1, "flag": True}
    for day, seen in (
        (dt.date(2026, 1, 31), moment),
        (dt.date(2026, 1, 31), here),
        ("2026-01-31", "2026-01-31T08:00:00.25Z"),
    ):
        params = {"day": day, "moment": seen, **others}
        assert read(shared, "typed", params).to_pylist() == [{"sku": "bolt"}]


@NOT_ON_S3
def test_wrong_parameters_are_all_told(shared: Place) -> None:
    wrong = {"sku": 1, "other": 2}
    problem = shared.raised(lambda graph: graph.query("main", QUERIES, "values", wrong))
    assert isinstance(problem, ParameterError)
    assert len(problem.problems) == 2
    for value in (object(), {1, 2}, float("nan"), b"x"):
        params = {"sku": value}
        with pytest.raises(
            ParameterError
        ):  # what no server can be sent is told here, in other words
            shared.graph.query("main", QUERIES, "values", params)


def test_a_result_knows_where_it_was_read(shared: Place) -> None:
    found = read(shared, "counted")
    assert found.query_name == "counted"
    assert found.snapshot.branch == "main"
    assert told(found.snapshot) == told(shared.at_hand.snapshot())
    assert found.snapshot == shared.graph.snapshot()
    assert hash(found.snapshot) == hash(shared.graph.snapshot())


@NOT_ON_S3
def test_wrong_queries(shared: Place) -> None:
    problem = shared.raised(lambda graph: graph.query("main", QUERIES))
    assert isinstance(problem, QueryNotFound)
    shared.raised(lambda graph: graph.query("main", QUERIES, "none"))
    shared.raised(lambda graph: graph.query("main", "query q() { match { $p: Part return }"))
    problem = shared.raised(
        lambda graph: graph.query("main", "query q() { match { $p: Prt } return { $p.a, $q.b } }")
    )
    assert isinstance(problem, QueryTypeError)
    assert len(problem.diagnostics) >= 1
    shared.raised(lambda graph: graph.query("main", 'query q() { delete Part where sku = "x" }'))


@NOT_ON_S3
def test_limits(shared: Place) -> None:
    problem = shared.raised(lambda graph: graph.query("main", QUERIES, "counted", memory=1))
    assert isinstance(problem, BudgetExceeded)
    assert problem.budget == 1
    problem = shared.raised(lambda graph: graph.query("main", QUERIES, "counted", timeout=1e-9))
    assert isinstance(problem, QueryTimeout)
    assert problem.seconds == 1e-9
    for given in ({"timeout": -1.0}, {"memory": 0}, {"memory": -5}, {"max_age": -1.0}):
        problem = shared.raised(
            lambda graph, given=given: graph.query("main", QUERIES, "counted", **given)  # type: ignore[misc]
        )
        assert isinstance(problem, ConfigError)
    stopped = Cancellation()
    stopped.cancel()
    problem = shared.raised(
        lambda graph: graph.query("main", QUERIES, "counted", cancellation=stopped)
    )
    assert isinstance(problem, QueryCancelled)


def test_plans(shared: Place) -> None:
    for target in ("main", ReadTarget(branch="main")):
        plan = shared.both(lambda graph, target=target: graph.explain(target, QUERIES, "held"))  # type: ignore[misc]
        assert isinstance(plan, PlanReport)
        assert plan.query == "held"
        assert plan.total is None
    done = shared.graph.profile("main", QUERIES, "held", {"code": "b1"})
    other = shared.at_hand.profile("main", QUERIES, "held", {"code": "b1"})
    assert [(step.kind, step.text, step.notes) for step in done.steps] == [
        (step.kind, step.text, step.notes) for step in other.steps
    ]
    assert done.total is not None
    assert done.total.rows_out == 2
    works = [step.work for step in done.steps]
    assert [work and (work.rows_in, work.rows_out, work.portions) for work in works] == [
        step.work and (step.work.rows_in, step.work.rows_out, step.work.portions)
        for step in other.steps
    ]
    shared.raised(lambda graph: graph.explain("main", QUERIES, "none"))
    shared.raised(lambda graph: graph.profile("main", QUERIES, "held", {"code": 1}))


def test_time_travel(place: Place) -> None:
    """One state by its version, commit, moment and tag, after the branch has moved on."""
    graph = place.graph
    before = graph.snapshot()
    moment = dt.datetime.now(dt.UTC)
    graph.tag_create("v1")
    commit = put(graph, part("nut", stock=7), part("late"))
    assert amounts(graph) == {"bare": None, "bolt": BOLT["stock"], "late": None, "nut": 7}
    old = {"bare": None, "bolt": BOLT["stock"], "nut": 0}
    targets = (
        ReadTarget(snapshot_id=before.commit.graph_commit_id),
        ReadTarget(tag="v1"),
        before,
        graph.snapshot_at_time(moment),
    )
    for target in targets:
        rows = graph.query(target, AMOUNTS).to_pylist()
        assert {row["sku"]: row["stock"] for row in rows} == old
    for version, expected in ((2, old), (3, amounts(graph)), (1, {})):
        found = place.both(
            lambda graph, version=version: graph.run_query_at(version, AMOUNTS)  # type: ignore[misc]
        )
        assert {row["sku"]: row["stock"] for row in found.to_pylist()} == expected
        assert found.snapshot.manifest_version == version
    now = graph.query(ReadTarget(snapshot_id=commit), AMOUNTS)
    assert now.snapshot.commit.graph_commit_id == commit
    place.raised(lambda graph: graph.run_query_at(9, AMOUNTS))
    place.raised(lambda graph: graph.run_query_at(1, AMOUNTS, branch="none"))
    place.raised(lambda graph: graph.query(ReadTarget(tag="v2"), AMOUNTS))
    place.raised(
        lambda graph: graph.query(ReadTarget(snapshot_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"), AMOUNTS)
    )


@NOT_ON_S3
def test_a_snapshot_stays_as_it_is(graph: Omnigraph) -> None:
    snapshot = graph.snapshot()
    put(graph, part("late"))
    assert len(graph.query(snapshot, AMOUNTS)) == 3
    assert len(graph.query("main", AMOUNTS)) == 4
    assert graph.query(snapshot, AMOUNTS).snapshot == snapshot


def test_searches(place: Place) -> None:
    """By words, and by meaning: the text of a search is embedded where the graph is."""
    put(place.graph, part("screw", name="a zinc screw", note="a bolt of steel"))
    place.graph.embed_backfill()
    found = place.both(
        lambda graph: graph.query(
            "main",
            "query near($text: String) { match { $p: Part } return { $p.sku as sku } "
            "order { nearest($p.meaning, $text) } limit 2 }",
            params={"text": "a bolt of steel"},
        )
    )
    assert {row["sku"] for row in found.to_pylist()} == {"bolt", "screw"}
    found = place.both(
        lambda graph: graph.query(
            "main",
            'query q() { match { $p: Part  search($p.name, "zinc") } return { $p.sku as sku } }',
        )
    )
    assert found.to_pylist() == [{"sku": "screw"}]


@NOT_ON_S3
@pytest.mark.parametrize("target", ["", "a/../b", "x" * 300, "Ü ß", "__run__x", "tag:v1"])
def test_odd_names_of_branches(shared: Place, target: str) -> None:
    shared.raised(lambda graph: graph.query(target, AMOUNTS))
    shared.raised(lambda graph: graph.snapshot(target))
    problem = shared.raised(lambda graph: graph.branch_get(target))
    assert not isinstance(problem, ConfigError) or problem.message
