"""Assets and maintenance on Spark: jobs that say what they are for, or a clear failure."""

from __future__ import annotations

import json
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.constants import Constant
from omnigraph_core.engine import linking
from omnigraph_core.spark import connect
from tests.support.later import Later
from tests.support.platform import PEOPLE, make_platform, told
from tests.support.processes import spawn
from tests.support.spark_ui import event_log, new_descriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import dagster as dg
    from pyspark.sql import SparkSession

    from tests.support.platform import Platform
else:
    dg = Later("dagster")

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]

DERIVED = {
    "embeddings": "people/embeddings/Person.vector",
    "indexes": "people/indexes/Person",
    "topology": "people/topology",
    "compaction": "people/compaction",
    "cleanup": "people/cleanup",
}
LOADED = {"nodes": "people/nodes/Person", "edges": "people/edges/Knows"}
OPERATIONS = {
    "nodes": ("load", "node:Person"),
    "edges": ("load", "edge:Knows"),
    "embeddings": ("embed", "node:Person"),
    "indexes": ("index", "node:Person"),
    "topology": ("topology", "edge:Knows"),
    "compaction": ("optimize", "node:Person"),
    "cleanup": ("cleanup", "node:Person"),
}
"""What jobs are called after, and a type that some of them name."""
MORE = ({"type": "Person", "data": {"name": "cid"}}, {"edge": "Knows", "from": "cid", "to": "ann"})


def with_people(platform: Platform, **settings: Any) -> Platform:
    """People are loaded by this process, what is derived from them is made with the settings."""
    platform.drop("people.jsonl", *PEOPLE)
    assert platform.load().success
    platform.config = replace(platform.config, **settings)
    platform.reload()
    return platform


def run(platform: Platform, what: str, branch: str = "main") -> dg.ExecuteInProcessResult:
    job = {"topology": "indexes", **dict.fromkeys(LOADED, "load")}.get(what, what)
    more: dict[str, Any] = {}
    if what in (*LOADED, "indexes", "topology"):
        key = (LOADED | DERIVED)[what]
        more = {"asset_selection": [dg.AssetKey(key.split("/"))]}
    return platform.run(job, branch, **more)


@pytest.fixture
def on_spark(platform: Platform, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Platform:
    assert spark.version
    monkeypatch.setattr(linking, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 1, "any"))
    return with_people(platform, engine="spark")


@pytest.fixture
def descriptions(spark: SparkSession) -> Callable[[], list[str]]:
    return new_descriptions(spark)


def require_jobs_of(
    platform: Platform, what: str, branch: str, descriptions: Callable[[], list[str]]
) -> str:
    """Materialise an asset on Spark; jobs and metadata say what for. The id of the run."""
    operation, type_name = OPERATIONS[what]
    version = platform.graph.snapshot(branch).manifest_version
    descriptions()
    result = run(platform, what, branch)
    assert result.success, what
    made = told(result)[(LOADED | DERIVED)[what]]
    found = [text for text in descriptions() if text.startswith(f"{operation}: ")]
    if what in DERIVED:
        assert made["spark_jobs"], "the metadata has the jobs"
        assert made["seconds"] > 0
        jobs = {job["name"] for job in made["spark_jobs"]}
        assert jobs <= {text.removeprefix(f"{operation}: ").partition(" (")[0] for text in found}
    for text in found:
        assert f"run {result.run_id}" in text
        assert f"branch {branch}" in text
    assert any(type_name in text for text in found)
    commits = platform.graph.snapshot(branch).manifest_version - version
    assert commits == (0 if what in ("topology", "cleanup") else 1)
    return result.run_id


def require_logged(what: str, run_id: str, logged: list[str]) -> None:
    """An event log has a job of an asset, with all that it is about."""
    operation, type_name = OPERATIONS[what]
    wanted = (f"run {run_id}", "branch review", type_name)
    told = [text for text in logged if text.startswith(f"{operation}: ")]
    assert any(all(fact in text for fact in wanted) for text in told), (what, told)


def test_the_jobs_of_every_asset_say_what_they_are_for(
    platform: Platform,
    spark: SparkSession,
    tmp_path: Path,
    descriptions: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the metadata of a run, in Spark's own store and in a log of its events."""
    monkeypatch.setattr(linking, "DERIVED_MIN_ROWS", Constant("derived_min_rows", 1, "any"))
    platform.config = replace(platform.config, engine="spark")
    platform.reload()
    platform.graph.branch_create("review")
    platform.instance.add_dynamic_partitions("people_branches", ["review"])
    platform.drop("people.jsonl", *PEOPLE, branch="review")
    runs = {}
    with event_log(spark, tmp_path / "events"):
        for what in OPERATIONS:
            if what == "compaction":  # else there is one file of each type
                platform.graph.load(lines(MORE), branch="review", mode="append", engine="local")
            runs[what] = require_jobs_of(platform, what, "review", descriptions)
    logged = described_jobs(tmp_path / "events")
    for what, run_id in runs.items():
        require_logged(what, run_id, logged)


def lines(records: Sequence[Mapping[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def test_steps_of_a_load_show_rows_bytes_and_jobs(platform: Platform, spark: SparkSession) -> None:
    platform.config = replace(platform.config, engine="spark")
    platform.reload()
    platform.drop("people.jsonl", *PEOPLE)
    result = platform.load()
    assert result.success
    outputs = {
        event.step_key: event.step_output_data.metadata
        for event in result.all_events
        if event.is_successful_output and event.step_key is not None
    }
    for type_name, kind, rows in (("Person", "node", 2), ("Knows", "edge", 1)):
        found = outputs[f"people_load.people_stage_{kind}[{type_name}]"]
        assert found["rows"].value == rows
        assert int(str(found["bytes"].value)) > 0
        jobs: Any = found["spark_jobs"].value
        for text in descriptions_of(spark, jobs):
            assert f"{kind}:{type_name}" in text
    read: Any = outputs["people_load.people_read"]["spark_jobs"].value
    assert [job["rows"] for job in read] == [3]
    assert {key: made["spark_jobs"] for key, made in told(result).items()} == dict.fromkeys(
        ("people/nodes/Person", "people/edges/Knows", "people/manifest"), read
    )


def descriptions_of(spark: SparkSession, jobs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What Spark calls the jobs of a report."""
    numbers = [number for job in jobs for number in job["job_ids"]]
    assert numbers
    context: Any = spark.sparkContext
    store = context._jsc.sc().statusStore()
    return [store.job(number).description().get() for number in numbers]


def test_merges_and_comparisons_run_on_spark(platform: Platform, spark: SparkSession) -> None:
    assert spark.version
    with_people(platform, engine="spark")
    platform.graph.branch_create("side")
    platform.instance.add_dynamic_partitions("people_branches", ["side"])
    for branch, age in (("main", 1), ("side", 2)):
        record = {"type": "Person", "data": {"name": "ann", "age": age}}
        platform.graph.load(lines([record]), branch=branch, engine="local", embed="off")
    checked = platform.run("checks", tags={"dagster/partition": "side"})
    (mergeable,) = (
        one for one in checked.get_asset_check_evaluations() if one.check_name == "mergeable"
    )
    assert not mergeable.passed
    found = {"mergeable": mergeable.metadata}
    for job, config in (
        ("diff_branches", {"source": "side"}),
        ("merge_branch", {"source": "side", "resolve": "theirs", "confirm": True}),
    ):
        result = platform.run(job, run_config={"ops": {f"people_{job}": {"config": config}}})
        assert result.success
        (output,) = (event for event in result.all_events if event.is_successful_output)
        found[job] = output.step_output_data.metadata
    for what, about in found.items():
        assert about["spark_jobs"].value, what


@pytest.mark.long("test_the_jobs_of_every_asset_say_what_they_are_for, on a branch")
@pytest.mark.parametrize("what", DERIVED)
def test_jobs_are_named_after_run_branch_and_type(
    on_spark: Platform, descriptions: Callable[[], list[str]], what: str
) -> None:
    require_jobs_of(on_spark, what, "main", descriptions)


@pytest.mark.long("test_the_jobs_of_every_asset_say_what_they_are_for: a session at hand")
def test_the_event_log_names_the_jobs_of_every_asset(tmp_path: Path) -> None:
    env = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
    with spawn(f"{__name__}:materialise_all", str(tmp_path), env=env) as worker:
        runs = worker.wait(300).result()
    found = described_jobs(tmp_path / "events")
    for what in OPERATIONS:
        require_logged(what, runs[what], found)


def materialise_all(directory: str) -> dict[str, str]:
    """In a process of its own: each asset once, by a Spark that keeps a log; the ids of the runs.

    The session is that of the process, and ends with it.
    """
    linking.DERIVED_MIN_ROWS = Constant("derived_min_rows", 1, "any")  # type: ignore[misc]
    events = Path(directory, "events")
    events.mkdir()
    settings = {
        "spark.master": "local[2,3]",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
    }
    found = {}
    with dg.DagsterInstance.ephemeral() as instance:
        platform = make_platform(Path(directory), instance, engine="spark", spark_config=settings)
        platform.graph.branch_create("review")
        instance.add_dynamic_partitions("people_branches", ["review"])
        platform.drop("people.jsonl", *PEOPLE, branch="review")
        for what in OPERATIONS:
            if what == "compaction":  # else there is one file of each type
                platform.drop("more.jsonl", *MORE, branch="review")
                assert platform.load("review").success
            result = run(platform, what, "review")
            assert result.success, what
            assert (LOADED | DERIVED)[what] in told(result), what
            found[what] = result.run_id
    session: Any = Later("pyspark.sql").SparkSession.active()
    session.stop()  # the log is whole then
    return found


def described_jobs(events: Path) -> list[str]:
    """The descriptions of all jobs that an event log has."""
    files = (path for path in events.rglob("events_*") if path.is_file())
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    jobs = [line for line in lines if line["Event"] == "SparkListenerJobStart"]
    return [job["Properties"].get("spark.job.description", "") for job in jobs]


def test_an_unreachable_spark_fails_every_materialisation(tmp_path: Path) -> None:
    env = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}
    with spawn(f"{__name__}:failures_without_spark", str(tmp_path), env=env) as worker:
        found = worker.wait(300).result()
    assert found["is_unchanged"]
    assert found["problems"].keys() == OPERATIONS.keys()
    for problem in found["problems"].values():
        assert problem.startswith("no Spark Connect server answers at sc://127.0.0.1:")


def failures_without_spark(directory: str) -> dict[str, Any]:
    """In a process without a session: what each asset fails with."""
    connect.START_SECONDS = 1.0  # type: ignore[misc]
    problems = {}
    with (
        socket.socket() as probe,
        tempfile.TemporaryDirectory(dir=directory) as root,
        dg.DagsterInstance.ephemeral() as instance,
    ):
        probe.bind(("127.0.0.1", 0))  # nobody listens there
        remote = f"sc://127.0.0.1:{probe.getsockname()[1]}"
        platform = make_platform(Path(root), instance)
        with_people(platform, engine="spark", spark_config={"spark.remote": remote})
        waiting = platform.drop("more.jsonl", *MORE)
        head = platform.head()
        for what in OPERATIONS:
            result = run(platform, what)
            assert not told(result)
            (failure,) = [
                event for event in result.all_events if event.event_type_value == "STEP_FAILURE"
            ]
            data = failure.step_failure_data.user_failure_data
            assert data is not None
            problems[what] = data.description
        return {"problems": problems, "is_unchanged": platform.head() == head and waiting.exists()}
