"""Merges and diffs by executors: the outcome, conflicts and rows of one process, one commit."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from omnigraph_core.engine.comparing import workers_for
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, JobFailed, MergeConflicts
from omnigraph_core.spark.merge.workers import ByNumber, executors
from omnigraph_core.spark.runner import InProcessRunner
from tests.integration.spark.conftest import ON_CLUSTERS, ON_THIS_MACHINE
from tests.support import spark_merges
from tests.support.damage import damages
from tests.support.merge_worlds import graph_of
from tests.support.spark import DoingTwice
from tests.support.spark_cluster import kill_an_executor
from tests.support.upkeep_worlds import twin
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Mortal
    from tests.support.spark import Driver

SCHEMA = """
node Part {
    sku: String @key
    name: String? @index
    size: I32?
    weight: F64?
}
edge Fits: Part -> Part { grade: I32? }
"""
PARTS = 400
PORTION = 64


def parts(numbers: Sequence[int], **columns: Any) -> pa.Table:
    rows = {"sku": [f"p{number:04}" for number in numbers], "size": [n % 7 for n in numbers]}
    return pa.table(rows | {name: [value] * len(numbers) for name, value in columns.items()})


def change(og: Omnigraph, branch: str, query: str) -> None:
    og.mutate(f"query q() {{ {query} }}", branch=branch)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both branches have inserted, updated and deleted nodes and edges; one is compacted."""
    root = tmp_path_factory.mktemp("merges") / "graph"
    og = Omnigraph.init(str(root), SCHEMA)
    for start in range(0, PARTS, 100):
        og.load(parts(range(start, start + 100)), type="Part", mode="append")
    numbers = range(PARTS - 1)
    ends = {
        "id": [f"e{number:04}" for number in numbers],
        "src": [f"p{number:04}" for number in numbers],
        "dst": [f"p{number + 1:04}" for number in numbers],
    }
    og.load(pa.table(ends), type="Fits", mode="append")
    og.branch_create("review")
    og.load(parts(range(50, 150), name="main"), type="Part", mode="merge")
    og.load(parts(range(900, 950)), type="Part", mode="append")
    change(og, "main", 'delete Fits where id in ["e0001", "e0002", "e0003"]')
    og.load(parts(range(150, 390), weight=1.5), type="Part", mode="merge", branch="review")
    og.load(parts(range(800, 850)), type="Part", mode="append", branch="review")
    change(og, "review", 'delete Part where sku in ["p0020", "p0021"]')
    change(og, "review", 'update Fits set { grade: 3 } where id in ["e0200", "e0201"]')
    og.optimize()
    return root


@pytest.fixture
def og(original: Path, tmp_path: Path) -> Omnigraph:
    return twin(original, tmp_path / "graph")


def clash(og: Omnigraph) -> None:
    """Rows that both branches have changed, each in its way."""
    og.load(parts([60, 61, 62], name="theirs"), type="Part", mode="merge", branch="review")
    change(og, "review", 'update Part set { weight: 9.0 } where sku = "p0063"')
    change(og, "main", 'delete Part where sku = "p0380"')


@ON_THIS_MACHINE
def test_merge_and_diff_wherever_spark_runs(driver: Driver, og: Omnigraph) -> None:
    og.branch_create("twin")
    expected = spark_merges.outcome(lambda: og.branch_merge("review", engine="local"))
    found = driver.call(spark_merges.merge_there, og.uri, "review", "twin", PORTION, {})
    assert found == json.loads(json.dumps(expected))
    assert expected[0] == "merged"
    assert graph_of(og, "twin") == graph_of(og, "main")
    difference = og.diff_between("review", "twin", engine="local")
    assert difference.stats.total == 153
    told = driver.call(spark_merges.diff_there, og.uri, "review", "twin", PORTION)
    assert told.pop("spark")["jobs"]
    assert told == json.loads(json.dumps(difference.to_json(has_values=True)))
    assert damages(og) == []


@pytest.mark.long("test_loads kills one under a load; merges run the same tasks")
@ON_CLUSTERS
def test_an_executor_that_is_killed_under_a_merge_costs_time_alone(
    mortal: Mortal, og: Omnigraph, tmp_path: Path
) -> None:
    og.branch_create("twin")
    head = og.head_commit_id_for_branch("twin")
    mortal.driver.start(spark_merges.merge_there, og.uri, "review", "twin", 8, {})
    scratch = tmp_path / "graph" / "_scratch"
    wait_until(lambda: list(scratch.glob("*/*")), "the first task", seconds=300, interval=0.01)
    kill_an_executor(mortal.cluster)
    assert og.head_commit_id_for_branch("twin") == head, "it was in the midst of it"
    found = mortal.driver.result()
    expected = spark_merges.outcome(lambda: og.branch_merge("review", engine="local"))
    assert found == json.loads(json.dumps(expected))
    assert og.list_commits("twin")[0].parent_commit_id == head, "one commit"
    assert graph_of(og, "twin") == graph_of(og, "main")
    assert damages(og) == []


def test_tasks_of_a_merge_may_be_done_twice(og: Omnigraph) -> None:
    og.branch_create("twin")
    expected = spark_merges.outcome(lambda: og.branch_merge("review", engine="local"))
    found = spark_merges.merge_there(DoingTwice(), og.uri, "review", "twin", PORTION, {})
    assert found == expected
    assert graph_of(og, "twin") == graph_of(og, "main")
    assert damages(og) == []


def test_the_calls_of_a_graph(spark: SparkSession, og: Omnigraph) -> None:
    clash(og)
    reports = []
    for engine in ("local", "spark"):
        with pytest.raises(MergeConflicts) as caught:
            og.branch_merge("review", engine=engine)
        reports.append(list(caught.value.conflicts))
        assert og.diff_between("main", "review", engine=engine).stats.total > 400
    assert reports[0] == reports[1]
    assert len(reports[0]) == 5
    og.branch_create("twin")
    merged = [
        og.branch_merge("review", into=into, strategy="property", resolve="theirs", engine=engine)
        for into, engine in (("main", "local"), ("twin", "spark"))
    ]
    assert merged[0].tables == merged[1].tables
    assert merged[0].resolved == merged[1].resolved == 4
    assert graph_of(og, "twin") == graph_of(og, "main")
    listed = [list(og.iter_diff("review", "main", engine=name)) for name in ("spark", "local")]
    assert listed[0] == listed[1]
    head = og.head_commit_id_for_branch("twin")
    changes = [og.commit_changes(head, engine=name) for name in ("spark", "local")]
    assert changes[0] == changes[1]
    assert og.open_diff("review", "main", engine="spark").summary.stats == merged_stats(og)


def merged_stats(og: Omnigraph) -> object:
    return og.diff_between("review", "main", engine="local", limit=0).stats


def test_a_schema_that_changed_meanwhile(og: Omnigraph) -> None:
    """Columns that were stored anew, renamed or filled are compared where rows stayed."""
    wider = SCHEMA.replace("size: I32?", "size: I64?").replace(
        "weight: F64?", "weight: F64 @default(2.0)"
    )
    og.schema_apply(wider.replace("name: String?", 'title: String? @rename_from("name")'))
    og.branch_create("twin")
    here = spark_merges.outcome(lambda: og.branch_merge("review", engine="local"))
    there = spark_merges.merge_there(InProcessRunner(), og.uri, "review", "twin", PORTION, {})
    assert there == here
    assert graph_of(og, "twin") == graph_of(og, "main")
    found = spark_merges.diff_on(og, InProcessRunner(), "review", "twin", portion_rows=PORTION)
    assert found == og.diff_between("review", "twin", engine="local")


class Recording(InProcessRunner):
    """Remembers its jobs, and fails at the tasks of one."""

    def __init__(self, failing: str = "") -> None:
        self.jobs: list[tuple[str, int]] = []
        self._failing = failing

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        self.jobs.append((name, len(tasks)))
        done = super().map(work, tasks, name=name, on_done=on_done)
        if name == self._failing:
            raise JobFailed("broken", job=name)
        return done


def files(root: Path) -> set[str]:
    """All but those of the log, which is written in its own time."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith("_graph_commits.lance")}


def test_nothing_is_left_of_a_merge_that_is_refused_or_fails(og: Omnigraph, tmp_path: Path) -> None:
    root, head, before = tmp_path / "graph", og.snapshot().commit, graph_of(og)
    failing = Recording("replace in node:Part")
    with pytest.raises(JobFailed):
        spark_merges.merge_on(og, failing, "review", portion_rows=PORTION)
    assert og.snapshot().commit == head
    assert graph_of(og) == before
    assert not any("_scratch" in name for name in files(root))
    assert [name for name, _ in failing.jobs] == [
        *("read ids of changed rows", "decide about rows", "decide about rows") * 2,
        "write edge:Fits",
        "replace in edge:Fits",
        "write node:Part",
        "replace in node:Part",
    ]
    assert all(count > 2 for name, count in failing.jobs[3:6])
    clash(og)
    known = files(root)
    with pytest.raises(MergeConflicts):
        spark_merges.merge_on(og, InProcessRunner(), "review", portion_rows=PORTION)
    assert files(root) == known


def test_auto_takes_others_for_tables_of_which_many_rows_changed(
    og: Omnigraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = og._context.store
    with workers_for("auto", og._context) as workers:
        assert workers is None
    monkeypatch.setenv("OMNIGRAPH_SPARK_MASTER", "spark://nowhere.invalid:7077")
    with workers_for("auto", og._context) as workers:
        assert isinstance(workers, ByNumber)
        assert workers.many == 10_000_000
    assert og.branch_merge("review", dry_run=True).outcome == "merged"  # and nothing is started
    with workers_for("local", og._context) as workers:
        assert workers is None
    with pytest.raises(ConfigError, match="`engine` is 'flink'"):
        og.branch_merge("review", engine="flink")
    runner = Recording()
    with executors(runner, store, portion_rows=PORTION) as others:
        monkeypatch.setattr(
            "omnigraph_core.engine.merging.workers_for",
            lambda *_: nullcontext(ByNumber(lambda: others, 300)),
        )
        og.branch_merge("review")
    # Of edges ten have changed.
    assert [name for name, _ in runner.jobs] == [
        "read ids of changed rows",
        *("decide about rows",) * 2,
        "write node:Part",
        "replace in node:Part",
    ]
