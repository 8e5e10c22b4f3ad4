"""Results of work on Spark carry its jobs, and Spark knows what each job is about."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from omnigraph_core.cli.app import app
from omnigraph_core.constants import Constant
from omnigraph_core.engine import linking
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.job_report import SparkResults
from tests.support.ageing import clean_up
from tests.support.spark_ui import new_descriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = """
node Part { sku: String @key  name: String? @index  topic: Vector(4)? @embed("name") }
node Bin { label: String @key  place: String? @index }
node Note { slug: String @key  text: String? @index }
node Shop { slug: String @key  text: String? @index }
edge Fits: Part -> Part
"""
COUNTS = ("rows", "bytes", "files", "spilled_bytes")


@pytest.fixture
def descriptions(spark: SparkSession) -> Callable[[], list[str]]:
    """The descriptions of the jobs since the last call, as Spark's own status store has them."""
    return new_descriptions(spark)


@pytest.fixture
def graph(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Omnigraph:
    assert spark.version
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    made = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    for half in (0, 1):
        made.load(records(half), mode="append", embed="off", engine="local")
    return made


def records(half: int) -> bytes:
    rows: list[Mapping[str, Any]] = []
    for number in range(half * 4, half * 4 + 4):
        rows.append({"type": "Part", "data": {"sku": f"p{number}", "name": f"part {number}"}})
        rows.append({"type": "Bin", "data": {"label": f"b{number}", "place": "hall"}})
        rows.append({"type": "Note", "data": {"slug": f"n{number}", "text": "dry"}})
        rows.append({"type": "Shop", "data": {"slug": f"s{number}", "text": "open"}})
        rows.append({"edge": "Fits", "from": f"p{number}", "to": f"p{number}"})
    return "\n".join(map(json.dumps, rows)).encode()


def changed(graph: Omnigraph, branch: str, name: str) -> None:
    text = f'query q() {{ update Part set {{ name: "{name}" }} where sku = "p1" }}'
    graph.mutate(text, branch=branch)


def check(report: Mapping[str, Any] | None, *names: str) -> None:
    assert report is not None
    assert [job["name"] for job in report["jobs"]] == list(names)
    assert report["ui"] is None, "the UI is off in the session of tests"
    for job in report["jobs"]:
        assert all(isinstance(job[count], int) for count in COUNTS)


def written(report: Mapping[str, Any] | None, name: str) -> dict[str, int]:
    assert report is not None
    (job,) = (job for job in report["jobs"] if job["name"] == name)
    return {count: job[count] for count in COUNTS}


def test_optimize(graph: Omnigraph, descriptions: Callable[[], list[str]]) -> None:
    head = graph.head_commit_id_for_branch("main")
    done = graph.optimize(engine="spark")
    check(done.spark, "compact", "index")
    assert written(done.spark, "compact")["rows"] == 40
    assert written(done.spark, "compact")["files"] == 5
    assert written(done.spark, "index")["bytes"] > 0
    assert descriptions() == [
        f"optimize: {name} (commit {head}, branch main, type {types})"
        for name, types in (
            ("compact", "edge:Fits, node:Bin, node:Note and 2 more"),
            ("index", "edge:Fits, node:Bin, node:Note and 2 more"),
        )
    ]
    again = graph.optimize(engine="spark")
    assert again.spark is None, "no job had to run"
    assert isinstance(again, tuple)
    assert again == tuple(again)


def test_only_types_with_work_are_named(
    graph: Omnigraph, descriptions: Callable[[], list[str]]
) -> None:
    graph.optimize(engine="local")
    changed(graph, "main", "nut")
    head = graph.head_commit_id_for_branch("main")
    check(graph.ensure_indices(engine="spark").spark, "index")
    assert descriptions() == [f"index: index (commit {head}, branch main, type node:Part)"]


def test_topology(
    graph: Omnigraph, descriptions: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 1, "any"))
    head = graph.head_commit_id_for_branch("main")
    done = graph.build_topology(engine="spark")
    names = ("resolve ends", "settle edges", "neighbours out", "neighbours in")
    check(done.spark, *names)
    assert descriptions() == [
        f"topology: {name} (commit {head}, branch main, type edge:Fits)" for name in names
    ]


def test_cleanup(graph: Omnigraph, descriptions: Callable[[], list[str]]) -> None:
    graph.branch_create("review")
    graph.optimize(engine="local")
    done = clean_up(graph, keep=1, engine="spark")
    check(done.spark, "list files", "mark files", "sweep files")
    told = descriptions()
    assert [text.partition(" (")[0] for text in told] == [
        "cleanup: list files",
        "cleanup: mark files",
        "cleanup: sweep files",
    ]
    assert all("(branch main, review, type " in text for text in told)
    assert all(" and 2 more)" in text for text in told[:2])
    few = graph.cleanup(keep=1, branches=["review"], is_preview=True, engine="spark")
    check(few.spark, "list files", "mark files")
    assert all("(branch review, type " in text for text in descriptions())


def test_backfill(graph: Omnigraph, descriptions: Callable[[], list[str]]) -> None:
    head = graph.head_commit_id_for_branch("main")
    done = graph.embed_backfill(engine="spark")
    names = ("find rows without vectors", "ask for vectors", "write vectors", "replace rows")
    told = descriptions()
    assert done.spark is not None
    assert set(names) <= {job["name"] for job in done.spark["jobs"]}
    assert written(done.spark, "write vectors")["rows"] == 8
    for name in names:
        assert f"embed: {name} (commit {head}, branch main, type node:Part)" in told
    assert json.loads(json.dumps(done.to_json()))["spark"] == done.spark


def test_merge_and_diff(graph: Omnigraph, descriptions: Callable[[], list[str]]) -> None:
    graph.branch_create("review")
    changed(graph, "review", "washer")
    graph.mutate('query q() { update Part set { name: "nut" } where sku = "p2" }')
    ours, theirs = map(graph.head_commit_id_for_branch, ("main", "review"))

    found = graph.diff_between("main", "review", engine="spark")
    assert found.spark is not None
    assert {job["name"] for job in found.spark["jobs"]} >= {"compare rows"}
    about = f"(commit {ours}..{theirs}, branch main..review, type node:Part)"
    told = descriptions()
    assert told
    assert all(text.startswith("diff: ") and text.endswith(about) for text in told)

    opened = graph.open_diff("main", "review", engine="spark").summary
    assert opened.spark is not None
    assert opened == graph.open_diff("main", "review", engine="local").summary
    one = graph.commit_changes(theirs, engine="spark")
    assert one.spark is not None
    assert f"{one.from_commit_id}..{theirs}, branch review, type" in descriptions()[-1]
    assert list(graph.iter_diff("main", "review", engine="spark")) == list(found.changes)
    assert all(text.endswith(about) for text in descriptions())

    merged = graph.branch_merge("review", engine="spark")
    told = descriptions()
    about = f"(commit {theirs}, branch main, type node:Part)"
    assert told
    assert all(text.startswith("merge: ") and text.endswith(about) for text in told)
    assert merged.spark is not None
    assert len(merged.spark["jobs"]) == len(told)
    assert written(merged.spark, "write node:Part")["rows"] == 1
    assert merged.to_json()["spark"] == merged.spark


def test_a_query(graph: Omnigraph, descriptions: Callable[[], list[str]]) -> None:
    head = graph.head_commit_id_for_branch("main")
    text = "query parts() { match { $p: Part  $p fits $q } return { $p.sku as sku } }"
    found = graph.query("main", text, engine="spark")
    assert found.spark is not None
    assert len(found) == 8
    about = f"(commit {head}, branch main, type node:Part, edge:Fits)"
    assert {*descriptions()} == {f"query parts {about}"}


def test_a_load_of_several_types(graph: Omnigraph, descriptions: Callable[[], list[str]]) -> None:
    head = graph.head_commit_id_for_branch("main")
    done = graph.load(records(2), mode="append", embed="off", engine="spark")
    check(done.spark, "read and check records", "compare keys")
    assert descriptions() == [
        f"load: read and check records (commit {head}, branch main)",
        f"load: compare keys (commit {head}, branch main, "
        "type node:Part, node:Bin, node:Note and 2 more)",
    ]


def test_one_process_has_no_jobs(graph: Omnigraph) -> None:
    graph.branch_create("review")
    changed(graph, "review", "washer")
    results = (
        graph.ensure_indices(engine="local"),
        graph.optimize(engine="local"),
        graph.build_topology(engine="local"),
        graph.cleanup(keep=9, is_preview=True, engine="local"),
        graph.diff_between("main", "review", engine="local"),
        graph.branch_merge("review", engine="local"),
    )
    assert [result.spark for result in results] == [None] * len(results)
    assert "spark" not in graph.diff_between("main", "review", engine="local").to_json()


def test_the_command_line_shows_jobs(graph: Omnigraph) -> None:
    graph.branch_create("review")
    changed(graph, "review", "washer")
    runner = CliRunner()
    for command in (
        ("branch", "diff", "main..review", graph.uri),
        ("branch", "diff", "main..review", graph.uri, "--stat"),
        ("cleanup", graph.uri, "--keep", "9"),
        ("optimize", graph.uri),
    ):
        arguments = [*command, "--engine", "spark"]
        if command[0] != "optimize":  # a second one has nothing to do
            shown = runner.invoke(app, arguments)
            assert shown.exit_code == 0, shown.output
            assert "spark: " in shown.stdout
            assert "bytes spilled" in shown.stdout
        told = runner.invoke(app, [*arguments, "--json"])
        assert told.exit_code == 0, told.output
        assert json.loads(told.stdout)["spark"]["jobs"]


def test_results_in_a_tuple_keep_their_jobs() -> None:
    made = SparkResults([1, 2], spark={"ui": None, "jobs": []})
    assert made == (1, 2)
    assert pickle.loads(pickle.dumps(made)).spark == made.spark
