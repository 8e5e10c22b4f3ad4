"""`make up` as a user runs it: everything starts, the example comes through, nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.live_platform import PATIENCE, free_ports, get, run_local, until
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.integration.platform.live.conftest import Evening
    from tests.support.live_platform import LivePlatform

LOCATION = {"repositoryLocationName": "omnigraph", "repositoryName": "__repository__"}
EVENING = ("node[Note]", "edge[Mentions]", "edge[WrittenBy]")
"""The types of the file that the README drops."""
MANY = 200_000
"""Rows of a load that takes Spark some seconds."""
LAST_LOAD = """{ runsOrError(limit: 1, filter: {pipelineName: "river_load_job"}) {
  ... on Runs { results { status } } } }"""
VECTOR = """query vector($number: String) {
  match { $n: Note { number: $number }  $n.embedding is not null } return { $n.number as number }
}"""


def test_the_first_start_brings_the_example_through(live_platform: LivePlatform) -> None:
    said = live_platform.said
    assert "no key of a provider is set" in said
    assert "dropped the example" in said
    assert "the load is published and enriched" in said
    assert "Bend paper mill     | mill   | Birch brook | 42.5" in said
    assert re.search(r"Hybrid search.*\n.*\n  IN-2030-1 \| Oxygen gone below the mill", said)
    assert "  high     | 0    | 21\n" in said
    for address in (
        live_platform.dagster_url,
        live_platform.server_url,
        live_platform.spark_ui_url,
    ):
        assert address in said


def test_loads_run_on_the_spark_server(live_platform: LivePlatform) -> None:
    (application,) = get(f"{live_platform.spark_ui_url}/api/v1/applications")
    jobs = get(f"{live_platform.spark_ui_url}/api/v1/applications/{application['id']}/jobs")
    assert "SUCCEEDED" in {job["status"] for job in jobs}
    assert [path.name for path in (live_platform.directory / "spark-events").iterdir()]


def test_dagster_shows_what_happened(live_platform: LivePlatform) -> None:
    with urllib.request.urlopen(live_platform.dagster_url, timeout=120) as page:
        assert page.status == 200
        assert b'id="__next"' in page.read()
    told = live_platform.graphql("""{
      repositoriesOrError { ... on RepositoryConnection { nodes { location { name }
        sensors { name sensorState { status } } } } }
      runsOrError { ... on Runs { results { jobName status } } } }""")
    (repository,) = told["repositoriesOrError"]["nodes"]
    assert repository["location"]["name"] == "omnigraph"
    states = {one["name"]: one["sensorState"]["status"] for one in repository["sensors"]}
    assert {"river_drops_sensor", "river_automation", "river_publish_guard"} <= states.keys()
    assert set(states.values()) == {"RUNNING"}
    loads = [run for run in told["runsOrError"]["results"] if run["jobName"] == "river_load_job"]
    assert loads[-1]["status"] == "SUCCESS", "the first one, that of the example"


def test_what_was_published_just_now_is_fresh(live_platform: LivePlatform) -> None:
    asked = """{ assetNodes(assetKeys: [{path: ["river", "manifest"]}]) {
      internalFreshnessPolicy { ... on TimeWindowFreshnessPolicy { failWindowSeconds } }
      freshnessStatusInfo { freshnessStatus } } }"""

    def told() -> dict[str, Any]:
        (node,) = live_platform.graphql(asked)["assetNodes"]
        return dict(node)

    assert told()["internalFreshnessPolicy"] == {"failWindowSeconds": 48 * 3600}
    until(lambda: told()["freshnessStatusInfo"]["freshnessStatus"] == "HEALTHY", "its status")


def test_a_file_dropped_by_hand_is_published_and_enriched(
    live_platform: LivePlatform, evening: Evening
) -> None:
    """As the README does it; it was dropped when the first test of a page began."""
    evening.wait_until_enriched()
    assert evening.ask() == evening.answer
    assert live_platform.query(VECTOR, params={"number": "AL-N900"}) == [{"number": "AL-N900"}]
    evening.wait_until_put_away()


def test_a_drop_of_three_types_is_three_steps_with_links_and_few_events(
    live_platform: LivePlatform, evening: Evening
) -> None:
    """The same file: a note and two edges."""
    evening.wait_until_put_away()
    staged = {f"river_load.river_stage_{name}" for name in EVENING}

    def found() -> list[str]:
        return [
            run
            for run in live_platform.loads()
            if {step for step in live_platform.steps(run) if "_stage_" in step} == staged
        ]

    until(found, "the end of its run")
    events = live_platform.log(found()[0])
    assert len(events) <= 110, [event["message"] for event in events]
    outputs = {
        event["stepKey"]: {entry["label"]: entry for entry in event["metadataEntries"]}
        for event in events
        if event["__typename"] == "ExecutionStepOutputEvent" and event["stepKey"] in staged
    }
    assert outputs.keys() == staged
    for told in outputs.values():
        assert told["rows"]["intValue"] == 1
        assert told["bytes"]["intValue"] > 0
        (job, *_) = json.loads(told["spark_jobs"]["jsonString"])
        with urllib.request.urlopen(told["spark_job"]["url"], timeout=120) as page:
            assert job["operation_id"] in page.read().decode()


@pytest.fixture(scope="module")
def both(live_platform: LivePlatform) -> Path:
    """A file of two types that never settles, so the sensor leaves it alone."""
    told = {"title": "Alone", "text": "Only this.", "recordedAt": "2031-05-01T00:00:00Z"}
    order = {"code": "ALONE-1", "title": "Alone", "kind": "order", "startsOn": "2031-05-01"}
    path = live_platform.drop(
        "both.jsonl.later",
        {"type": "Note", "data": {"number": "ALONE-1", **told}},
        {"type": "Measure", "data": order},
    )
    later = time.time() + 3600
    os.utime(path, (later, later))
    return path.rename(path.with_name("both.jsonl"))


def test_one_type_is_launched_alone(live_platform: LivePlatform, both: Path) -> None:
    note, measure = "river/nodes/Note", "river/nodes/Measure"
    until(lambda: not live_platform.live_runs(), "the end of all runs")
    before = live_platform.materialised(note, measure, "river/manifest")
    run_id = live_platform.launch(note)
    until(lambda: live_platform.status(run_id) in ("SUCCESS", "FAILURE"), "the end of the run")
    assert live_platform.status(run_id) == "SUCCESS"
    after = live_platform.materialised(note, measure, "river/manifest")
    assert after[note] > before[note]
    assert after["river/manifest"] > before["river/manifest"]
    assert after[measure] == before[measure]
    assert both.exists()
    steps = live_platform.steps(run_id)
    assert [step for step in steps if "stage_" in step] == ["river_load.river_stage_node[Note]"]


def test_the_rest_is_loaded_later_on_a_spark_server_that_died_and_is_started_again(
    live_platform: LivePlatform, evening: Evening, both: Path
) -> None:
    """The other services go on, and the next load finds the new server."""
    evening.wait_until_enriched()
    measure = "river/nodes/Measure"
    before = live_platform.materialised(measure)
    others = processes(live_platform, "code-server", "server", "webserver", "daemon")
    (java,) = java_of(live_platform)
    os.kill(java, signal.SIGKILL)
    until(lambda: "spark ended with 137: restart 1 of 5" in live_platform.output, "the message")
    until(lambda: set(java_of(live_platform)) - {java}, "another Java")
    os.utime(both)
    loaded = live_platform.directory / "drops/_loaded/main/both.jsonl"
    until(loaded.exists, "the load of the rest on the new server")
    assert not both.exists()
    until(lambda: live_platform.materialised(measure)[measure] > before[measure], "the other type")
    jobs = f"{live_platform.spark_ui_url}/api/v1/applications"
    assert get(f"{jobs}/{get(jobs)[0]['id']}/jobs")
    assert processes(live_platform, "code-server", "server", "webserver", "daemon") == others


@pytest.mark.long("a Spark server that dies between loads; test_load has a step begun again")
def test_a_spark_server_that_dies_under_a_load_is_started_again_and_the_load_goes_on(
    live_platform: LivePlatform,
) -> None:
    until(lambda: not live_platform.live_runs(), "the end of all runs")
    before, graph = java_of(live_platform), str(live_platform.directory / "graph")
    with Omnigraph.open(graph) as opened:
        had, rows = loads_of(opened), opened.snapshot().table("node:Measure").row_count
    order = {"title": "Many", "kind": "order", "startsOn": "2031-05-01"}
    records = [{"type": "Measure", "data": {"code": f"M-{n}", **order}} for n in range(MANY)]
    live_platform.drop("many.jsonl", *records)
    wait_until(
        lambda: spark_works_on_a_load(live_platform),
        "a job of the load",
        seconds=PATIENCE,
        tell=lambda: live_platform.output,
    )
    (java,) = before
    os.kill(java, signal.SIGKILL)
    loaded = live_platform.directory / "drops/_loaded/main/many.jsonl"
    until(loaded.exists, "the load on another Java", tell=lambda: live_platform.output)
    assert set(java_of(live_platform)).isdisjoint(before)
    with Omnigraph.open(graph) as opened:
        assert loads_of(opened) == had + 1
        assert opened.snapshot().table("node:Measure").row_count == rows + MANY
    told = live_platform.graphql(LAST_LOAD)["runsOrError"]["results"]
    assert [run["status"] for run in told] == ["SUCCESS"]


def loads_of(graph: Omnigraph) -> int:
    return sum(commit.operation == "load" for commit in graph.list_commits("main"))


def spark_works_on_a_load(platform: LivePlatform) -> bool:
    """Whether a load has started, and Spark does a job."""
    (run,) = platform.graphql(LAST_LOAD)["runsOrError"]["results"]
    applications = f"{platform.spark_ui_url}/api/v1/applications"
    jobs = f"{applications}/{get(applications)[0]['id']}/jobs?status=running"
    return run["status"] == "STARTED" and bool(get(jobs))


def processes(platform: LivePlatform, *names: str) -> list[str]:
    return [(platform.directory / "processes" / name).read_text() for name in names]


def java_of(platform: LivePlatform) -> list[int]:
    """The Java processes in the session of the Spark service."""
    (session,) = processes(platform, "spark")
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                command = (place / "cmdline").read_bytes().split(b"\0")[0]
                if command.endswith(b"java") and os.getsid(int(place.name)) == int(session):
                    found.append(int(place.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def test_a_refresh_has_the_definitions_loaded_anew(live_platform: LivePlatform) -> None:
    """What a new schema runs: it fails unless the webserver has done what it was asked for."""
    before = loaded_at(live_platform)
    launched = live_platform.graphql(
        """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
          __typename ... on LaunchRunSuccess { run { runId } } } }""",
        params={"selector": {**LOCATION, "pipelineName": "river_refresh_job"}},
    )["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    asked = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

    def status() -> str:
        told = live_platform.graphql(asked, id=launched["run"]["runId"])
        return str(told["runOrError"]["status"])

    until(lambda: status() in {"SUCCESS", "FAILURE", "CANCELED"}, "the refresh to end")
    assert status() == "SUCCESS"
    assert loaded_at(live_platform) > before


def loaded_at(platform: LivePlatform) -> float:
    """When the definitions were loaded."""
    told = platform.graphql("""{ workspaceOrError { ... on Workspace {
      locationEntries { updatedTimestamp } } } }""")
    (entry,) = told["workspaceOrError"]["locationEntries"]
    return float(entry["updatedTimestamp"])


@pytest.mark.parametrize("action", ["up", "reset"])
def test_it_is_not_started_twice_nor_deleted_while_it_runs(
    live_platform: LivePlatform, action: str
) -> None:
    done = run_local(action, live_platform.environment)
    assert done.returncode == 1
    assert done.stderr == f"error: {live_platform.directory} is in use: `make down` stops it\n"


@pytest.mark.long("the end of the other tests stops it with Ctrl-C; the start is that of a user")
def test_after_make_down_the_next_start_goes_on_with_the_data(live_platform: LivePlatform) -> None:
    """Last, as addresses that others have noted end here."""
    live_platform.stop()
    live_platform.ports = free_ports()
    live_platform.start()
    assert "the graph is there" in live_platform.said
    assert "dropped the example" not in live_platform.said
    # Other tests have added incidents.
    assert re.search(r"\n  high +\| 0 +\| \d+\n", live_platform.said)
