"""`make up` as a user runs it: everything starts, the example comes through, nothing is left."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import ROOT, snippets
from tests.support.live_platform import LivePlatform, environment_of, free_ports, run_local, until

LOCATION = {"repositoryLocationName": "omnigraph", "repositoryName": "__repository__"}
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
    for address in (live_platform.dagster_url, live_platform.server_url):
        assert address in said


@pytest.mark.long("the end of the other tests stops it with Ctrl-C; the start is that of a user")
def test_after_make_down_the_next_start_goes_on_with_the_data(live_platform: LivePlatform) -> None:
    live_platform.stop()
    live_platform.start()
    assert "the graph is there" in live_platform.said
    assert "dropped the example" not in live_platform.said
    assert "  high     | 0    | 21\n" in live_platform.said


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


def test_a_file_dropped_by_hand_is_published_and_enriched(live_platform: LivePlatform) -> None:
    """As the README does it."""
    derived = ("river/embeddings/Note.embedding", "river/indexes/Note.text", "river/topology")
    before = live_platform.materialised(*derived)
    assert all(before.values())
    drop, (ask, *answer) = (block.splitlines() for block in flow(live_platform))
    assert run(ask) == answer[:1], "only the names of the columns"

    assert run("\n".join(drop)) == []
    until(
        lambda: all(now > before[key] for key, now in live_platform.materialised(*derived).items()),
        "the note to be enriched",
    )
    assert run(ask) == answer
    assert live_platform.query(VECTOR, params={"number": "AL-N900"}) == [{"number": "AL-N900"}]
    until((live_platform.directory / "drops/_loaded/main/evening.jsonl").exists, "the file to go")


def test_a_refresh_has_the_definitions_loaded_anew(live_platform: LivePlatform) -> None:
    """What the schema watch runs: it fails unless the webserver has done what it was asked for."""
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


def flow(platform: LivePlatform) -> list[str]:
    """What the README shows under `make up`, for the platform of the tests."""
    return [
        snippet.text.replace("build/platform", str(platform.directory))
        .replace("http://127.0.0.1:8080", platform.server_url)
        .replace(".venv/bin/omnigraph", str(Path(sys.executable).parent / "omnigraph"))
        for snippet in snippets(ROOT / "README.md")
        if snippet.language == "text"
    ]


def run(script: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-ec", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("action", ["up", "reset"])
def test_it_is_not_started_twice_nor_deleted_while_it_runs(
    live_platform: LivePlatform, action: str
) -> None:
    done = run_local(action, live_platform.environment)
    assert done.returncode == 1
    assert done.stderr == f"error: {live_platform.directory} is in use: `make down` stops it\n"


def test_taken_ports_are_told_before_anything_starts(tmp_path: Path) -> None:
    ports = free_ports()
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        ports |= {"DAGSTER_PORT": one.getsockname()[1], "SERVER_PORT": two.getsockname()[1]}
        done = run_local("up", environment_of(tmp_path, ports))
    assert done.returncode == 1
    assert f"error: port {ports['DAGSTER_PORT']} is taken\n" in done.stderr
    assert f"port {ports['SERVER_PORT']} is taken\n" in done.stderr
    assert str(ports["CODE_PORT"]) not in done.stderr
    assert "make up DAGSTER_PORT=" in done.stderr
    assert not (tmp_path / "graph").exists()


def test_a_part_that_dies_is_told_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "OMNIGRAPH_LOG", "shout")  # the server refuses it
    done = run_local("up", environment_of(tmp_path, free_ports()))
    assert done.returncode == 1
    assert "error: server ended with" in done.stderr
    assert "OMNIGRAPH_LOG" in done.stderr
    assert "stopped; the data stays" in done.stdout
