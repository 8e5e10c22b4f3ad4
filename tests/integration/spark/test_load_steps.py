"""Steps that run apart make up one load: one commit, the same rows and reports."""

from __future__ import annotations

import json
import random
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine import run_calls
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.errors import ConfigError, ConflictError, DataError
from omnigraph_core.settings import PUBLISH_LEASE
from omnigraph_core.spark.ingest import kept, load
from omnigraph_core.spark.ingest.read_part import read_part
from omnigraph_core.spark.runner import SparkRunner
from tests.support import spark_loads
from tests.support.load_worlds import SCHEMA, content, outcome, records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from omnigraph_core.engine.loading import LoadSteps


def steps_of(path: Path, run: str = "r1") -> LoadSteps:
    """The steps as another process finds them."""
    return Omnigraph.open(str(path)).load_steps(run, engine="local")


def by_steps(path: Path, data: Path, run: str, **options: object) -> object:
    """Every step in a graph that was opened for it."""
    graph = Omnigraph.open(str(path))
    graph.plan_load(run, str(data), engine="local", **options)  # type: ignore[arg-type]
    keys = steps_of(path, run).read()
    for key in keys:
        steps_of(path, run).inspect(key)
        steps_of(path, run).stage(key)
    return steps_of(path, run).commit()


def part(number: int, **data: object) -> str:
    return json.dumps({"type": "Part", "data": {"sku": f"p{number}", **data}})


def versions(path: Path) -> int:
    return Omnigraph.open(str(path)).snapshot("main").manifest_version


@pytest.mark.parametrize("seed", [3, 5])
def test_steps_make_up_a_load(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    whole = Omnigraph.init(str(tmp_path / "whole"), SCHEMA)
    Omnigraph.init(str(tmp_path / "steps"), SCHEMA).close()
    for number in range(4):
        data = tmp_path / f"{number}.jsonl"
        data.write_text("\n".join(records(rng, 40, rng.choice((0.0, 0.1)))))
        options = {"mode": rng.choice(("append", "merge", "overwrite")), "skip_bad": number > 1}
        expected = outcome(lambda data=data, options=options: whole.load(str(data), **options))
        before = versions(tmp_path / "steps")
        found = outcome(
            lambda data=data, number=number, options=options: by_steps(
                tmp_path / "steps", data, f"run{number}", **options
            )
        )
        assert found == expected
        assert versions(tmp_path / "steps") - before == (expected[0] == "loaded")
    assert content(Omnigraph.open(str(tmp_path / "steps"))) == content(whole)


def test_steps_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = Omnigraph.init(str(path), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text("\n".join(map(part, range(50))))
    steps = graph.plan_load("on-spark", str(data))
    assert steps.read() == {"node:Part": 50}
    assert steps.inspect("node:Part") == 0
    assert steps.stage("node:Part") == 50
    assert steps.commit().nodes_loaded == 50


def test_steps_use_what_other_processes_have_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph"
    graph = Omnigraph.init(str(path), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text("\n".join(map(part, range(5))))
    graph.plan_load("r1", str(data), engine="local")
    steps_of(path).read()
    steps_of(path).inspect("node:Part")
    steps_of(path).stage("node:Part")

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("this was done before")

    for name in ("read_part", "stage_table"):
        monkeypatch.setattr(load, name, refuse)
    monkeypatch.setattr("omnigraph_core.spark.ingest.comparing.Inspection", refuse)
    assert steps_of(path).commit().nodes_loaded == 5
    again = steps_of(path).commit()
    assert (again.is_repeat, again.nodes_loaded) == (True, 5)
    left = [found.name for found in (path / "_scratch").glob("**/*") if found.is_file()]
    assert len(left) == 1
    assert left[0].startswith("plan-")


def test_what_moved_since_is_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = Omnigraph.init(str(path), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text(f"{part(1, code='c1')}\n{part(2, code='c2')}")
    graph.plan_load("r1", str(data), engine="local")
    for key in steps_of(path).read():
        steps_of(path).inspect(key)
        steps_of(path).stage(key)
    graph.load(part(9, code="c1").encode())
    before = content(graph)
    with pytest.raises(DataError, match="c1"):
        steps_of(path).commit()
    assert content(Omnigraph.open(str(path))) == before
    graph.load(part(9, code="c9").encode())
    assert steps_of(path).commit().nodes_loaded == 2
    assert [code for code in ("c1", "c2", "c9") if code in str(content(graph))] == [
        "c1",
        "c2",
        "c9",
    ]


def test_a_load_whose_table_moved_meanwhile_reads_nothing_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its input is gone: only keys meet again, and rows are staged on the newest version."""
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text(f"{part(1, code='c1')}\n{part(2, code='c2')}")
    steps = graph.plan_load("r1", str(data))
    for key in steps.read():
        steps.inspect(key)
        steps.stage(key)
    data.unlink()
    graph.load(part(9, code="c9").encode())
    before = graph.snapshot().manifest_version
    done = steps.commit()
    assert done.nodes_loaded == 2
    assert [job["name"] for job in done.spark["jobs"]] == ["compare keys"]
    assert graph.snapshot().manifest_version == before + 1
    assert graph.snapshot().table("node:Part").row_count == 3
    assert graph.verify(is_deep=True).is_sound


class Overtaken:
    """A runner beside which another load is published when keys have met for the first time."""

    def __init__(self, session: SparkSession, overtake: Callable[[], object]) -> None:
        self._inner = SparkRunner(session)
        self._overtake: Callable[[], object] | None = overtake
        self.jobs: list[str] = []

    @property
    def parallelism(self) -> int:
        return self._inner.parallelism

    def map(self, work: Any, tasks: Any, *, name: str, on_done: Any = None) -> list[Any]:
        self.jobs.append(name)
        return self._inner.map(work, tasks, name=name, on_done=on_done)

    def exchange(
        self, emit: Any, tasks: Any, meet: Any, partitions: int, *, name: str
    ) -> list[Any]:
        self.jobs.append(name)
        met = self._inner.exchange(emit, tasks, meet, partitions, name=name)
        overtake, self._overtake = self._overtake, None
        if overtake is not None:
            overtake()
        return met


def test_a_load_in_one_call_that_is_overtaken_reads_nothing_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text("\n".join(map(part, range(5))))

    def overtake() -> None:
        data.unlink()
        Omnigraph.open(graph.uri).load(part(9).encode())

    runner = Overtaken(spark, overtake)
    kind, result = spark_loads.load(runner, graph.uri, [str(data)], mode="append")
    assert (kind, result["nodes_loaded"]) == ("loaded", 5)
    assert runner.jobs == ["read and check records", "compare keys", "compare keys"]
    found = Omnigraph.open(graph.uri)
    assert found.snapshot().table("node:Part").row_count == 6
    assert [commit.operation for commit in found.list_commits()] == ["load", "load", "init"]
    assert found.verify(is_deep=True).is_sound


def test_a_changed_schema_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = Omnigraph.init(str(path), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text(part(1))
    graph.plan_load("r1", str(data), engine="local")
    steps_of(path).read()
    steps_of(path).stage("node:Part")
    graph.schema_apply(SCHEMA.replace("node Part {", "node Part { remark: String?", 1))
    assert steps_of(path).commit().nodes_loaded == 1
    assert Omnigraph.open(str(path)).verify(is_deep=True).is_sound


def test_what_was_read_too_long_ago_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph"
    graph = Omnigraph.init(str(path), SCHEMA)
    graph.plan_load("r1", part(1).encode(), engine="local")
    steps_of(path).read()
    steps_of(path).stage("node:Part")
    reads = []
    monkeypatch.setattr(load, "read_part", lambda *given: reads.append(1) or read_part(*given))
    assert steps_of(path).read() == {"node:Part": 1}
    assert not reads
    later = time.time() + PUBLISH_LEASE.read()
    monkeypatch.setattr(kept, "time", SimpleNamespace(time=lambda: later))
    assert steps_of(path).commit().nodes_loaded == 1
    assert len(reads) == 1


def test_runs_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    graph = Omnigraph.init(str(path), SCHEMA)
    data = tmp_path / "parts.jsonl"
    data.write_text(part(1))
    with pytest.raises(ConfigError, match="cannot name a run"):
        graph.load_steps("../escape", engine="local")
    with pytest.raises(ConfigError, match="there is no run `r1`"):
        graph.load_steps("r1", engine="local").read()
    graph.plan_load("r1", str(data), engine="local")
    graph.plan_load("r1", str(data), engine="local")
    with pytest.raises(ConfigError, match="does not load into `other`"):
        graph.load_steps("r1", branch="other", engine="local").read()
    with pytest.raises(ConflictError, match="loads something else"):
        graph.plan_load("r1", str(data), engine="local", mode="append")


def test_a_load_whose_plan_is_gone_is_not_ready(tmp_path: Path) -> None:
    """Cleanup removes by age: the plan is older than the audit, which may have taken hours."""
    data = tmp_path / "data.jsonl"
    data.write_text(part(1))
    graph = Omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    run = run_calls.begin_load(graph, "main", operation_hash="h").run_id
    steps = graph.plan_load(run, str(data), engine="local")
    assert not run_calls.is_audited(graph, run)
    steps.audit()
    assert run_calls.is_audited(graph, run)
    (plan,) = (tmp_path / "graph" / "_scratch" / run / "steps").glob("plan-*")
    plan.unlink()
    assert not run_calls.is_audited(graph, run)
