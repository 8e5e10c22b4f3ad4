"""The platform as `make up` runs it, for the tests that use one together."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.ports import ATTEMPTS, free_port
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

ROOT: Final = Path(__file__).parent.parent.parent
PORTS: Final = ("DAGSTER_PORT", "SERVER_PORT", "CODE_PORT", "SPARK_PORT", "SPARK_UI_PORT")
PATIENCE: Final = 400.0
"""Seconds, long enough for a machine that is busy with other tests."""
_PR_SET_PDEATHSIG: Final = 1


class LivePlatform:
    """Enter it to have it running; it ends with Ctrl-C."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "platform"
        self.ports: dict[str, int] = {}
        self.said = ""
        """What the last start printed."""
        self._logs = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dagster_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['DAGSTER_PORT']}"

    @property
    def server_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['SERVER_PORT']}"

    @property
    def spark_ui_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['SPARK_UI_PORT']}"

    @property
    def output(self) -> str:
        """What it has printed since the last start."""
        return self._log.read_text()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that say where it is."""
        return {**environment_of(self.directory, self.ports), "SPARK_EVENT_LOG": "1"}

    def __enter__(self) -> LivePlatform:
        self._logs.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, ATTEMPTS + 1):
            self.ports = free_ports()
            try:
                self.start()
                break
            except AssertionError as problem:
                # Another process has taken a port between the choice and the start.
                if attempt == ATTEMPTS or not re.search("is taken|in use", str(problem)):
                    raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGINT)  # as a terminal does
        self._wait_for_the_end()
        assert "stopped; the data stays" in self._log.read_text()

    @property
    def _log(self) -> Path:
        return self._logs / "up.txt"

    def start(self) -> None:
        """Start it, for the first time or again."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.live_platform"],
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self._is_ready, "the platform to be ready", tell=self._log.read_text)
        self.said = self._log.read_text()

    def stop(self) -> None:
        """Stop it from elsewhere, as `make down` does."""
        done = run_local("down", self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        self._wait_for_the_end()

    def _wait_for_the_end(self) -> None:
        assert self._process is not None
        assert self._process.wait(PATIENCE) == 0, self._log.read_text()
        assert processes_of(self.directory) == []

    def _is_ready(self) -> bool:
        assert self._process is not None
        said = self._log.read_text()
        assert self._process.poll() is None, said
        return "`make demo-reset` deletes it" in said

    def graphql(self, query: str, **variables: object) -> Any:
        """What Dagster answers to a query."""
        body = {"query": query, "variables": variables}
        answer = post(f"{self.dagster_url}/graphql", body)
        assert "errors" not in answer, answer
        return answer["data"]

    def launch(self, key: str, branch: str = "main") -> str:
        """Launch the materialisation of one asset, as its page does; the id of the run."""
        selector = {
            "repositoryLocationName": "omnigraph",
            "repositoryName": "__repository__",
            "jobName": "__ASSET_JOB",
            "assetSelection": [{"path": key.split("/")}],
        }
        tags = [{"key": "dagster/partition", "value": branch}]
        return self._launch(selector, {}, tags)

    def launch_job(self, name: str, config: dict[str, Any]) -> str:
        """Launch a job of no partition with a configuration; the id of the run."""
        selector = {
            "repositoryLocationName": "omnigraph",
            "repositoryName": "__repository__",
            "pipelineName": name,
        }
        return self._launch(selector, config, [])

    def _launch(
        self, selector: dict[str, Any], config: dict[str, Any], tags: list[dict[str, str]]
    ) -> str:
        params = {
            "selector": selector,
            "runConfigData": config,
            "executionMetadata": {"tags": tags},
        }
        answer = self.graphql(
            """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
              __typename ... on LaunchRunSuccess { run { runId } }
              ... on PythonError { message } } }""",
            params=params,
        )["launchRun"]
        return str(answer["run"]["runId"])

    def status(self, run_id: str) -> str:
        run = self._run(run_id, "status")
        return str(run["status"])

    def steps(self, run_id: str) -> list[str]:
        """The steps that a run has done, by name."""
        found = self._run(run_id, "stepStats { stepKey status }")["stepStats"]
        return sorted(step["stepKey"] for step in found if step["status"] == "SUCCESS")

    def loads(self) -> list[str]:
        """The ids of all runs of the load that are over, newest first."""
        found = self.graphql("""{ runsOrError(filter: {
          pipelineName: "river_load_job", statuses: [SUCCESS, FAILURE] }) {
          ... on Runs { results { runId } } } }""")
        return [str(run["runId"]) for run in found["runsOrError"]["results"]]

    def log(self, run_id: str) -> list[dict[str, Any]]:
        """All that a run has logged, as its page shows it."""
        found = self.graphql(
            """query($id: ID!) { logsForRun(runId: $id, limit: 1000) {
              ... on EventConnection { hasMore events { __typename
                ... on MessageEvent { stepKey message }
                ... on ExecutionStepOutputEvent { metadataEntries { label
                  ... on IntMetadataEntry { intValue }
                  ... on JsonMetadataEntry { jsonString }
                  ... on UrlMetadataEntry { url } } } } } } }""",
            id=run_id,
        )["logsForRun"]
        assert not found["hasMore"]
        events = found["events"]
        assert isinstance(events, list)
        return events

    def _run(self, run_id: str, members: str) -> Any:
        return self.graphql(
            "query($id: ID!) { runOrError(runId: $id) { ... on Run { %s } } }" % members,  # noqa: UP031
            id=run_id,
        )["runOrError"]

    def live_runs(self) -> int:
        """How many runs are not over."""
        wanted = "{statuses: [QUEUED, NOT_STARTED, STARTING, STARTED]}"
        found = self.graphql(f"{{ runsOrError(filter: {wanted}) {{ ... on Runs {{ count }} }} }}")
        return int(found["runsOrError"]["count"])

    def query(self, text: str, **more: object) -> list[dict[str, Any]]:
        """What the HTTP server answers to a query."""
        rows = post(f"{self.server_url}/query", {"query": text, **more})["rows"]
        assert isinstance(rows, list)
        return rows

    def drop(self, name: str, *records: object, branch: str = "main") -> Path:
        """Drop a file as users are told to: under another name until it is whole."""
        path = self.directory / "drops" / branch / name
        part = path.with_name(f"{name}.part")
        part.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        return part.rename(path)

    def materialised(self, *keys: str) -> dict[str, int]:
        """When assets were made last, in milliseconds; 0 for never."""
        wanted = [{"path": key.split("/")} for key in keys]
        nodes = self.graphql(
            """query($keys: [AssetKeyInput!]) { assetNodes(assetKeys: $keys) {
              assetKey { path } assetMaterializations(limit: 1) { timestamp } } }""",
            keys=wanted,
        )["assetNodes"]
        times = {
            "/".join(node["assetKey"]["path"]): [
                int(made["timestamp"]) for made in node["assetMaterializations"]
            ]
            for node in nodes
        }
        return {key: max(times[key], default=0) for key in keys}


def command(action: str) -> list[str]:
    """What the Makefile runs."""
    return [sys.executable, "-m", "omnigraph_assets.local", action]


def run_local(action: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Do it to the end."""
    return subprocess.run(
        command(action),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def environment_of(directory: Path, ports: dict[str, int]) -> dict[str, str]:
    """The variables of a platform in a directory."""
    return {"PLATFORM_DIR": str(directory), **{name: str(port) for name, port in ports.items()}}


def free_ports() -> dict[str, int]:
    """Ports that nobody listens on."""
    first = free_port(range(len(PORTS)), least=20_000)
    return {name: first + place for place, name in enumerate(PORTS)}


def until(
    condition: Callable[[], object], what: str, *, tell: Callable[[], object] | None = None
) -> None:
    """Wait as long as a platform may need.

    Raises:
        AssertionError: it took too long.
    """
    wait_until(condition, what, seconds=PATIENCE, interval=1.0, tell=tell)


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=120) as answer:
        return json.loads(answer.read())


def post(address: str, body: object) -> Any:
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


def processes_of(directory: Path) -> list[str]:
    """Commands of all processes that were given a directory in a variable; ours do not count."""
    needle = f"DAGSTER_HOME={directory}/".encode()
    found: list[str] = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if needle in (place / "environ").read_bytes():
                    line = (place / "cmdline").read_bytes()
                    found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found


if __name__ == "__main__":
    # Whatever ends the tests ends the platform too.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    os.execv(sys.executable, command("up"))
