"""A small graph on a platform whose processes can be killed one by one, and are looked at from
outside: runs and assets through what Dagster's own pages ask, rows in the graph."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from omnigraph_assets.local.files import environment_of
from omnigraph_assets.local.places import Places
from omnigraph_assets.local.services import Service, start_service, stop_services
from omnigraph_assets.run_launcher.client import PRELOAD, server_command
from omnigraph_core.engine.omnigraph import Omnigraph
from omnigraph_core.history.snapshots import ReadTarget
from tests.support.faulty_tags import ENVIRONMENT, FAILPOINTS, HELD_AFTER, KILLED_AFTER
from tests.support.later import Later
from tests.support.live_platform import until
from tests.support.ports import free_port, is_free

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    import dagster as dg
    from dagster._core.storage import tags as tags_of_runs
    from dagster._core.workspace import context as workspaces
    from dagster._core.workspace import load_target
    from dagster_graphql import schema as interface

    from omnigraph_assets import instance as marks
else:
    dg, load_target = Later("dagster"), Later("dagster._core.workspace.load_target")
    tags_of_runs = Later("dagster._core.storage.tags")
    workspaces = Later("dagster._core.workspace.context")
    interface = Later("dagster_graphql.schema")
    marks = Later("omnigraph_assets.instance")

ROOT: Final = Path(__file__).parent.parent.parent
NAME: Final = "people"
RUNS_AT_ONCE: Final = 2
SCHEMA: Final = """
node Person {
    name: String @key
    age: I32?
    @range(age, 0..150)
}

node Company {
    name: String @key
}

edge Knows: Person -> Person
"""
WIDER: Final = SCHEMA + "\nnode Place {\n    name: String @key\n}\n"
_LOCATION: Final = "omnigraph"
_LAUNCH: Final = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_BACKFILL: Final = """mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_RELOAD: Final = """mutation($name: String!) {
  reloadRepositoryLocation(repositoryLocationName: $name) {
  __typename ... on PythonError { message } } }"""


class FaultyPlatform:
    """Enter it to have it running: code server, fork server and daemon, each a process."""

    parts: tuple[str, ...] = ("code-server", "fork-server", "daemon")

    def __init__(self, directory: Path, *, engine: str = "local", webserver_port: int = 0) -> None:
        self.places = Places(
            directory,
            {"CODE_PORT": free_port(), "SERVER_PORT": 0, "DAGSTER_PORT": webserver_port},
            engine=engine,
        )
        self.environment = {
            "DAGSTER_HOME": str(self.places.dagster),
            "OMNIGRAPH_DAGSTER_STATE": str(self.places.dagster),
            "OMNIGRAPH_PLATFORM_NAME": NAME,
            "OMNIGRAPH_PLATFORM_GRAPH": str(self.places.graph),
            "OMNIGRAPH_PLATFORM_DROPS": str(self.places.drops),
            "OMNIGRAPH_PLATFORM_SERVER": "",
            "OMNIGRAPH_PLATFORM_WEBSERVER": "",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        self._services: dict[str, Service] = {}

    def __enter__(self) -> FaultyPlatform:
        places = self.places
        for made in (places.dagster, places.logs, places.processes, places.drops / "main"):
            made.mkdir(parents=True)
        self._write_settings()
        self.graph = Omnigraph.init(self.environment["OMNIGRAPH_PLATFORM_GRAPH"], SCHEMA)
        for name in self.parts:
            self.start(name)
        self.instance = dg.DagsterInstance.from_config(str(places.dagster))
        target = load_target.WorkspaceFileTarget([str(places.dagster / "workspace.yaml")])
        self._workspace = workspaces.WorkspaceProcessContext(self.instance, target)
        self._schema = interface.create_schema()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._workspace.__exit__(kind, error, trace)
        self.instance.dispose()
        stop_services(self._services.values())

    def settings(self) -> dict[str, Any]:
        """Those that are shipped, but for the length of the queue and where everything is."""
        settings: dict[str, Any] = yaml.safe_load((ROOT / "dagster.yaml").read_text())
        settings["defs_state_storage"]["config"]["base_path"] = str(self.places.dagster / "defs")
        settings["concurrency"]["runs"]["max_concurrent_runs"] = RUNS_AT_ONCE
        return settings

    def _write_settings(self) -> None:
        code = {"host": "127.0.0.1", "port": self.places.ports["CODE_PORT"]}
        workspace = {"load_from": [{"grpc_server": {**code, "location_name": _LOCATION}}]}
        for name, content in (("dagster.yaml", self.settings()), ("workspace.yaml", workspace)):
            (self.places.dagster / name).write_text(yaml.safe_dump(content))

    def start(self, name: str, **variables: str) -> None:
        """Start one of the processes, after it was killed or for the first time."""
        port = str(self.places.ports["CODE_PORT"])
        workspace = str(self.places.dagster / "workspace.yaml")
        commands = {
            "code-server": (
                *("dagster", "code-server", "start", "--location-name", _LOCATION),
                *("--module-name", "tests.support.faulty_definitions"),
                *("--host", "127.0.0.1", "--port", port),
            ),
            # Without its Python and `-m`, which come before each of them.
            "fork-server": server_command(self.places.dagster, sys.executable, PRELOAD)[2:],
            "daemon": ("dagster._daemon", "run", "--workspace", workspace),
            "webserver": (
                *("dagster_webserver", "--workspace", workspace),
                *("--host", "127.0.0.1", "--port", str(self.places.ports["DAGSTER_PORT"])),
            ),
        }
        given = {**environment_of(self.places, os.environ), **self.environment, **variables}
        command = (sys.executable, "-m", "tests.support.mortal", "-m", *commands[name])
        self._services[name] = start_service(name, command, self.places, given)
        if name == "code-server":
            until(lambda: not is_free(self.places.ports["CODE_PORT"]), "the code server")

    def kill(self, name: str) -> None:
        """End it, and all it has started, as a machine without memory does."""
        service = self._services[name]
        service.send(signal.SIGKILL)
        until(service.is_gone, f"the end of the {name}")

    def ask(self, query: str, **variables: object) -> Any:
        """What Dagster's pages are answered."""
        context = self._workspace.create_request_context()
        asked = self._schema.execute_async(query, context_value=context, variable_values=variables)
        answer = asyncio.run(asked)
        assert not answer.errors, answer.errors
        return only_member(answer.data)

    def launch(
        self,
        branch: str,
        *,
        points: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        killed_after: str = "",
        held_after: tuple[str, Path] | None = None,
        is_repeated: bool = True,
    ) -> str:
        """Launch the load of a branch, as its page does; the id of the run.

        Args:
            killed_after: a step that does its work before the run is killed.
            held_after: such a step, and the directory in which the run says that it waits, and
                is told to go on.
            is_repeated: whether Dagster may repeat it; it does not always, so nothing relies on it.
        """
        tags = {marks.PARTITION: branch}
        tags |= {} if is_repeated else {tags_of_runs.MAX_RETRIES_TAG: "0"}
        tags |= {FAILPOINTS: json.dumps(points)} if points else {}
        tags |= {ENVIRONMENT: json.dumps(variables)} if variables else {}
        tags |= {KILLED_AFTER: killed_after} if killed_after else {}
        tags |= {HELD_AFTER: " ".join(map(str, held_after))} if held_after else {}
        selector = {
            "repositoryLocationName": _LOCATION,
            "repositoryName": "__repository__",
            "jobName": f"{NAME}_load_job",
        }
        metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        params = {"selector": selector, "runConfigData": {}, "executionMetadata": metadata}
        run_id = self.ask(_LAUNCH, params=params)["run"]["runId"]
        assert isinstance(run_id, str)
        return run_id

    def backfill(self, branches: list[str]) -> str:
        """Launch the load of several branches at once, as the page of the assets does."""
        keys = [{"path": [NAME, *key]} for key in self.load_keys]
        params = {"assetSelection": keys, "partitionNames": branches}
        backfill_id = self.ask(_BACKFILL, params=params)["backfillId"]
        assert isinstance(backfill_id, str)
        return backfill_id

    def reload(self) -> None:
        """Have the definitions loaded anew, as the button does."""
        self.ask(_RELOAD, name=_LOCATION)

    @property
    def load_keys(self) -> tuple[tuple[str, ...], ...]:
        return (("nodes", "Person"), ("nodes", "Company"), ("edges", "Knows"), ("manifest",))

    def branch(self, name: str) -> str:
        """A new branch, with its partition."""
        self.graph.branch_create(name)
        self.instance.add_dynamic_partitions(f"{NAME}_branches", [name])
        return name

    def drop(self, branch: str, name: str, *records: object) -> Path:
        """Drop a file as users are told to: under another name until it is whole."""
        path = self.places.drops / branch / name
        path.parent.mkdir(exist_ok=True)
        part = path.with_name(f"{name}.part")
        lines = (item if isinstance(item, str) else json.dumps(item) for item in records)
        part.write_text("".join(f"{line}\n" for line in lines))
        return part.rename(path)

    def drop_people(self, branch: str, *names: str) -> Path:
        return self.drop(branch, f"{names[0]}.jsonl", *people(*names))

    def put_away(self, folder: str, branch: str) -> set[str]:
        """Files in `_loaded` or `_quarantine`."""
        found = self.places.drops / folder / branch
        return {path.name for path in found.iterdir()} if found.is_dir() else set()

    def names(self, branch: str) -> list[str]:
        """The people of a branch, each as often as it is there."""
        pieces = self.graph.export_jsonl(ReadTarget(branch=branch), table_keys=["node:Person"])
        lines = b"".join(pieces).splitlines()
        return sorted(json.loads(line)["data"]["name"] for line in lines)

    def status(self, run_id: str) -> str:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return str(run.status.value)

    def reason(self, run_id: str) -> str:
        """What the page of a run says of its process and its end."""
        events = self._events(run_id, dg.DagsterEventType.ENGINE_EVENT)
        events += self._events(run_id, dg.DagsterEventType.RUN_FAILURE)
        return "\n".join(event.message or "" for event in events)

    def problem(self, run_id: str) -> str:
        """What the steps of a run have failed of."""
        events = self._events(run_id, dg.DagsterEventType.STEP_FAILURE)
        told = [event.step_failure_data for event in events]
        return "\n".join(f"{one.user_failure_data} {one.error}" for one in told)

    def retried(self, run_id: str) -> str:
        """Why steps of a run were begun again."""
        events = self._events(run_id, dg.DagsterEventType.STEP_UP_FOR_RETRY)
        return "\n".join(str(event.step_retry_data.error) for event in events)

    def failed_checks(self, run_id: str) -> set[str]:
        events = self._events(run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        told = [event.asset_check_evaluation_data for event in events]
        return {
            f"{check.asset_key.to_user_string()}:{check.check_name}"
            for check in told
            if not check.passed
        }

    def _events(self, run_id: str, kind: dg.DagsterEventType) -> list[dg.DagsterEvent]:
        entries = self.instance.all_logs(run_id, of_type=kind)
        return [entry.dagster_event for entry in entries if entry.dagster_event is not None]

    def runs(self, branch: str) -> list[dg.DagsterRun]:
        """All runs of a branch, the newest first."""
        return list(self.instance.get_runs(dg.RunsFilter(tags={marks.PARTITION: branch})))

    def spans(self, branch: str) -> list[tuple[float, float]]:
        """When the runs of a branch began and ended."""
        records = self.instance.get_run_records(dg.RunsFilter(tags={marks.PARTITION: branch}))
        return [(record.start_time or 0.0, record.end_time or 0.0) for record in records]

    def partitions(self) -> set[str]:
        return set(self.instance.get_dynamic_partitions(f"{NAME}_branches"))

    def has_refreshed(self) -> bool:
        """Whether the newest schema is that of the definitions, once they are loaded anew."""
        runs = self.instance.get_runs(dg.RunsFilter(job_name=f"{NAME}_refresh_job"))
        return any(run.status is dg.DagsterRunStatus.SUCCESS for run in runs)

    def live(self, *branches: str) -> list[str]:
        """Runs of these branches that are not over."""
        return [
            run.run_id for name in branches for run in self.runs(name) if run.status in marks.LIVE
        ]

    def told(self, branch: str) -> dict[str, set[str]]:
        """Commits by asset that Dagster shows as materialisations of a branch.

        What a branch was forked from may be shown as well, and is left out.
        """
        inherited = self._inherited(branch)
        found: dict[str, set[str]] = {}
        for key in self.load_keys:
            events = self.instance.fetch_materializations(
                dg.AssetRecordsFilter(dg.AssetKey([NAME, *key]), asset_partitions=[branch]),
                limit=100,
            ).records
            made = [event.asset_materialization for event in events]
            commits = {str(one.metadata["commit_id"].value) for one in made if one is not None}
            if commits - inherited:
                found["/".join(key)] = commits - inherited
        return found

    def published(self, branch: str) -> list[str]:
        """The publishes of a branch since it was forked, the newest first."""
        inherited = self._inherited(branch)
        return [
            one.graph_commit_id
            for one in self.graph.list_commits(branch)
            if one.operation == "load" and one.graph_commit_id not in inherited
        ]

    def _inherited(self, branch: str) -> set[str]:
        """Commits that were there before the branch: those of main; of main's, the first."""
        commits = [one.graph_commit_id for one in self.graph.list_commits("main")]
        return set(commits if branch != "main" else commits[-1:])

    def spark_at_work(self) -> int | None:
        """The Java process of a run's Spark that has begun with tasks; None if there is none."""
        needle = f"DAGSTER_HOME={self.places.dagster}\0".encode()
        for place in Path("/proc").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if place.name.isdecimal() and _words(place.name)[0].endswith(b"java"):
                    is_ours = needle in (place / "environ").read_bytes()
                    started = [(one / "children").read_text() for one in (place / "task").iterdir()]
                    children = [_words(number) for number in " ".join(started).split()]
                    if is_ours and any(b"-m" in words for words in children):  # Python's workers
                        return int(place.name)
        return None

    def said(self) -> str:
        """The last that the processes said, for who looks for the reason of a failure."""
        return "\n".join(
            f"--- {service.name}\n{service.tail}" for service in self._services.values()
        )


def people(*names: str) -> list[dict[str, Any]]:
    """Records of people who know the one after them."""
    nodes = [{"type": "Person", "data": {"name": name}} for name in names]
    pairs = itertools.pairwise(names)
    return [*nodes, *({"edge": "Knows", "from": a, "to": b} for a, b in pairs)]


def only_member(data: Mapping[str, Any]) -> Any:
    """What Dagster answers to a query of one member, unless it is an error."""
    (told,) = data.values()
    assert "message" not in told, told["message"]
    return told


def _words(number: str) -> list[bytes]:
    """The command of a process."""
    return (Path("/proc") / number / "cmdline").read_bytes().split(b"\0")
